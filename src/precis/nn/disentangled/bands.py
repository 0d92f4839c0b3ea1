"""Disentangled attention on the CPU without gradients: near band and far field (memory linear in length).

Near keys go through the fused kernel with their position scores as its additive mask. Far keys need none: what belongs
to a key is met by other queries (`_FarField`), and the number that belongs to a query only shifts the logarithm of the
sum of its exponentials. The parts are then merged exactly by those logarithms.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from precis.nn.disentangled.tiles import (
    Band,
    Tables,
    against_table,
    bands,
    documents_at_a_time,
    heads_first,
    near_scores,
    room_for,
)
from precis.nn.score_bias import DisentangledBias

# Query rows at a time, and how many scores: 4 MB of fp32 stay in the cache.
_BLOCK = 256
_SCORES = 1 << 20

_kernel = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


def is_available() -> bool:
    """Whether this torch has the fused CPU kernel that gives its log-sum-exp too."""
    return _kernel is not None


@final
@dataclass(frozen=True)
class Attended:
    """Mixed values, and the logarithm of the sum of exponentials they were divided by."""

    mixed: Float[Tensor, "h b n e"]
    lse: Float[Tensor, "h b n"]


def attend_in_bands(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
) -> Attended:
    """softmax(scale * q.k + position scores) @ v over the valid keys, of which every document has at least one."""
    tables = Tables.of(bias, block=_BLOCK)
    length, heads = keys.shape[-2], keys.shape[1]
    spans = bands(length, block=_BLOCK, saturation=bias.buckets.saturation)
    widest = max(band.near for band in spans)
    has_far = any(band.near < length for band in spans)
    mixed = torch.empty_like(heads_first(queries), memory_format=torch.contiguous_format)
    lse = torch.empty(mixed.shape[:-1], dtype=_lse_dtype(queries.dtype), device=queries.device)
    per_document = heads * min(_BLOCK, length) * widest
    groups = documents_at_a_time(batch=len(queries), per_document=per_document, most=_SCORES)
    # one memory for all groups and bands: the first group is the largest
    scratch = queries.new_empty(len(queries[groups[0]]) * per_document)
    room = queries.new_empty(len(queries[groups[0]]) * heads * room_for(spans))
    for group in groups:
        document = _Documents.of(
            queries[group],
            keys[group],
            values[group],
            bias.documents(group),
            scale,
            valid,
            group,
            has_far=has_far,
        )
        for band in spans:
            part = document.band(band, tables, scratch, room)
            mixed[:, group, band.asking] = part.mixed
            lse[:, group, band.asking] = part.lse
    return Attended(mixed, lse)


def _lse_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


@final
@dataclass(frozen=True)
class _Documents:
    """A group of documents, heads first, and what their far keys need."""

    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    hidden: Float[Tensor, "b n"] | None  # the lowest number at padded keys, zero at others
    far: "_FarField | None"
    scale: float

    @classmethod
    def of(
        cls,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: DisentangledBias,
        scale: float,
        valid: Tensor | None,
        group: slice,
        *,
        has_far: bool,
    ) -> "_Documents":
        queries, keys, values = (heads_first(x).contiguous() for x in (queries, keys, values))
        hidden = None
        if valid is not None:
            # half the lowest number: a score can be added to it
            lowest = torch.finfo(keys.dtype).min / 2
            hidden = keys.new_zeros(valid[group].shape).masked_fill_(~valid[group], lowest)
        far = None
        if has_far:
            far = _FarField.of(queries, keys, values, bias, hidden, scale)
        return cls(queries, keys, values, hidden, far, scale)

    def band(self, band: Band, tables: Tables, scratch: Tensor, room: Tensor) -> Attended:
        """Near and far keys of a block of rows."""
        heads, batch = self.queries.shape[:2]
        scores = scratch[: heads * batch * band.rows * band.near].view(heads, batch, band.rows, band.near)
        near_scores(self.queries, self.keys, tables, band, scores, room)
        near = slice(band.first, band.last)
        if self.hidden is not None:
            scores.add_(self.hidden[:, None, near])
        parts = [
            _fused(
                self.queries[:, :, band.asking],
                self.keys[:, :, near],
                self.values[:, :, near],
                scores,
                self.scale,
            )
        ]
        if self.far is not None:
            parts += self.far.parts(band)
        return _merge(parts)


@final
@dataclass(frozen=True)
class _FarField:
    """What far keys need: for them a position is one vector a head and side, the past's and the future's.

    Position-to-content is k . Q_end, and scale * q . k + k . Q_end = (scale * q + Q_end) . k: other queries, and the
    keys as they are. Content-to-position is a number of the query.
    """

    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    hidden: Float[Tensor, "1 b 1 n"] | None
    of_query: Float[Tensor, "h b n 2"] | None
    ends: Float[Tensor, "h 2 e"] | None
    scale: float

    @classmethod
    def of(
        cls,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: DisentangledBias,
        hidden: Tensor | None,
        scale: float,
    ) -> "_FarField":
        ends = bias.offsets.ends(keys.device)
        c2p, p2c = bias.position_keys, bias.position_queries
        return cls(
            queries,
            keys,
            values,
            None if hidden is None else hidden[None, :, None],
            None if c2p is None else against_table(queries, c2p[:, ends]),
            None if p2c is None else p2c[:, ends],
            scale,
        )

    def parts(self, band: Band) -> list[Attended]:
        """The far past and the far future of a block of rows, where there are such keys."""
        length = self.values.shape[-2]
        found = []
        for side, (first, last) in enumerate(((0, band.first), (band.last, length))):
            if first == last:
                continue
            asking = self.queries[:, :, band.asking] * self.scale
            if self.ends is not None:
                asking += self.ends[:, None, side, None]
            far = slice(first, last)
            hidden = None if self.hidden is None else self.hidden[..., far]
            part = _fused(asking, self.keys[:, :, far], self.values[:, :, far], hidden, 1.0)
            lse = part.lse
            if self.of_query is not None:
                lse = lse + self.of_query[:, :, band.asking, side]
            found.append(Attended(part.mixed, lse))
        return found


def _fused(queries: Tensor, keys: Tensor, values: Tensor, scores: Tensor | None, scale: float) -> Attended:
    assert _kernel is not None  # `is_available` was asked
    mixed, lse = _kernel(queries, keys, values, 0.0, False, attn_mask=scores, scale=scale)
    return Attended(mixed, lse)


def _merge(parts: list[Attended]) -> Attended:
    """Parts of the keys put together: each weighs what its exponentials sum to."""
    if len(parts) == 1:
        return parts[0]
    sums = torch.stack([part.lse for part in parts])
    lse = sums.logsumexp(0)
    shares = (sums - lse).exp()
    mixed = shares[0, ..., None] * parts[0].mixed
    for share, part in zip(shares[1:], parts[1:], strict=True):
        mixed = torch.addcmul(mixed, share[..., None], part.mixed.to(mixed.dtype))
    return Attended(mixed, lse)
