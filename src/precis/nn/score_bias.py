"""Scores that are added to the dot products: the `bias` slot of `attend`.

A bias is asked for a range of query rows, so that a long input never needs all of them at once.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from precis.nn.alignment import side_by_side, summed
from precis.nn.relative_positions import HeadTable, LogBuckets, OffsetRows

# Up to this many query rows all offsets are expanded and shifted into place (2N-1 columns); beyond it the table's
# own columns are gathered, which costs less than the expansion.
_SHIFT_LIMIT = 512


class ScoreBias(ABC):
    """Additive scores for queries i and keys j, already scaled."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Float[Tensor, "#b #h i j"]:
        """The scores of query rows `start` to `stop` (exclusive) against all keys."""


@final
@dataclass(frozen=True)
class DenseBias(ScoreBias):
    """Scores that exist as one tensor: small ones, such as T5's shared table over a short target."""

    scores: Float[Tensor, "#b #h i j"]

    def rows(self, start: int, stop: int) -> Float[Tensor, "#b #h i j"]:
        return self.scores[..., start:stop, :]


@final
@dataclass(frozen=True)
class BucketedBias(ScoreBias):
    """T5's encoder bias: a learnt number for each head and bucket of distance, the same for every row and content."""

    heads: HeadTable
    length: int

    def rows(self, start: int, stop: int) -> Float[Tensor, "1 h i n"]:
        device = self.heads.table.device
        queries, keys = torch.arange(start, stop, device=device), torch.arange(self.length, device=device)
        buckets = self.heads.buckets(queries[:, None] - keys[None, :])
        return self.heads.table[buckets].permute(2, 0, 1)[None]  # (i n h) -> (1 h i n)


@final
@dataclass(frozen=True)
class DisentangledBias(ScoreBias):
    """Content-to-position and position-to-content scores of disentangled attention (DeBERTa Eq. 4).

        c2p(i, j) = q_i . K_r[delta(i, j)]        p2c(i, j) = k_j . Q_r[delta(i, j)]

    The paper writes delta(j, i) for p2c; the released code and weights use delta(i, j), and so do we. Either part is
    left out by passing None for its table. Tables are given already multiplied by the layer's 1/sqrt(3e).
    `shared` holds table rows that other layers of the pass worked out already.
    """

    queries: Float[Tensor, "b h n e"]
    keys: Float[Tensor, "b h n e"]
    position_keys: Float[Tensor, "h r e"] | None
    position_queries: Float[Tensor, "h r e"] | None
    buckets: LogBuckets
    shared: OffsetRows | None = None

    def __post_init__(self) -> None:
        if self.shared is None:
            object.__setattr__(self, "shared", OffsetRows(self.buckets))

    @property
    def offsets(self) -> OffsetRows:
        """The table row of each distance."""
        assert (
            self.shared is not None
        )  # not a cached_property: up to Python 3.11 its lock cuts a compiled graph
        return self.shared

    def documents(self, group: slice) -> "DisentangledBias":
        """The same scores for some rows of the batch."""
        return replace(self, queries=self.queries[group], keys=self.keys[group], shared=self.offsets)

    def rows(self, start: int, stop: int) -> Float[Tensor, "b h i n"]:
        length = self.keys.shape[-2]
        if start == 0 and stop == length and length <= _SHIFT_LIMIT:
            return self._shifted(length)
        return self._gathered(start, stop)

    def _shifted(self, length: int) -> Float[Tensor, "b h n n"]:
        """All rows at once: one column for each of the 2n-1 offsets, then a shift that costs a copy and no gather."""
        device = self.queries.device
        rows = self.offsets.descending(length - 1, device)  # column c holds distance n-1-c
        parts = []
        if self.position_keys is not None:
            by_offset = self.queries @ self.position_keys[:, rows].transpose(-1, -2)  # (b h i 2n-1)
            parts.append(_in_columns(by_offset))
        if self.position_queries is not None:
            by_offset = self.keys @ self.position_queries[:, rows.flip(0)].transpose(-1, -2)  # (b h j 2n-1)
            parts.append(_in_columns(by_offset).transpose(-1, -2))
        return summed(parts)

    def _gathered(self, start: int, stop: int) -> Float[Tensor, "b h i n"]:
        """Rows of a long input: gather near the diagonal; all farther keys share the table's first or last row."""
        length = self.keys.shape[-2]
        reach = self.buckets.saturation
        near_start, near_stop = max(0, start - reach), min(length, stop + reach)
        device = self.queries.device
        distance = (
            torch.arange(start, stop, device=device)[:, None]
            - torch.arange(near_start, near_stop, device=device)[None, :]
        )
        widest = min(length - 1, reach + stop - start)
        index = self.offsets.descending(widest, device)[widest - distance]
        ends = self.offsets.ends(device)
        near, past, future = (
            self._part(start, stop, near_start, near_stop, index),
            self._far(start, stop, 0, near_start, ends[0]),
            self._far(start, stop, near_stop, length, ends[1]),
        )
        if near_stop - near_start == length:
            return near
        return side_by_side([past, near, future])

    def _part(
        self, start: int, stop: int, first: int, last: int, index: Int[Tensor, "i j"]
    ) -> Float[Tensor, "b h i j"]:
        batch, heads = self.queries.shape[:2]
        shape = (batch, heads, *index.shape)
        parts = []
        if self.position_keys is not None:
            by_row = self.queries[..., start:stop, :] @ self.position_keys.transpose(-1, -2)  # (b h i r)
            parts.append(by_row.gather(-1, index.expand(shape)))
        if self.position_queries is not None:
            by_row = self.keys[..., first:last, :] @ self.position_queries.transpose(-1, -2)  # (b h j r)
            parts.append(by_row.gather(-1, index.T.expand(batch, heads, *index.T.shape)).transpose(-1, -2))
        return summed(parts)

    def _far(
        self, start: int, stop: int, first: int, last: int, row: Int[Tensor, ""]
    ) -> Float[Tensor, "b h i j"]:
        """Beyond the table c2p is one number a query and p2c one number a key."""
        total = self.queries.new_zeros(*self.queries.shape[:2], stop - start, last - first)
        if self.position_keys is not None:
            total = (
                total
                + (self.queries[..., start:stop, :] * self.position_keys[:, row, None]).sum(-1)[..., None]
            )
        if self.position_queries is not None:
            key_scores = (self.keys[..., first:last, :] * self.position_queries[:, row, None]).sum(-1)
            total = total + key_scores[..., None, :]
        return total


def _in_columns(by_offset: Float[Tensor, "b h n offsets"]) -> Float[Tensor, "b h n n"]:
    """out[i, j] = by_offset[i, j - i + n - 1].

    In the flattened rows that element stands at i * (2n - 2) + (j + n - 1): dropping the first n - 1 numbers and
    reading rows of 2n - 2 puts column j in place.
    """
    length = by_offset.shape[-2]
    if length == 1:
        return by_offset
    flat = by_offset.flatten(-2)[..., length - 1 : length - 1 + length * (2 * length - 2)]
    return flat.unflatten(-1, (length, 2 * length - 2))[..., :length]
