"""An encoder whose matrices are multiplied in 8 bits, for as long as a batch is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from jaxtyping import Float
from torch import Tensor, nn

from precis.generation.lean_linear import Int8, Linear, pack

_MANY_ROWS = 256  # the encoder multiplies all tokens at once


@final
class Int8Encoder:
    """The matrices of an encoder in 8 bits, beside the encoder itself: hooks, layer plan and the rest stay its own."""

    def __init__(self, encoder: nn.Module) -> None:
        self._encoder = encoder
        self._packed: dict[str, nn.Module] = {
            name: _Int8Linear(pack(module.weight, module.bias, rows=_MANY_ROWS, weights=Int8()))
            for name, module in encoder.named_modules()
            if type(module) is nn.Linear
        }

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The encoder multiplies in 8 bits for the duration; not for two threads at once."""
        before = {name: self._encoder.get_submodule(name) for name in self._packed}
        try:
            for name, module in self._packed.items():
                self._put(name, module)
            yield
        finally:
            for name, module in before.items():
                self._put(name, module)

    def _put(self, name: str, module: nn.Module) -> None:
        parent, _, child = name.rpartition(".")
        setattr(self._encoder.get_submodule(parent), child, module)


@final
class _Int8Linear(nn.Module):
    def __init__(self, packed: Linear) -> None:
        super().__init__()
        self._product = packed

    def forward(self, states: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return self._product(states.float()).to(states.dtype)
