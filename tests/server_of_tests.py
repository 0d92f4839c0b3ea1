"""A service behind a real socket, in this process."""

import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from precis.server.asgi_app import make_app
from precis.server.client_keys import Keys
from precis.server.connections import ConnectionLimits, GuardedServer
from precis.server.limits import Limits
from precis.server.listener import listen
from precis.server.middleware import Access
from precis.server.model_pool import ModelPool


@dataclass
class Running:
    """A service that listens."""

    url: str
    served_model: Any  # or what stands in its place
    server: uvicorn.Server
    thread: threading.Thread
    told: list[str]

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **options)

    @property
    def port(self) -> int:
        port = httpx.URL(self.url).port
        assert port is not None
        return port

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive(), "\n".join([*self.told, *stacks()])


def stacks() -> list[str]:
    """Return what each thread is doing."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [
        f"{names.get(thread)}:\n{''.join(traceback.format_stack(frame))}"
        for thread, frame in sys._current_frames().items()
    ]


class ByWords:
    """Counts the words of documents as tokens, for models of tests."""

    def at_least(self, text: str) -> int:
        return len(text.split())

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def run(served_model: Any, **options: Any) -> Running:
    return run_pool(ModelPool.of(served_model), served_model, **options)


def run_pool(
    pool: ModelPool,
    served_model: Any = None,
    *,
    limits: Limits | None = None,
    keys: Keys | None = None,
    access: Access | None = None,
    connections: ConnectionLimits | None = None,
    prefix: str = "",
) -> Running:
    app = make_app(
        pool, limits=limits or Limits(), access=access or Access(keys=keys), grace=10, prefix=prefix
    )
    opened = listen("127.0.0.1", 0)
    told: list[str] = []
    server = GuardedServer(app, connections=connections or ConnectionLimits(), grace=10, notify=told.append)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    assert server.started, "\n".join([*told, *stacks()])
    return Running(f"http://127.0.0.1:{opened.getsockname()[1]}", served_model, server, thread, told)
