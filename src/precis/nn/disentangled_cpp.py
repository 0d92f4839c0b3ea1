"""Disentangled attention on the CPU by a C++ kernel of our own (`kernels/disentangled.cpp`), with gradients.

It is built on request, `PRECIS_COMPILE=1`, with the machine's C++ compiler: half a minute, once. It reads fp32 alone
and gives the plain path's numbers to rounding.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn import kernels
from precis.nn.score_bias import DisentangledBias


def attend_compiled(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
    dropout: float = 0.0,
) -> Float[Tensor, "b h n e"]:
    """softmax(scale * q.k + position scores) @ v over the valid keys, of which every document has at least one.

    Raises:
        UserError: the kernel cannot be built here.
    """
    kernels.load("disentangled")
    places, used = bias.offsets.places(queries.shape[-2], queries.device)
    tables = [t if t is None else t[:, used] for t in (bias.position_keys, bias.position_queries)]
    seed = int(torch.randint(2**62, ())) if dropout else 0
    dense = None if valid is None else valid.contiguous()
    mixed: Tensor = _Compiled.apply(queries, keys, values, *tables, places, dense, scale, dropout, seed)
    return mixed


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        mixed, sums = torch.ops.precis_disentangled.forward(*inputs)
        ctx.save_for_backward(*inputs[:7], mixed, sums)
        ctx.settings = inputs[7:]
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, mixed, sums = ctx.saved_tensors
        found = torch.ops.precis_disentangled.backward(*tensors, *ctx.settings, gradient, mixed, sums)
        there = [None if t is None else g for g, t in zip(found, tensors[:5], strict=True)]
        return (*there, *[None] * 5)
