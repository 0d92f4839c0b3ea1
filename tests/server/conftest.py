"""A service of a tiny random model, in this process and behind a real socket."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from precis.generation.summarizer import Summarizer
from precis.generation.summary import Summary
from precis.messages import OnProgress
from precis.server.engine import Ask
from precis.server.served_model import ServedModel
from precis.server.token_counter import TokenCounter
from precis_text.documents.passages import Passages
from tests.server_of_tests import Running, run
from tests.tiny_models import tiny


def tiny_served_model() -> ServedModel:
    model, tokenizer = tiny("zcodepp")
    return ServedModel("tiny", ("abstract",), Summarizer(model, tokenizer), None, 8)


Serve = Callable[..., Running]


@pytest.fixture(scope="session")
def served_model() -> ServedModel:
    return tiny_served_model()


@pytest.fixture
def serve(served_model: ServedModel) -> Iterator[Serve]:
    """Starts services that end with the test."""
    running: list[Running] = []

    def start(other: ServedModel | None = None, **options: Any) -> Running:
        running.append(run(other or served_model, **options))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="session")
def service(served_model: ServedModel) -> Iterator[Running]:
    """One service that tests share."""
    one = run(served_model)
    yield one
    one.stop()


@dataclass
class SlowModel:
    """A model that waits until it is let go; it notices when nobody waits any more."""

    inner: ServedModel
    go: threading.Event
    batches: list[int]
    name: str = "tiny"
    modes: tuple = ("abstract",)
    languages: tuple[str, ...] = ()

    def counter(self) -> TokenCounter:
        return self.inner.counter()

    def make(
        self, texts: Sequence[str | Passages], ask: Ask, on_progress: OnProgress, on_partial: object
    ) -> list[Summary]:
        self.batches.append(len(texts))
        while not self.go.wait(0.01):
            on_progress(0, 1, 0)
        return self.inner.make(texts, ask, on_progress, None)


@pytest.fixture
def slow(served_model: ServedModel) -> Iterator[SlowModel]:
    one = SlowModel(served_model, threading.Event(), [])
    yield one
    one.go.set()
