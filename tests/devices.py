"""Where tests put tensors and processes, so that they hold with an accelerator present: beside the model, wherever the
code under test put it; and where a test wants several processes, on the CPU, since a machine may have one card.
"""

from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from torch import nn

#: For processes that are to keep to the CPU: Accelerate's two variables.
ON_THE_CPU = {"ACCELERATE_USE_CPU": "true", "ACCELERATE_TORCH_DEVICE": "cpu"}


def keep_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends: what this process trains, and the processes that it starts."""
    for state in (PartialState, AcceleratorState):
        monkeypatch.setattr(state, "_shared_state", {})  # Accelerate decides once in a process
    for name, value in ON_THE_CPU.items():
        monkeypatch.setenv(name, value)


def chosen() -> torch.device:
    """The device that a run of one process trains on."""
    device: torch.device = Accelerator().device
    return device


def beside(model: nn.Module, batch: Any) -> Any:
    """A tensor or a batch, on the model's device."""
    return batch.to(next(model.parameters()).device)
