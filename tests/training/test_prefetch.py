"""Claims about batches that are made ahead."""

import threading
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from precis.training import prefetch
from precis.training.prefetch import Prefetched
from tests.training import tiny

CPU = torch.device("cpu")


def test_the_same_batches_come_in_any_order_of_asking() -> None:
    ahead, plain = Prefetched(tiny.RowSource(), CPU), tiny.RowSource()
    for step in (0, 1, 2, 7, 8, 3, 3):
        assert ahead.batch(step).labels.equal(plain.batch(step).labels)  # type: ignore[attr-defined]
    assert ahead.batches_per_epoch == plain.batches_per_epoch


def test_the_next_batch_is_begun_and_not_made_twice() -> None:
    source = tiny.RowSource()
    ahead = Prefetched(source, CPU)
    for step in range(5):
        ahead.batch(step)
    ahead._pool.shutdown()
    assert source.asked == [0, 1, 2, 3, 4, 5]


def test_an_error_is_raised_where_the_batch_is_asked_for() -> None:
    class Broken(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            if step == 2:
                raise ValueError("no batch 2")
            return super().batch(step)

    ahead = Prefetched(Broken(), CPU)
    ahead.batch(0)
    ahead.batch(1)
    with pytest.raises(ValueError, match="no batch 2"):
        ahead.batch(2)


def test_on_a_gpu_the_next_batch_is_copied_ahead_in_the_stream_that_will_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[tuple[Any, ...]] = []
    streams = threading.local()

    class Copied(tiny.Rows):
        def to(self, device: Any) -> tiny.Rows:
            done.append((str(device), getattr(streams, "current", None), threading.current_thread().name))
            return self

    class Source(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            rows = super().batch(step)
            return Copied(rows.inputs, rows.labels)

    @contextmanager
    def stream(which: Any) -> Any:
        streams.current = which
        yield
        streams.current = None

    monkeypatch.setattr(prefetch.torch.cuda, "current_stream", lambda _: "the model's")  # type: ignore[attr-defined]
    monkeypatch.setattr(prefetch.torch.cuda, "stream", stream)  # type: ignore[attr-defined]
    ahead = Prefetched(Source(), torch.device("cuda", 0))
    ahead.batch(0)
    ahead._pool.shutdown()

    assert [(device, current) for device, current, _ in done] == [("cuda:0", "the model's")] * 2
    assert done[1][2].startswith("batches")


def test_to_other_devices_the_caller_copies() -> None:
    class Unmoved(tiny.Rows):
        def to(self, device: Any) -> tiny.Rows:
            raise AssertionError("moved")

    class Source(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            rows = super().batch(step)
            return Unmoved(rows.inputs, rows.labels)

    ahead = Prefetched(Source(), CPU)
    assert isinstance(ahead.batch(0), Unmoved)
    assert isinstance(ahead.batch(1), Unmoved)
