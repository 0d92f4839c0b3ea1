"""An encoder whose matrices are multiplied in another layout, or in 8 bits, for as long as a batch is read.

In fp32 oneDNN with weights in its own blocks multiplies the tokens of a batch faster than MKL does on AMD's processors
(`lean_linear`). The encoder itself keeps its modules: hooks, layer plan and the rest stay its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import final
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from precis.generation.lean.known import is_changed
from precis.generation.lean.linear import AsGiven, Int8, Linear, Weights, has_onednn, pack

_MANY_ROWS = 256  # the encoder multiplies all tokens at once


def packs_encoder(encoder: nn.Module, weights: Weights) -> bool:
    """Whether the encoder's matrices are multiplied faster from a copy: in 8 bits, or fp32 in oneDNN's blocks."""
    if isinstance(weights, Int8):
        return True
    first = next(encoder.parameters())
    return first.device.type == "cpu" and first.dtype is torch.float32 and has_onednn(torch.float32)


# Two loops may decode with one model, each in a thread of its own.
_LOCKS: WeakKeyDictionary[nn.Module, RLock] = WeakKeyDictionary()


@final
class PackedEncoder:
    """Copies of an encoder's matrices, which take the places of its own while it reads."""

    def __init__(self, encoder: nn.Module, weights: Weights) -> None:
        self._encoder = encoder
        self._lock = _LOCKS.setdefault(encoder, RLock())
        kept = weights if isinstance(weights, Int8) else AsGiven()
        with self._lock:
            self._own: dict[str, nn.Linear] = {
                name: module
                for name, module in encoder.named_modules()
                if type(module) is nn.Linear and not is_changed(module)
            }
            self._packed: dict[str, nn.Module] = {
                name: _PackedLinear(pack(module.weight, module.bias, rows=_MANY_ROWS, weights=kept))
                for name, module in self._own.items()
            }

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The encoder multiplies with the copies for the duration; another thread that wants to read waits.

        A matrix that was replaced since, or that somebody watches by now, keeps its place.
        """
        with self._lock:
            free = [
                name
                for name, module in self._own.items()
                if self._encoder.get_submodule(name) is module and not is_changed(module)
            ]
            try:
                for name in free:
                    self._put(name, self._packed[name])
                yield
            finally:
                for name in free:
                    self._put(name, self._own[name])

    def _put(self, name: str, module: nn.Module) -> None:
        parent, _, child = name.rpartition(".")
        setattr(self._encoder.get_submodule(parent), child, module)


@final
class _PackedLinear(nn.Module):
    def __init__(self, packed: Linear) -> None:
        super().__init__()
        self._product = packed

    def forward(self, states: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return self._product(states.float()).to(states.dtype)
