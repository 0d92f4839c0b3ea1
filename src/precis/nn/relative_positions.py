"""Relative distance -> row of a learnt table.

Two families: DeBERTa's log buckets (both directions, distance = query - key) and T5's (one direction in the decoder,
two in an encoder).
Distances beyond the table are clamped first, as Microsoft's code does and transformers does not; without the clamp
the rows that were never trained are hit from 512 tokens on.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Buckets(ABC):
    """Maps distances (query position - key position) to rows of a table with `rows` rows."""

    rows: int

    @abstractmethod
    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]: ...


@final
@dataclass(frozen=True)
class LogBuckets(Buckets):
    """DeBERTa's delta(i, j) for distance i - j (DeBERTa Eq. 3, log buckets as in the released v2/v3 code).

    Exact up to half of `buckets` in either direction, logarithmic up to `max_distance - 1`, constant beyond.
    `buckets=0` keeps every distance below `max_distance` apart (DeBERTa v1).
    """

    buckets: int = 256
    max_distance: int = 512

    @property
    def span(self) -> int:
        """Rows for one direction."""
        return self.buckets if self.buckets > 0 else self.max_distance

    @property
    def rows(self) -> int:  # type: ignore[override]
        return 2 * self.span

    @property
    def saturation(self) -> int:
        """From this distance on (either direction) every key shares one row."""
        return self.max_distance - 1

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        distance = distance.clamp(-(self.max_distance - 1), self.max_distance - 1)
        if self.buckets > 0:
            distance = self._bucket(distance)
        return (distance + self.span).clamp(0, self.rows - 1)

    def _bucket(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        middle = self.buckets // 2
        size = distance.abs().clamp(min=middle).float()
        # fp32 as in the released code: ceil() of a rounded logarithm decides the bucket
        scale = float(torch.log(torch.tensor((self.max_distance - 1) / middle)))
        # A tensor made on the device: a copy to it would wait for it, and dividing by a number rounds otherwise there.
        divisor = torch.full((), scale, device=size.device)
        logarithmic = torch.ceil(torch.log(size / middle) / divisor * (middle - 1)) + middle
        # a logarithm rounded up on some device must not push the farthest distance to a row that is never trained
        logarithmic = logarithmic.clamp(max=2 * middle - 1)
        return torch.where(distance.abs() <= middle, distance, (logarithmic * distance.sign()).long())


@final
@dataclass(frozen=True)
class CausalBuckets(Buckets):
    """T5's one-directional buckets: half exact, half logarithmic up to `max_distance`; the future shares row 0."""

    buckets: int = 32
    max_distance: int = 128

    @property
    def rows(self) -> int:  # type: ignore[override]
        return self.buckets

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        past = distance.clamp(min=0)
        exact = self.buckets // 2
        ratio = torch.log(past.clamp(min=exact).float() / exact) / math.log(self.max_distance / exact)
        logarithmic = exact + (ratio * (self.buckets - exact)).long()
        return torch.where(past < exact, past, logarithmic.clamp(max=self.buckets - 1))


@final
@dataclass(frozen=True)
class TwoWayBuckets(Buckets):
    """T5's encoder buckets: one half for the past, one for the future, each half exact, half logarithmic."""

    buckets: int = 32
    max_distance: int = 128

    @property
    def rows(self) -> int:  # type: ignore[override]
        return self.buckets

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        one_way = CausalBuckets(self.buckets // 2, self.max_distance)
        return one_way(distance.abs()) + (distance < 0) * one_way.rows


@final
@dataclass(frozen=True)
class HeadTable:
    """A learnt score for each bucket and head, and the map from distance to bucket (T5)."""

    table: Float[Tensor, "r h"]
    buckets: TwoWayBuckets


@final
class OffsetRows:
    """Table rows of consecutive distances, worked out once: all layers of an encoder pass share them."""

    def __init__(self, buckets: LogBuckets) -> None:
        self._buckets = buckets
        self._descending: dict[tuple[int, torch.device], Int[Tensor, " o"]] = {}
        self._ends: dict[torch.device, Int[Tensor, " 2"]] = {}
        self._squares: dict[tuple[int, torch.device], Int[Tensor, "n n"]] = {}
        self._places: dict[tuple[int, torch.device], tuple[Int[Tensor, " o"], slice]] = {}

    def descending(self, reach: int, device: torch.device) -> Int[Tensor, " o"]:
        """Rows of the distances reach, reach - 1, ..., -reach."""
        found = self._descending.get((reach, device))
        if found is None:
            found = self._buckets(torch.arange(reach, -reach - 1, -1, device=device))
            self._descending[reach, device] = found
        return found

    def square(self, length: int, device: torch.device) -> Int[Tensor, "n n"]:
        """The row of every pair (query, key) of a short input."""
        found = self._squares.get((length, device))
        if found is None:
            # element (i, j) is the row of distance i - j, which stands at place length - 1 - i + j
            rows = self.descending(length - 1, device).flip(0)
            found = rows.unfold(0, length, 1).flip(1).contiguous()
            self._squares[length, device] = found
        return found

    def places(self, length: int, device: torch.device) -> tuple[Int[Tensor, " o"], slice]:
        """The rows of `descending(length - 1)`, int32 and counted from the lowest, and that slice of the table."""
        found = self._places.get((length, device))
        if found is None:
            rows = self.descending(length - 1, device)
            lowest, highest = int(rows[-1]), int(rows[0])
            found = (rows - lowest).to(torch.int32), slice(lowest, highest + 1)
            self._places[length, device] = found
        return found

    def ends(self, device: torch.device) -> Int[Tensor, " 2"]:
        """The rows that all keys of the far past share, and those of the far future."""
        if device not in self._ends:
            far = self._buckets.saturation
            self._ends[device] = self._buckets(torch.arange(far, -far - 1, -2 * far, device=device))
        return self._ends[device]


@final
@dataclass(frozen=True)
class PositionTable:
    """The learnt rows that all encoder layers share, and the map from distance to row.

    Args:
        offsets: rows already worked out in this pass; None: they are worked out anew.
    """

    table: Float[Tensor, "r d"]
    buckets: LogBuckets
    offsets: OffsetRows | None = None
