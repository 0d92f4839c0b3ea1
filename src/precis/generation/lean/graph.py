"""How a step of a fixed shape is repeated: as one CUDA graph, or by calling it.

A decoding step is a few hundred small kernels, and on a GPU their launching takes longer than their work. A graph is
launched at once. It needs a step that reads and writes the same memory each time and never waits for the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import torch

_WARM_UP = 2  # steps before the capture: libraries choose and load their kernels at the first


class Capture(ABC):
    """Makes a step repeatable."""

    @abstractmethod
    def takes(self, device: torch.device) -> bool:
        """Whether steps on this device are to be repeated in this way."""

    @abstractmethod
    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        """What does one step each time it is called.

        It may take some steps first, on whatever is in the step's memory, which whoever calls it fills afterwards.

        Raises:
            RuntimeError: the step cannot be captured on this device, or there is no memory for it.
        """


@final
class Uncaptured(Capture):
    """Takes no device: batches are decoded in caches that grow, operator by operator."""

    def takes(self, device: torch.device) -> bool:
        return False

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        return step


@final
class Called(Capture):
    """Calls the step, on any device: what a graph does, without the graph."""

    def takes(self, device: torch.device) -> bool:
        return True

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        return step


@final
class Replayed(Capture):
    """One CUDA graph a step. Graphs share memory for what they compute in between: they never run at the same time,
    and all that outlives a step is in memory of the step's own.
    """

    def __init__(self) -> None:
        # by device: memory is shared by captures on the same stream only
        self._shared: dict[torch.device, tuple[Any, torch.cuda.Stream]] = {}

    def takes(self, device: torch.device) -> bool:
        return device.type == "cuda"

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        with torch.cuda.device(device):
            if device not in self._shared:
                self._shared[device] = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
            pool, side = self._shared[device]
            present = torch.cuda.current_stream()
            side.wait_stream(present)
            with torch.cuda.stream(side):
                for _ in range(_WARM_UP):
                    step()
            present.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            try:
                # other threads may use the device meanwhile (batches that are copied ahead)
                with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
                    step()
            finally:
                torch.cuda.set_stream(present)  # a capture that fails leaves its own as the present one
        return graph.replay
