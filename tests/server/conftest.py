"""A service of a tiny random model, in this process and behind a real socket."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from precis.generation.summarizer import Summarizer
from precis.server.engine import Ask
from precis.server.served_model import ServedModel
from tests.server_of_tests import Running, run
from tests.tiny_models import tiny


def tiny_makers() -> ServedModel:
    model, tokenizer = tiny("zcodepp")
    return ServedModel("tiny", ("abstract",), Summarizer(model, tokenizer), None, 8)


Serve = Callable[..., Running]


@pytest.fixture(scope="session")
def makers() -> ServedModel:
    return tiny_makers()


@pytest.fixture
def serve(makers: ServedModel) -> Iterator[Serve]:
    """Starts services that end with the test."""
    running: list[Running] = []

    def start(with_makers=None, **options) -> Running:
        running.append(run(with_makers or makers, **options))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="session")
def service(makers: ServedModel) -> Iterator[Running]:
    """One service that tests share."""
    one = run(makers)
    yield one
    one.stop()


@dataclass
class SlowMakers:
    """Makers that wait until they are let go; they notice when nobody waits any more."""

    inner: ServedModel
    go: threading.Event
    batches: list[int]
    name: str = "tiny"
    modes: tuple = ("abstract",)
    languages: tuple[str, ...] = ()

    def counter(self):
        return self.inner.counter()

    def make(self, texts, ask: Ask, on_progress, on_partial):
        self.batches.append(len(texts))
        while not self.go.wait(0.01):
            on_progress(0, 1, 0)
        return self.inner.make(texts, ask, on_progress, None)


@pytest.fixture
def slow(makers: ServedModel) -> Iterator[SlowMakers]:
    one = SlowMakers(makers, threading.Event(), [])
    yield one
    one.go.set()
