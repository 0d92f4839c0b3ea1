"""Disentangled attention on CUDA by FlexAttention: the position scores are captured tables that its kernel reads.

The tables are (b h n r): every query against every row of the position keys, every key against every row of the
position queries. The kernel looks up the row of each distance; no tensor has size n x n. For inference only: the
gradients of captured tables are summed by atomic additions, in a different order in every run, so training uses
other paths (source: torch/_inductor/kernel/flex, and pytorch issue 162228 on lost gradients).
"""

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from precis.nn.disentangled.inputs import Operands

ScoreChange = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@cache
def is_available() -> bool:
    """Return whether FlexAttention can be compiled for CUDA here; without Triton it would store all scores."""
    return torch.cuda.is_available() and importlib.util.find_spec("triton") is not None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def serves(device: torch.device) -> bool:
    """Return whether FlexAttention's kernel supports tensors on this device."""
    return device.type == "cuda" and is_available()


@cache
def _attention(*, compiled: bool) -> Callable[..., Any]:
    whole: Any = flex_attention
    return torch.compile(whole) if compiled else whole


def attend_flex(operands: Operands) -> Float[Tensor, "b h n e"]:
    """Compute mixed values. On a CPU FlexAttention runs uncompiled, for tests."""
    queries, keys, values = operands.queries, operands.keys, operands.values
    attention = _attention(compiled=queries.device.type == "cuda")
    return attention(queries, keys, values, score_mod=score_change(operands), scale=operands.options.scale)


def score_change(operands: Operands) -> ScoreChange:
    """Return a function that adds the position scores; padded keys get a very low score, never -inf."""
    farthest, valid = operands.keys.shape[-2] - 1, operands.options.valid
    rows = operands.options.offsets.descending(farthest, operands.keys.device)  # from `farthest` down
    of_query = _against(operands.queries, operands.position_keys)
    of_key = _against(operands.keys, operands.position_queries)

    def change(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = rows[farthest - (i - j)]
        if of_query is not None:
            score = score + of_query[b, h, i, row]
        if of_key is not None:
            score = score + of_key[b, h, j, row]
        # In the dtype in which scores are traced, and not its minimum: the kernel multiplies it by log2(e).
        return score if valid is None else torch.where(valid[b, j], score, torch.finfo(score.dtype).min / 2)

    return change


def _against(
    states: Float[Tensor, "b h n e"], table: Float[Tensor, "h r e"] | None
) -> Float[Tensor, "b h n r"] | None:
    return None if table is None else states @ table.transpose(-1, -2)
