"""Disentangled attention on the CPU without gradients: near band and far field, in memory linear in the length.

Near keys use torch's fused kernel with their position scores as its additive mask. Far keys need no mask: their
table row is added to the query, and the query's own position score shifts the logarithm of the sum of
exponentials (`_Documents`). Those logarithms then merge the parts exactly.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from precis.nn.disentangled.inputs import (
    Band,
    Operands,
    Tables,
    against_table,
    bands,
    documents_at_a_time,
    exact,
    heads_first,
    near_scores,
    room_for,
)

# Query rows at a time, and number of scores: 4 MB of fp32 stay in the cache.
_BLOCK = 256
_SCORES = 1 << 20

_kernel = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


@final
@dataclass(frozen=True)
class Attended:
    """Mixed values, and the logarithm of the sum of exponentials that divided them."""

    mixed: Float[Tensor, "h b n e"]
    lse: Float[Tensor, "h b n"]

    @classmethod
    def empty(cls, operands: Operands) -> "Attended":
        """Allocate memory for the results of all documents."""
        queries = heads_first(operands.queries)
        mixed = torch.empty_like(queries, memory_format=torch.contiguous_format)
        return cls(mixed, mixed.new_empty(mixed.shape[:-1], dtype=exact(mixed.dtype)))


def is_available() -> bool:
    """Return whether this torch has the fused CPU kernel that also returns its log-sum-exp."""
    return _kernel is not None


def attend_in_bands(operands: Operands) -> Attended:
    """Compute mixed values over the valid keys; every document must have at least one."""
    tables = Tables.of(operands, block=_BLOCK)
    batch, heads, length, _ = operands.queries.shape
    spans = bands(length, block=_BLOCK, saturation=operands.options.offsets.buckets.saturation)
    widest = max(band.near for band in spans)
    attended = Attended.empty(operands)
    per_document = heads * min(_BLOCK, length) * widest
    groups = documents_at_a_time(batch=batch, per_document=per_document, most=_SCORES)
    # one allocation for all groups and bands: the first group is the largest
    most = groups[0].stop
    scratch = operands.queries.new_empty(most * per_document)
    room = operands.queries.new_empty(most * heads * room_for(spans))
    has_far = any(band.near < length for band in spans)
    for group in groups:
        documents = _Documents.of(operands, group, tables, has_far=has_far)
        for band in spans:
            part = documents.band(band, tables, scratch, room)
            attended.mixed[:, group, band.asking] = part.mixed
            attended.lse[:, group, band.asking] = part.lse
    return attended


@final
@dataclass(frozen=True)
class _Documents:
    """A group of documents, heads first, with the data for their far keys.

    For far keys a position is one vector per head and side, the past (0) and the future (1). Position-to-content is
    k . Q_end, and scale * q . k + k . Q_end = (scale * q + Q_end) . k: other queries, and unchanged keys.
    Content-to-position is a number per query.
    """

    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    hidden: Float[Tensor, "b 1 n"] | None  # half the lowest number at padded keys, zero at others
    scale: float
    far_of_query: Float[Tensor, "h b n 2"] | None
    ends: Float[Tensor, "h 2 e"] | None

    @classmethod
    def of(cls, operands: Operands, group: slice, tables: Tables, *, has_far: bool) -> "_Documents":
        queries, keys, values = operands.heads_first(group)
        valid, hidden = operands.options.valid, None
        if valid is not None:
            lowest = torch.finfo(keys.dtype).min / 2  # half of it: a score can be added
            hidden = keys.new_zeros(valid[group].shape).masked_fill_(~valid[group], lowest)[:, None]
        c2p = operands.position_keys if has_far else None
        p2c = operands.position_queries if has_far else None
        far_of_query = None if c2p is None else against_table(queries, c2p[:, tables.ends])
        ends = None if p2c is None else p2c[:, tables.ends]
        return cls(queries, keys, values, hidden, operands.options.scale, far_of_query, ends)

    def band(self, band: Band, tables: Tables, scratch: Tensor, room: Tensor) -> Attended:
        """Attend to near and far keys of a block of rows."""
        heads, batch, length, _ = self.queries.shape
        scores = scratch[: heads * batch * band.rows * band.near].view(heads, batch, band.rows, band.near)
        near_scores(self.queries, self.keys, tables, band, scores, room)
        near = slice(band.first, band.last)
        if self.hidden is not None:
            scores.add_(self.hidden[..., near])
        parts = [self._fused(self.queries[:, :, band.asking], near, scores, self.scale)]
        for side, keys in enumerate((slice(0, band.first), slice(band.last, length))):
            if keys.start < keys.stop:
                parts.append(self._far(band.asking, side, keys))
        return _merge(parts)

    def _far(self, rows: slice, side: int, keys: slice) -> Attended:
        asking = self.queries[:, :, rows] * self.scale
        if self.ends is not None:
            asking += self.ends[:, None, side, None]
        part = self._fused(asking, keys, None if self.hidden is None else self.hidden[None, ..., keys], 1.0)
        if self.far_of_query is None:
            return part
        return Attended(part.mixed, part.lse + self.far_of_query[:, :, rows, side])

    def _fused(self, queries: Tensor, keys: slice, scores: Tensor | None, scale: float) -> Attended:
        assert _kernel is not None  # the caller has checked `is_available`
        states = (queries, self.keys[:, :, keys], self.values[:, :, keys])
        return Attended(*_kernel(*states, 0.0, False, attn_mask=scores, scale=scale))


def _merge(parts: list[Attended]) -> Attended:
    """Merge parts of the keys: each is weighted by its sum of exponentials."""
    if len(parts) == 1:
        return parts[0]
    sums = torch.stack([part.lse for part in parts])
    lse = sums.logsumexp(0)
    shares = (sums - lse).exp()
    mixed = shares[0, ..., None] * parts[0].mixed
    for share, part in zip(shares[1:], parts[1:], strict=True):
        mixed = torch.addcmul(mixed, share[..., None], part.mixed.to(mixed.dtype))
    return Attended(mixed, lse)
