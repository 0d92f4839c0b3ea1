"""A service of a tiny random model, in this process and behind a real socket."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from tiny_models import tiny

from precis.generation.summarizer import Summarizer
from precis.server.app import Access, make_app
from precis.server.engine import Ask
from precis.server.keys import Keys
from precis.server.limits import Limits
from precis.server.makers import Makers


def tiny_makers() -> Makers:
    model, tokenizer = tiny("zcodepp")
    return Makers("tiny", ("abstract",), Summarizer(model, tokenizer), None, 8)


@dataclass
class Running:
    """A service that listens."""

    url: str
    makers: Makers
    server: uvicorn.Server
    thread: threading.Thread

    def client(self, **options) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **options)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


Serve = Callable[..., Running]


@pytest.fixture(scope="session")
def makers() -> Makers:
    return tiny_makers()


def run(makers, *, limits: Limits | None = None, keys: Keys | None = None) -> Running:
    app = make_app(makers, limits=limits or Limits(), access=Access(keys=keys), grace=10)
    opened = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    return Running(f"http://127.0.0.1:{opened.getsockname()[1]}", makers, server, thread)


@pytest.fixture
def serve(makers: Makers) -> Iterator[Serve]:
    """Starts services that end with the test."""
    running: list[Running] = []

    def start(with_makers=None, **options) -> Running:
        running.append(run(with_makers or makers, **options))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="session")
def service(makers: Makers) -> Iterator[Running]:
    """One service that tests share."""
    one = run(makers)
    yield one
    one.stop()


@dataclass
class SlowMakers:
    """Makers that wait until they are let go; they notice when nobody waits any more."""

    inner: Makers
    go: threading.Event
    batches: list[int]
    name: str = "tiny"
    modes: tuple = ("abstract",)

    def make(self, texts, ask: Ask, watch):
        self.batches.append(len(texts))
        while not self.go.wait(0.01):
            watch(0, 1, 0)
        return self.inner.make(texts, ask, watch)


@pytest.fixture
def slow(makers: Makers) -> Iterator[SlowMakers]:
    one = SlowMakers(makers, threading.Event(), [])
    yield one
    one.go.set()
