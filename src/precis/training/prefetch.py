"""Micro-batches made while the device still computes: the next one in a thread, for accelerators.

A batch is a pure function of its number, so that making it early changes nothing. On a CPU the thread would only take
time from the computation.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import final

from precis.training.updates import BatchSource, TrainingBatch


@final
class Prefetched:
    """`batches` with the one behind the last that was asked for already begun."""

    def __init__(self, batches: BatchSource) -> None:
        self._batches = batches
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next: tuple[int, Future[TrainingBatch]] | None = None

    @property
    def batches_per_epoch(self) -> int:
        """Of the batches."""
        return self._batches.batches_per_epoch

    def batch(self, step: int) -> TrainingBatch:
        """The step-th batch; what making it raises is raised here."""
        begun, self._next = self._next, None
        if begun is not None and begun[0] != step:
            begun[1].exception()  # waits: a source need not be able to make two batches at once
            begun = None
        batch = self._batches.batch(step) if begun is None else begun[1].result()
        self._next = step + 1, self._pool.submit(self._batches.batch, step + 1)
        return batch
