"""Prefetching for accelerators: a thread makes and copies the next micro-batch while the device computes.

A batch is a pure function of its number, so making it early changes nothing. On a CPU the thread would only slow down
the computation.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, final

import torch

from precis.objectives.losses import BatchSource, TrainingBatch


@final
class Prefetched:
    """A source of batches that prepares the next batch in advance and, for a GPU, already starts its copy.

    The copy runs in the stream that will read it, so its order needs no event and its memory stays with that stream.
    It takes microseconds of a step, and must not make the host wait.
    """

    def __init__(self, batches: BatchSource, device: torch.device) -> None:
        """Copy to `device` if it is a GPU; for other devices the caller copies."""
        self._batches, self._device = batches, device
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next: tuple[int, Future[TrainingBatch]] | None = None

    @property
    def batches_per_epoch(self) -> int:
        """The batches per epoch of the wrapped source."""
        return self._batches.batches_per_epoch

    def batch(self, step: int) -> TrainingBatch:
        """Return the batch of index `step`, or raise the exception of the thread that made it."""
        begun, self._next = self._next, None
        if begun is not None and begun[0] != step:
            begun[1].exception()  # waits: a source may be unable to make two batches at once
            begun = None
        stream = self._stream()
        batch = self._made(step, stream) if begun is None else begun[1].result()
        self._next = step + 1, self._pool.submit(self._made, step + 1, stream)
        return batch

    def _made(self, step: int, stream: Any) -> TrainingBatch:
        batch = self._batches.batch(step)
        # Each thread has its own current stream
        with nullcontext() if stream is None else torch.cuda.stream(stream):
            return batch if stream is None else batch.to(self._device)

    def _stream(self) -> Any:
        return torch.cuda.current_stream(self._device) if self._device.type == "cuda" else None
