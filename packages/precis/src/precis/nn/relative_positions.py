"""Relative positions: a map from distance to the row of a learnt table.

Two families: DeBERTa's log buckets (both directions, distance = query - key) and T5's (one direction in the decoder,
two in an encoder).
Distances beyond the table are clamped first, as in Microsoft's code and unlike transformers; without the clamp,
inputs of 512 tokens and more would use untrained rows.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes


class Buckets(ABC):
    """A map from distances (query position - key position) to rows of a table with `rows` rows."""

    rows: int

    @abstractmethod
    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]: ...


@final
@dataclass(frozen=True)
class LogBuckets(Buckets):
    """DeBERTa's delta(i, j) for distance i - j (DeBERTa Eq. 3, log buckets as in the released v2/v3 code).

    Exact up to half of `buckets` in either direction, logarithmic up to `max_distance - 1`, constant beyond.
    `buckets=0` keeps all distances below `max_distance` separate (DeBERTa v1).

    Attributes:
        near: the rows of the distances `saturation`, ..., -`saturation`, computed on the CPU.
    """

    buckets: int = 256
    max_distance: int = 512
    near: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _log_span: float = field(init=False, repr=False, compare=False, default=0.0)

    def __post_init__(self) -> None:
        # Here and not in a pass: reading a tensor would break a compiled graph and wait for a GPU. While a model is
        # built without weights, the default device differs, or tensors hold no data.
        far = self.saturation
        with _disable_current_modes():
            if self.buckets > 0:
                # fp32 as in the released code: ceil() of a rounded logarithm selects the bucket. Loading a model in
                # another dtype makes that the default during construction.
                farthest = (self.max_distance - 1) / (self.buckets // 2)
                span = torch.tensor(farthest, dtype=torch.float32, device="cpu")
                object.__setattr__(self, "_log_span", float(torch.log(span)))
            rows = self(torch.arange(far, -far - 1, -1, device="cpu")).tolist()
        object.__setattr__(self, "near", tuple(rows))

    @property
    def span(self) -> int:
        """Number of rows for one direction."""
        return self.buckets if self.buckets > 0 else self.max_distance

    @property
    def rows(self) -> int:  # type: ignore[override]
        return 2 * self.span

    @property
    def saturation(self) -> int:
        """The distance (in either direction) from which all keys share one row."""
        return self.max_distance - 1

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        distance = distance.clamp(-(self.max_distance - 1), self.max_distance - 1)
        if self.buckets > 0:
            distance = self._bucket(distance)
        return distance + self.span

    def _bucket(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        middle = self.buckets // 2
        size = distance.abs().clamp(min=middle).float()
        # A tensor made on the device: a copy to it would wait, and division by a number rounds differently there.
        divisor = torch.full((), self._log_span, dtype=size.dtype, device=size.device)
        logarithmic = torch.ceil(torch.log(size / middle) / divisor * (middle - 1)) + middle
        # a logarithm rounded up on some device must not move the farthest distance to an untrained row
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
    """Table rows of consecutive distances, computed once and shared by all layers of an encoder pass.

    Rows up to the table's end are a slice of `near_rows`, which all passes share; longer ones belong to this object.
    """

    def __init__(self, buckets: LogBuckets) -> None:
        self.buckets = buckets
        self._near: Int[Tensor, " o"] | None = None
        self._longer: dict[tuple[int, torch.device], Int[Tensor, " o"]] = {}

    def on(self, device: torch.device) -> "OffsetRows":
        """Put the rows on the device now, so that a compiled layer only reads them; return self."""
        self._rows(device)
        return self

    def descending(self, reach: int, device: torch.device) -> Int[Tensor, " o"]:
        """Return the rows of the distances reach, reach - 1, ..., -reach."""
        near, far = self._rows(device), self.buckets.saturation
        if (
            torch.compiler.is_exporting()
        ):  # one program for every reach, with rows that the runtime does not recompute
            distances = torch.arange(-reach, reach + 1, device=device)
            return torch.tensor(self.buckets.near, device=device)[distances.clamp(-far, far) + far]
        if reach <= far:
            return near[far - reach : far + reach + 1]
        if torch.compiler.is_compiling():
            return _lengthened(near, reach - far)  # a graph cannot use the cache or its varying keys
        found = self._longer.get((reach, device))
        if found is None:
            found = self._longer[reach, device] = _lengthened(near, reach - far)
        return found

    def places(self, length: int, device: torch.device) -> tuple[Int[Tensor, " o"], slice]:
        """Return the rows of `descending(length - 1)`, int32 and relative to the lowest, and the table's slice."""
        used = self.used(length)
        return (self.descending(length - 1, device) - used.start).to(torch.int32), used

    def used(self, length: int) -> slice:
        """Return the rows of the table that an input uses, without asking the device."""
        far = self.buckets.saturation
        reach = min(length - 1, far)
        near = self.buckets.near
        return slice(near[far + reach], near[far - reach] + 1)

    def ends(self, device: torch.device) -> Int[Tensor, " 2"]:
        """Return the row shared by all keys of the far past, and that of the far future."""
        return self._rows(device)[:: 2 * self.buckets.saturation]

    def _rows(self, device: torch.device) -> Int[Tensor, " o"]:
        if self._near is None or self._near.device != device:
            self._near = near_rows(self.buckets, device)
        return self._near


_NEAR: dict[tuple[LogBuckets, torch.device], Int[Tensor, " o"]] = {}


def near_rows(buckets: LogBuckets, device: torch.device) -> Int[Tensor, " o"]:
    """Return `LogBuckets.near` on a device: a few kilobytes, copied once for all models."""
    if torch.compiler.is_compiling():
        far = buckets.saturation
        return buckets(torch.arange(far, -far - 1, -1, device=device))
    found = _NEAR.get((buckets, device))
    if found is None:
        with torch.inference_mode(False):  # else later passes could not save them for gradients
            found = torch.tensor(buckets.near, device=device)
        if type(found) is Tensor:  # a tracer's own tensors must not be cached
            _NEAR[buckets, device] = found
    return found


def _lengthened(near: Int[Tensor, " o"], more: int) -> Int[Tensor, " _"]:
    """Repeat the first and the last row `more` times: the rows of distances beyond the table."""
    return torch.cat([near[:1].expand(more), near, near[-1:].expand(more)])


@final
@dataclass(frozen=True)
class PositionTable:
    """The learnt rows shared by all encoder layers, and the row of each distance."""

    table: Float[Tensor, "r d"]
    offsets: OffsetRows
