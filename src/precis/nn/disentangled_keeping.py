"""Disentangled attention for training on short inputs: of all that is n x n only the weights are kept.

For up to a thousand tokens making the scores again costs more than keeping the weights. Position scores are gathered
from products with the table (fewer columns than there are distances), and their gradients added back the same way;
adding is in a fixed order on the CPU, for which this is.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.disentangled_tiles import against_table, documents_at_a_time, heads_first
from precis.nn.dropout import factors
from precis.nn.score_bias import DisentangledBias

# Scores at a time: 4 MB of fp32 stay in the cache.
_SCORES = 1 << 20


@final
@dataclass(frozen=True)
class _Options:
    """What is not differentiated."""

    index: Int[Tensor, "n n"]
    valid: Bool[Tensor, "b n"] | None
    scale: float
    dropout: float


def attend_keeping(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h n e"]:
    """softmax(scale * q.k + position scores) @ v with gradients; every document has a valid key."""
    options = _Options(bias.offsets.square(keys.shape[-2], keys.device), valid, scale, dropout)
    mixed: Tensor = _Keeping.apply(queries, keys, values, bias.position_keys, bias.position_queries, options)
    return mixed


class _Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, options = inputs
        queries, _, values, *_ = tensors
        groups = _groups(queries)
        mixed = torch.empty_like(heads_first(queries), memory_format=torch.contiguous_format)
        kept: list[Tensor] = []
        for group in groups:
            part = _Part.of(tensors, options, group)
            weights = part.weights(options, group)
            kept.append(weights)
            if options.dropout:
                by = factors(weights.shape, options.dropout, dtype=weights.dtype, device=weights.device)
                kept.append(by)
                weights = weights * by
            mixed[:, group] = weights.to(values.dtype) @ part.values
        ctx.options, ctx.groups = options, groups
        ctx.save_for_backward(*tensors, mixed, *kept)
        return mixed.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, mixed = ctx.saved_tensors[:6]
        kept = iter(ctx.saved_tensors[6:])
        options = ctx.options
        total = [None if t is None else torch.zeros_like(t) for t in tensors]
        for group in ctx.groups:
            part = _Part.of(tensors, options, group)
            given = heads_first(gradient[group]).contiguous()
            agreement = (given * mixed[:, group]).sum(-1, keepdim=True)
            weights = next(kept)
            by_weight = (given @ part.values.transpose(-1, -2)).to(weights.dtype)
            used = weights
            if options.dropout:
                by = next(kept)
                by_weight.mul_(by)
                used = weights * by
            by_score = by_weight.sub_(agreement).mul_(weights).to(given.dtype)
            part.add(total, group, by_score, used.to(given.dtype), given, options)
        return (*total, None)


@final
@dataclass(frozen=True)
class _Part:
    """Some documents, heads first, and the tables."""

    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    position_keys: Float[Tensor, "h r e"] | None
    position_queries: Float[Tensor, "h r e"] | None

    @classmethod
    def of(cls, tensors: list[Tensor], options: _Options, group: slice) -> "_Part":
        queries, keys, values = (heads_first(x[group]).contiguous() for x in tensors[:3])
        return cls(queries, keys, values, tensors[3], tensors[4])

    def weights(self, options: _Options, group: slice) -> Float[Tensor, "h b n n"]:
        scores = (self.queries * options.scale) @ self.keys.transpose(-1, -2)
        index = options.index
        if self.position_keys is not None:
            scores += against_table(self.queries, self.position_keys).gather(-1, index.expand_as(scores))
        if self.position_queries is not None:
            by_key = against_table(self.keys, self.position_queries).gather(-1, index.T.expand_as(scores))
            scores += by_key.transpose(-1, -2)
        if options.valid is not None:
            hidden = ~options.valid[group][:, None]
            scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
        exact = torch.float64 if scores.dtype == torch.float64 else torch.float32
        return F.softmax(scores, dim=-1, dtype=exact)

    def add(
        self,
        total: list[Tensor | None],
        group: slice,
        scores: Float[Tensor, "h b n n"],
        weights: Float[Tensor, "h b n n"],
        given: Float[Tensor, "h b n e"],
        options: _Options,
    ) -> None:
        """Add the gradients of these documents to the batch's."""
        across = scores.transpose(-1, -2)
        queries = (scores @ self.keys).mul_(options.scale)
        keys = (across @ self.queries).mul_(options.scale)
        for table, states, by_score, index, out, place in (
            (self.position_keys, self.queries, scores, options.index, queries, 3),
            (self.position_queries, self.keys, across, options.index.T, keys, 4),
        ):
            if table is not None:
                by_row = scores.new_zeros(*scores.shape[:-1], table.shape[1])
                by_row.scatter_add_(-1, index.expand_as(by_score), by_score)
                flat = by_row.flatten(1, 2)
                out += torch.bmm(flat, table).view_as(out)
                _whole(total, place).add_(torch.bmm(flat.transpose(-1, -2), states.flatten(1, 2)))
        for place, gradient in ((0, queries), (1, keys), (2, weights.transpose(-1, -2) @ given)):
            _whole(total, place)[group] = gradient.transpose(0, 1)


def _groups(queries: Float[Tensor, "b h n e"]) -> list[slice]:
    batch, heads, length, _ = queries.shape
    return documents_at_a_time(batch=batch, per_document=heads * length * length, most=_SCORES)


def _whole(total: list[Tensor | None], place: int) -> Tensor:
    found = total[place]
    assert found is not None  # the table is there
    return found
