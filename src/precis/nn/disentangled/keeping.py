"""Disentangled attention for training on short inputs: of all that is n x n only the weights are kept.

For up to a thousand tokens making the scores again costs more than keeping the weights. Position scores are products
with the table's rows in order of distance, shifted into place (`disentangled_tiles`), and their gradients go back the
same way: nothing is gathered or scattered.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.disentangled.gradients import Gradients
from precis.nn.disentangled.tiles import Band, Tables, documents_at_a_time, heads_first, near_scores, room_for
from precis.nn.dropout import factors
from precis.nn.relative_positions import LogBuckets, OffsetRows
from precis.nn.score_bias import DisentangledBias

# Scores at a time: 4 MB of fp32 stay in the cache.
_SCORES = 1 << 20
_GAP = 16


@final
@dataclass(frozen=True)
class _Options:
    """What is not differentiated."""

    buckets: LogBuckets
    offsets: OffsetRows
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
    options = _Options(bias.buckets, bias.offsets, valid, scale, dropout)
    mixed: Tensor = _Keeping.apply(queries, keys, values, bias.position_keys, bias.position_queries, options)
    return mixed


class _Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, options = inputs
        batch = _Batch.of(tensors, options)
        mixed = torch.empty_like(heads_first(batch.queries), memory_format=torch.contiguous_format)
        kept: list[Tensor] = []
        for group in batch.groups:
            weights = batch.weights(group)
            kept.append(weights)
            if options.dropout:
                by = factors(weights.shape, options.dropout, dtype=weights.dtype, device=weights.device)
                kept.append(by)
                weights = weights * by
            mixed[:, group] = weights.to(mixed.dtype) @ heads_first(batch.values[group])
        ctx.options = options
        ctx.save_for_backward(*tensors, mixed, *kept)
        return mixed.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, mixed = ctx.saved_tensors[:6]
        kept = iter(ctx.saved_tensors[6:])
        batch = _Batch.of(tensors, ctx.options)
        total = Gradients.zeros(batch.queries, batch.bias, batch.tables)
        for group in batch.groups:
            given = heads_first(gradient[group]).contiguous()
            agreement = (given * mixed[:, group]).sum(-1, keepdim=True)
            weights = next(kept)
            by_weight = _product(given, heads_first(batch.values[group])).to(weights.dtype)
            used = weights
            if ctx.options.dropout:
                by = next(kept)
                by_weight.mul_(by)
                used = weights * by
            by_score = by_weight.sub_(agreement).mul_(weights).to(given.dtype)
            asking, asked = (heads_first(x[group]).contiguous() for x in (batch.queries, batch.keys))
            part = total.of_documents(group, asking, asked, batch.tables)
            part.add(batch.band, by_score, used.to(given.dtype), given, ctx.options.scale)
            part.finish(batch.bias)
        return (*total.finished(batch.bias), None)


def _product(given: Float[Tensor, "h b n e"], values: Float[Tensor, "h b n e"]) -> Float[Tensor, "h b n n"]:
    """given @ values^T, with a gap after each row: read column by column, rows a power of two apart would all fall
    into the same few places of the processor's cache."""
    heads, batch, length, _ = given.shape
    out = given.new_empty(heads, batch, length, length + _GAP)[..., :length]
    torch.bmm(given.flatten(0, 1), values.flatten(0, 1).transpose(-1, -2), out=out.flatten(0, 1))
    return out


@final
@dataclass(frozen=True)
class _Batch:
    """The inputs, and all rows and keys as one band: none is far, whatever the table's reach."""

    queries: Float[Tensor, "b h n e"]
    keys: Float[Tensor, "b h n e"]
    values: Float[Tensor, "b h n e"]
    bias: DisentangledBias
    tables: Tables
    options: _Options

    @classmethod
    def of(cls, tensors: list[Tensor], options: _Options) -> "_Batch":
        queries, keys, values, position_keys, position_queries = tensors
        bias = DisentangledBias(
            queries, keys, position_keys, position_queries, options.buckets, options.offsets
        )
        return cls(queries, keys, values, bias, Tables.of(bias, block=keys.shape[-2]), options)

    @property
    def band(self) -> Band:
        length = self.keys.shape[-2]
        return Band(0, length, 0, length)

    @property
    def groups(self) -> list[slice]:
        batch, heads, length, _ = self.queries.shape
        return documents_at_a_time(batch=batch, per_document=heads * length * length, most=_SCORES)

    def weights(self, group: slice) -> Float[Tensor, "h b n n"]:
        """Softmax of some documents' scores, in at least fp32."""
        queries, keys = (heads_first(x[group]).contiguous() for x in (self.queries, self.keys))
        heads, batch, length, _ = queries.shape
        scores = queries.new_empty(heads, batch, length, length)
        room = queries.new_empty(heads * batch * room_for([self.band]))
        near_scores(queries, keys, self.tables, self.band, scores, room)
        asking = (queries * self.options.scale).flatten(0, 1)
        scores.flatten(0, 1).baddbmm_(asking, keys.flatten(0, 1).transpose(-1, -2))
        if self.options.valid is not None:
            hidden = ~self.options.valid[group][:, None]
            scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
        exact = torch.float64 if scores.dtype == torch.float64 else torch.float32
        return torch.softmax(scores, dim=-1, dtype=exact)
