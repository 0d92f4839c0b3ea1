"""Scores that a fused kernel may read: rows begin at multiples of 16 bytes.

torch's fused kernels for CUDA load several numbers at once. Given an additive mask whose rows, or whose first number,
lie elsewhere they end in "misaligned address", for some lengths only, and the process's device is lost with them.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

# Of 2 bytes each; for wider types it is more than is asked for.
_ELEMENTS = 8


def empty_aligned(shape: Sequence[int], like: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Uninitialised, its last axis followed by unused numbers where it is no multiple of 8."""
    columns = -(-shape[-1] // _ELEMENTS) * _ELEMENTS
    return like.new_empty((*shape[:-1], columns), dtype=dtype)[..., : shape[-1]]


def is_aligned(scores: Float[Tensor, "*n j"]) -> bool:
    """Whether the first number and every row begin at a multiple of 8 numbers, and a row's numbers are neighbours."""
    *rows, last = scores.stride()
    starts = [scores.storage_offset(), *rows]
    return last == 1 and all(start % _ELEMENTS == 0 for start in starts)


def aligned(scores: Float[Tensor, "*n j"]) -> Float[Tensor, "*n j"]:
    """The same numbers, copied where they have to be."""
    if not torch.compiler.is_compiling() and is_aligned(
        scores
    ):  # where a tensor lies is not known while compiling
        return scores
    return empty_aligned(scores.shape, scores).copy_(scores)


def summed(parts: Sequence[Float[Tensor, "*n j"]]) -> Float[Tensor, "*n j"]:
    """The sum of one or two tensors of a shape, aligned where no gradient is asked for: learnt scores are not fused."""
    if _is_learning(parts):
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
    if len(parts) == 1:
        return aligned(parts[0])
    if torch.compiler.is_compiling():  # which takes no strided `out`
        return aligned(parts[0] + parts[1])
    return torch.add(*parts, out=empty_aligned(parts[0].shape, parts[0]))


def side_by_side(parts: Sequence[Float[Tensor, "*n _"]]) -> Float[Tensor, "*n j"]:
    """Along the last axis, aligned where no gradient is asked for."""
    if _is_learning(parts):
        return torch.cat(list(parts), dim=-1)
    if torch.compiler.is_compiling():
        return aligned(torch.cat(list(parts), dim=-1))
    shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
    return torch.cat(list(parts), dim=-1, out=empty_aligned(shape, parts[0]))


def _is_learning(parts: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(part.requires_grad for part in parts)
