"""Disentangled attention on the CPU by a C++ kernel of our own (`kernels/disentangled.cpp`), with gradients.

It is built on request, `PRECIS_COMPILE=1`, with the machine's C++ compiler: half a minute, once. It reads fp32 alone
and gives the plain path's numbers to rounding. For the backward pass weights are kept of inputs of up to 512 tokens
(4 bytes for a pair of tokens and a head) and made again of longer ones.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn import kernels
from precis.nn.score_bias import DisentangledBias

_KEEP_UP_TO = 512  # tokens: a block of keys in the kernel


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
    tensors = (queries, keys, values, *tables)
    learning = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    keep = learning and queries.shape[-2] <= _KEEP_UP_TO
    mixed: Tensor = _Compiled.apply(*tensors, places, dense, scale, dropout, seed, keep)
    return mixed


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        mixed, sums, weights = torch.ops.precis_disentangled.forward(*inputs)
        ctx.save_for_backward(*inputs[:7], mixed, sums, weights)
        ctx.settings = inputs[7:-1]
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, mixed, sums, weights = ctx.saved_tensors
        found = torch.ops.precis_disentangled.backward(
            *tensors, *ctx.settings, gradient, mixed, sums, weights
        )
        there = [None if t is None else g for g, t in zip(found, tensors[:5], strict=True)]
        return (*there, *[None] * 6)
