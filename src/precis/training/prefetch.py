"""Micro-batches made and copied while the device still computes: the next one in a thread, for accelerators.

A batch is a pure function of its number, so that making it early changes nothing. On a CPU the thread would only take
time from the computation.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch

from precis.objectives.losses import BatchSource, TrainingBatch


@final
class Prefetched:
    """`batches` with the one behind the last that was asked for already begun, and on a GPU already on its way there.

    The copy is put into the very stream that will read it: there its order needs no event, and its memory none but
    this stream's. It takes microseconds of a step; what it must not do is to make the host wait.
    """

    def __init__(self, batches: BatchSource, device: torch.device) -> None:
        """Copy to `device` if that is a GPU; to others the caller does."""
        self._batches, self._device = batches, device
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next: tuple[int, Future[TrainingBatch]] | None = None

    @property
    def batches_per_epoch(self) -> int:
        """Batches per epoch of the wrapped source."""
        return self._batches.batches_per_epoch

    def batch(self, step: int) -> TrainingBatch:
        """The step-th batch; what making it raises is raised here."""
        begun, self._next = self._next, None
        if begun is not None and begun[0] != step:
            begun[1].exception()  # waits: a source need not be able to make two batches at once
            begun = None
        stream = self._stream()
        batch = self._made(step, stream) if begun is None else begun[1].result()
        self._next = step + 1, self._pool.submit(self._made, step + 1, stream)
        return batch

    def _made(self, step: int, stream: Any) -> TrainingBatch:
        batch = self._batches.batch(step)
        with _in_stream(stream):  # the current stream is a thread's own
            return batch if stream is None else batch.to(self._device)

    def _stream(self) -> Any:
        return torch.cuda.current_stream(self._device) if self._device.type == "cuda" else None


def _in_stream(stream: Any) -> AbstractContextManager[Any]:
    return nullcontext() if stream is None else torch.cuda.stream(stream)
