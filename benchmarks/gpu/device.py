"""The device of a stage and its clock: CUDA events on a card, the wall clock on the CPU (the dry run)."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.compare.worker import peak_memory

Pass = Callable[[], object]


@dataclass(frozen=True)
class Device:
    """`kind` is "cuda" or "cpu"."""

    kind: str

    @property
    def on_card(self) -> bool:
        return self.kind == "cuda"

    def time_ms(self, one_pass: Pass, count: int) -> float:
        """Measure the milliseconds of a pass, over `count` passes in sequence.

        On a card both events are recorded on a stream that was idle before, so the host's work between launches counts
        too.
        """
        self.synchronize()
        if not self.on_card:
            began = time.perf_counter()
            for _ in range(count):
                one_pass()
            return 1000 * (time.perf_counter() - began) / count
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            one_pass()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / count

    def peak_mb(self, one_pass: Pass) -> float:
        """Measure the peak MB of tensors that a pass adds to those held before it."""
        if not self.on_card:
            return float(peak_memory(one_pass)["tensors_mb"])
        self.synchronize()
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        one_pass()
        self.synchronize()
        return (torch.cuda.max_memory_allocated() - held) / 2**20

    def synchronize(self) -> None:
        """Wait until the device has finished all its work."""
        if self.on_card:
            torch.cuda.synchronize()

    def clean(self) -> None:
        """Free the memory that is not in use."""
        gc.collect()
        if self.on_card:
            torch.cuda.empty_cache()

    def is_lost(self) -> bool:
        """Test whether the process lost the device: after a bad address every call fails until the process ends."""
        if not self.on_card:
            return False
        try:
            torch.cuda.synchronize()
            return float(torch.ones(1, device="cuda").add_(1).item()) != 2.0
        except Exception:  # torch has several types for it, by version
            return True


def facts() -> dict[str, Any]:
    """Return the card's properties from CUDA; none without a card."""
    if not torch.cuda.is_available():
        return {}
    found = torch.cuda.get_device_properties(0)
    return {
        "card": found.name,
        "card_memory_gb": round(found.total_memory / 2**30, 1),
        "capability": f"{found.major}.{found.minor}",
        "multiprocessors": found.multi_processor_count,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
