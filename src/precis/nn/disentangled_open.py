"""Disentangled attention for training where no kernel keeps scores to itself: all of them in memory, by torch's own ops.

Position scores are looked up in products with the tables (b h n r), as transformers' DeBERTa-v2 does it. Passes over
tensors of n x n numbers are what counts on a GPU, and here are fewer of them: the tables come scaled, both position
scores and the mask are put into one tensor in place, and the content's products are added by the matmul itself.

The gradient of a lookup is a sum over neighbouring keys, since the row of a table never falls as the distance grows.
One running sum along the keys and a difference for each row give it. torch's own adds one number after another to its
place, on a GPU in another order in every run, and most of them to the two rows that all far keys share.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.dropout import dropout as drop
from precis.nn.score_bias import DisentangledBias


def attend_openly(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h n e"]:
    """softmax(scale * q.k + position scores) @ v with gradients; a document of padding gives the mean of its values."""
    heads = queries.shape[1]
    # one axis for documents and heads: a view of n x n scores that is written to would cost a copy in the backward pass
    asking, asked, mixing = (x.flatten(0, 1) for x in (queries, keys, values))
    scores = _position_scores(queries, keys, bias)
    scores.baddbmm_(asking * scale, asked.transpose(1, 2))
    if valid is not None:
        hidden = ~valid.repeat_interleave(heads, 0)[:, None]  # (b n) -> (b*h 1 n)
        scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
    weights = drop(scores.softmax(-1), dropout, training=dropout > 0.0)
    return torch.bmm(weights, mixing).unflatten(0, (-1, heads))


def _position_scores(
    queries: Float[Tensor, "b h n e"], keys: Float[Tensor, "b h n e"], bias: DisentangledBias
) -> Float[Tensor, "c n n"]:
    """Both parts, or the one that there is, of every document and head; c = b * h. The caller may write to it."""
    length, device = keys.shape[-2], keys.device
    index = bias.offsets.square(length, device)  # of query i and key j
    firsts = _firsts(bias, length, device)
    total = None
    if bias.position_keys is not None:
        by_row = (queries @ bias.position_keys.transpose(-1, -2)).flatten(0, 1)
        total = _look_up(by_row, index, firsts, True)
    if bias.position_queries is not None:
        by_row = (keys @ bias.position_queries.transpose(-1, -2)).flatten(0, 1)
        of_key = _look_up(by_row, index.T, firsts, False).transpose(1, 2)  # (c j i) -> (c i j)
        total = of_key.contiguous() if total is None else total.add_(of_key)
    assert total is not None  # attend asks for disentangled scores only where there is a table
    return total


def _firsts(bias: DisentangledBias, length: int, device: torch.device) -> Int[Tensor, " r+1"]:
    """The smallest distance of each row, -(n-1) to n-1; n for rows that no distance has, and for the end."""
    rows = bias.offsets.descending(length - 1, device).flip(0)  # of the distances -(n-1) to n-1
    wanted = torch.arange(bias.buckets.rows + 1, device=device)
    return torch.searchsorted(rows, wanted) - (length - 1)


def _look_up(
    by_row: Float[Tensor, "c n r"], index: Int[Tensor, "n n"], firsts: Int[Tensor, " r+1"], of_queries: bool
) -> Float[Tensor, "c n n"]:
    found: Tensor = _LookUp.apply(by_row, index, firsts, of_queries)
    return found


class _LookUp(torch.autograd.Function):
    """out[c, i, j] = by_row[c, i, index[i, j]], where index is the row of i - j, or of j - i if not `of_queries`."""

    @staticmethod
    def forward(ctx: Any, by_row: Tensor, index: Tensor, firsts: Tensor, of_queries: bool) -> Tensor:
        ctx.save_for_backward(firsts)
        ctx.of_queries = of_queries
        return by_row.gather(-1, index.expand(len(by_row), -1, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (firsts,) = ctx.saved_tensors
        length = gradient.shape[-1]
        places = torch.arange(length, device=gradient.device)[:, None]
        # Row r's columns lie between its edge and the next one's; queries meet them in falling order.
        edges = places - firsts + 1 if ctx.of_queries else places + firsts
        edges = edges.clamp_(0, length)
        exact = torch.float64 if gradient.dtype == torch.float64 else torch.float32
        sums = gradient.cumsum(-1, dtype=exact)
        before = sums.gather(-1, (edges - 1).clamp_(min=0).expand(len(sums), -1, -1))
        before = before.masked_fill_(edges == 0, 0.0)
        first, second = before[..., :-1], before[..., 1:]
        by_row = first - second if ctx.of_queries else second - first
        return by_row.to(gradient.dtype), None, None, None
