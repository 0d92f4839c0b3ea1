"""Disentangled attention on the CPU by our own C++ kernel (`cpp/disentangled.cpp`), with gradients.

It equals the plain path up to rounding. For the backward pass it keeps the weights of inputs of up to 512 tokens
(4 bytes per pair of tokens and head) and recomputes those of longer ones.

It also supports bf16, with sums, softmax and position scores in fp32. Processors with AVX512-BF16 multiply it directly;
for others, and for odd head widths, the numbers are first converted to fp32. fp16 is left to torch.
"""

from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.disentangled import cpp_loader
from precis.nn.disentangled.inputs import Operands
from precis.nn.relative_positions import LogBuckets, OffsetRows

READABLE = (torch.float32, torch.bfloat16)
"""The dtypes that the kernel supports; all its inputs have the same one."""

_KEEP_UP_TO = 512  # tokens: a block of keys in the kernel


def attend_compiled(operands: Operands) -> Float[Tensor, "b h n e"]:
    """Compute mixed values over the valid keys; every document must have at least one.

    Raises:
        UserError: the kernel cannot be built here.
    """
    cpp_loader.load("disentangled")
    *states, position_keys, position_queries = operands.tensors
    options, length = operands.options, operands.queries.shape[-2]
    places, used = _places(options.offsets.buckets, length)
    tables = [t if t is None else t[:, used] for t in (position_keys, position_queries)]
    seed = int(torch.randint(2**62, ())) if options.dropout else 0
    valid = None if options.valid is None else options.valid.contiguous()
    keep = length <= _KEEP_UP_TO and operands.is_learning
    mixed: Tensor = _Compiled.apply(
        *states, *tables, places, valid, options.scale, options.dropout, seed, keep
    )
    return mixed


@lru_cache(maxsize=64)
def _places(buckets: LogBuckets, length: int) -> tuple[Int[Tensor, " o"], slice]:
    """Cache `OffsetRows.places`: for a short input, computing them costs as much as a layer's attention."""
    with torch.inference_mode(False):  # a later backward pass may save them
        return OffsetRows(buckets).places(length, torch.device("cpu"))


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
