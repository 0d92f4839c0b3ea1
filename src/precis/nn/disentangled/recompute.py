"""Disentangled attention for training: scores are made again in the backward pass, a block of rows at a time.

Memory grows with the length and not with its square, and no gradient is scattered: what belongs to one distance is
written along the same strided view that the forward pass reads, then one matmul sums it. The same numbers come out in
every run. Kept between the passes are inputs, output, and each row's log-sum-exp (as FlashAttention does, Dao et al.
2022, appendix B.4).
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.disentangled.bands import Attended, attend_in_bands, is_available
from precis.nn.disentangled.gradients import Gradients
from precis.nn.disentangled.tiles import (
    Band,
    FarScores,
    Tables,
    bands,
    documents_at_a_time,
    heads_first,
    near_scores,
)
from precis.nn.dropout import factors
from precis.nn.relative_positions import LogBuckets, OffsetRows
from precis.nn.score_bias import DisentangledBias

_BLOCK = 128
_SCORES = 1 << 20


@final
@dataclass(frozen=True)
class Options:
    """What is not differentiated."""

    buckets: LogBuckets
    offsets: OffsetRows
    valid: Bool[Tensor, "b n"] | None
    scale: float
    dropout: float


def attend_recomputing(
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
    options = Options(bias.buckets, bias.offsets, valid, scale, dropout)  # no tensor that a checkpoint frees
    mixed: Tensor = _Recomputing.apply(
        queries, keys, values, bias.position_keys, bias.position_queries, options
    )
    return mixed


class _Recomputing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, options = inputs
        seed = int(torch.randint(2**62, ())) if options.dropout else 0
        blocks = _Blocks.of(tensors, options, seed)
        attended = blocks.forward()
        ctx.options, ctx.seed = options, seed
        ctx.save_for_backward(*tensors, attended.mixed, attended.lse)
        return attended.mixed.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, mixed, lse = ctx.saved_tensors
        blocks = _Blocks.of(tensors, ctx.options, ctx.seed)
        return (*blocks.backward(heads_first(gradient), Attended(mixed, lse)), None)


@final
@dataclass(frozen=True)
class _Blocks:
    """The inputs, and the passes over them block by block."""

    queries: Float[Tensor, "b h n e"]
    keys: Float[Tensor, "b h n e"]
    values: Float[Tensor, "b h n e"]
    bias: DisentangledBias
    options: Options
    seed: int

    @classmethod
    def of(cls, tensors: list[Tensor], options: Options, seed: int) -> "_Blocks":
        queries, keys, values, position_keys, position_queries = tensors
        bias = DisentangledBias(
            queries=queries,
            keys=keys,
            position_keys=position_keys,
            position_queries=position_queries,
            buckets=options.buckets,
            shared=options.offsets,
        )
        return cls(queries, keys, values, bias, options, seed)

    def groups(self) -> list[slice]:
        batch, heads, length, _ = self.queries.shape
        per_document = heads * min(_BLOCK, length) * length
        return documents_at_a_time(batch=batch, per_document=per_document, most=_SCORES)

    def forward(self) -> Attended:
        exact = self.queries.dtype in (torch.float32, torch.float64)
        if exact and not self.options.dropout and self.queries.device.type == "cpu" and is_available():
            return attend_in_bands(
                self.queries,
                self.keys,
                self.values,
                self.bias,
                valid=self.options.valid,
                scale=self.options.scale,
            )
        tables = Tables.of(self.bias, block=_BLOCK)
        mixed = torch.empty_like(heads_first(self.queries), memory_format=torch.contiguous_format)
        lse = torch.empty(mixed.shape[:-1], dtype=_exact(mixed.dtype), device=mixed.device)
        for group in self.groups():
            document = self.document(group, tables)
            for index, band in enumerate(document.spans):
                scores = document.scores(band)
                lse[:, group, band.asking] = scores.logsumexp(-1)
                weights = torch.softmax(scores, dim=-1)
                by = document.factors(index, band)
                if by is not None:
                    weights.mul_(by)
                mixed[:, group, band.asking] = weights.to(mixed.dtype) @ document.values
        return Attended(mixed, lse)

    def backward(self, gradient: Float[Tensor, "h b n e"], attended: Attended) -> tuple[Tensor | None, ...]:
        tables = Tables.of(self.bias, block=_BLOCK)
        total = Gradients.zeros(self.queries, self.bias, tables)
        agreement = (gradient * attended.mixed).sum(
            -1, dtype=attended.lse.dtype
        )  # D of FlashAttention's Eq. 4
        for group in self.groups():
            document = self.document(group, tables)
            part = total.of_documents(group, document.queries, document.keys, tables)
            for index, band in enumerate(document.spans):
                given = gradient[:, group, band.asking].contiguous()
                weights = document.scores(band)
                weights.sub_(attended.lse[:, group, band.asking, None]).exp_()
                by_weight = (given @ document.values.transpose(-1, -2)).to(weights.dtype)
                by = document.factors(index, band)
                if by is not None:
                    by_weight.mul_(by)
                by_score = by_weight.sub_(agreement[:, group, band.asking, None]).mul_(weights)
                if document.empty is not None:
                    by_score.masked_fill_(document.empty, 0.0)
                if by is not None:
                    weights.mul_(by)
                part.add(band, by_score.to(given.dtype), weights.to(given.dtype), given, self.options.scale)
            part.finish(self.bias)
        return total.finished(self.bias)

    def document(self, group: slice, tables: Tables) -> "_Documents":
        queries, keys, values = (
            heads_first(x[group]).contiguous() for x in (self.queries, self.keys, self.values)
        )
        valid = self.options.valid
        spans = bands(keys.shape[-2], block=_BLOCK, saturation=self.bias.buckets.saturation)
        return _Documents(
            queries=queries,
            keys=keys,
            values=values,
            far=FarScores.of(queries, keys, self.bias),
            tables=tables,
            hidden=None if valid is None else ~valid[group][:, None, :],
            # asked before on the CPU, where asking costs nothing
            empty=None
            if valid is None or valid.device.type == "cpu"
            else ~valid[group].any(-1)[:, None, None],
            spans=spans,
            scratch=keys.new_empty(
                keys.shape[0] * keys.shape[1] * min(_BLOCK, keys.shape[2]) * keys.shape[2]
            ),
            options=self.options,
            seed=self.seed + group.start * len(spans),
        )


@final
@dataclass(frozen=True, kw_only=True)
class _Documents:
    """Some documents, heads first."""

    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    far: FarScores
    tables: Tables
    hidden: Bool[Tensor, "b 1 n"] | None
    empty: Bool[Tensor, "b 1 1"] | None  # documents without a token: all keys weigh the same
    spans: list[Band]
    scratch: Float[Tensor, " numbers"]
    options: Options
    seed: int

    def scores(self, band: Band) -> Float[Tensor, "h b i n"]:
        """All scores of a block of rows, in at least fp32. The tensor is used again by the next call."""
        heads, batch, length, _ = self.keys.shape
        scores = self.scratch[: heads * batch * band.rows * length].view(heads, batch, band.rows, length)
        near_scores(self.queries, self.keys, self.tables, band, scores[..., band.first : band.last])
        for side, (first, last) in enumerate(((0, band.first), (band.last, length))):
            if first < last:
                self._far_scores(band, side, slice(first, last), scores[..., first:last])
        asking = self.queries[:, :, band.asking] * self.options.scale
        flat = scores.view(heads * batch, band.rows, length)
        flat.baddbmm_(asking.flatten(0, 1), self.keys.flatten(0, 1).transpose(-1, -2))
        scores = scores.to(_exact(scores.dtype))
        if self.hidden is not None:
            scores.masked_fill_(self.hidden, torch.finfo(scores.dtype).min)
        if self.empty is not None:
            scores.masked_fill_(self.empty, 0.0)
        return scores

    def _far_scores(self, band: Band, side: int, keys: slice, out: Tensor) -> None:
        of_query, of_key = self.far.of_query, self.far.of_key
        if of_query is not None:
            out.copy_(of_query[:, :, band.asking, side, None].expand_as(out))
            if of_key is not None:
                out.add_(of_key[:, :, None, keys, side])
        elif of_key is not None:
            out.copy_(of_key[:, :, None, keys, side].expand_as(out))

    def factors(self, index: int, band: Band) -> Float[Tensor, "h b i n"] | None:
        """What dropout multiplies the weights with, the same in both passes; None without dropout."""
        if not self.options.dropout:
            return None
        device = self.keys.device
        heads, batch, length, _ = self.keys.shape
        return factors(
            (heads, batch, band.rows, length),
            self.options.dropout,
            dtype=_exact(self.keys.dtype),
            device=device,
            generator=torch.Generator(device).manual_seed(self.seed + index),
        )


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
