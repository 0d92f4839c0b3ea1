"""Dropout on the CPU in a third of torch's time.

torch draws one number per element, in one thread; here four elements share a draw of 64 bits. The rate is
exact to 1/65,536. The kept elements are scaled by the rounded rate, so means are preserved.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_LEVELS = 1 << 16


class Dropout(nn.Dropout):
    """A `torch.nn.Dropout` that calls `dropout`."""

    def forward(self, states: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        return dropout(states, self.p, training=self.training)


def dropout(states: Float[Tensor, "*n"], rate: float, *, training: bool) -> Float[Tensor, "*n"]:
    """Zero elements with probability `rate` in training, and scale the rest; raise `ValueError` outside [0, 1]."""
    if states.device.type != "cpu" or not training or not 0.0 < rate < 1.0 or torch.compiler.is_compiling():
        # a compiler fuses torch's dropout with surrounding code, and cannot trace ours
        return F.dropout(states, rate, training=training)
    dropped: Tensor = _Dropout.apply(states, rate)
    return dropped


def factors(
    shape: Sequence[int],
    rate: float,
    *,
    dtype: torch.dtype,
    device: torch.device,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "*n"]:
    """Return the factors of dropout: 0, or about 1 / (1 - rate), for a rate below 1."""
    level = min(round(rate * _LEVELS), _LEVELS - 1)
    count = math.prod(shape)
    draws = torch.empty(-(-count // 4), dtype=torch.int64, device=device)
    numbers = draws.random_(-(2**63), None, generator=generator).view(torch.int16)[:count].view(tuple(shape))
    # floats directly: products with booleans are slow on the CPU
    kept = torch.ge(numbers, level - _LEVELS // 2, out=torch.empty(shape, dtype=dtype, device=device))
    return kept.mul_(_LEVELS / (_LEVELS - level))


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, rate: float) -> Tensor:
        by = factors(states.shape, rate, dtype=states.dtype, device=states.device)
        ctx.save_for_backward(by)
        return states * by

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (by,) = ctx.saved_tensors
        return gradient * by, None
