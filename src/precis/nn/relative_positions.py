"""Relative distance -> row of a learnt table.

Two families: DeBERTa's log buckets (both directions, distance = query - key) and T5's (one direction in the decoder,
two in an encoder).
Distances beyond the table are clamped first, as Microsoft's code does and transformers does not; without the clamp
the rows that were never trained are hit from 512 tokens on.
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

    Attributes:
        near: the rows of the distances `saturation`, ..., -`saturation`, computed on the CPU.
    """

    buckets: int = 256
    max_distance: int = 512
    near: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _log_span: float = field(init=False, repr=False, compare=False, default=0.0)

    def __post_init__(self) -> None:
        # Here and not in a pass: reading a tensor would cut a compiled graph in two, and wait for a GPU. Whoever
        # builds a model without weights has set another device, or tensors that hold nothing.
        far = self.saturation
        with _disable_current_modes():
            if self.buckets > 0:
                # fp32 as in the released code: ceil() of a rounded logarithm decides the bucket. Who loads a model in
                # another type has made that the default while it is built.
                farthest = (self.max_distance - 1) / (self.buckets // 2)
                span = torch.tensor(farthest, dtype=torch.float32, device="cpu")
                object.__setattr__(self, "_log_span", float(torch.log(span)))
            rows = self(torch.arange(far, -far - 1, -1, device="cpu")).tolist()
        object.__setattr__(self, "near", tuple(rows))

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
        # A tensor made on the device: a copy to it would wait for it, and dividing by a number rounds otherwise there.
        divisor = torch.full((), self._log_span, dtype=size.dtype, device=size.device)
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
    """Table rows of consecutive distances, worked out once: all layers of an encoder pass share them.

    Rows up to the table's end are a slice of `near_rows`, which all passes share; longer ones live with this object.
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
        """Rows of the distances reach, reach - 1, ..., -reach."""
        near, far = self._rows(device), self.buckets.saturation
        if (
            torch.compiler.is_exporting()
        ):  # one program for every reach, with rows that no runtime rounds anew
            distances = torch.arange(-reach, reach + 1, device=device)
            return torch.tensor(self.buckets.near, device=device)[distances.clamp(-far, far) + far]
        if reach <= far:
            return near[far - reach : far + reach + 1]
        if torch.compiler.is_compiling():
            return _lengthened(near, reach - far)  # a graph has no use for what is kept, and keys that differ
        found = self._longer.get((reach, device))
        if found is None:
            found = self._longer[reach, device] = _lengthened(near, reach - far)
        return found

    def places(self, length: int, device: torch.device) -> tuple[Int[Tensor, " o"], slice]:
        """The rows of `descending(length - 1)`, int32 and counted from the lowest, and that slice of the table."""
        used = self.used(length)
        return (self.descending(length - 1, device) - used.start).to(torch.int32), used

    def used(self, length: int) -> slice:
        """The rows of the table that an input reads, known without asking the device."""
        far = self.buckets.saturation
        reach = min(length - 1, far)
        near = self.buckets.near
        return slice(near[far + reach], near[far - reach] + 1)

    def ends(self, device: torch.device) -> Int[Tensor, " 2"]:
        """The rows that all keys of the far past share, and those of the far future."""
        return self._rows(device)[:: 2 * self.buckets.saturation]

    def _rows(self, device: torch.device) -> Int[Tensor, " o"]:
        if self._near is None or self._near.device != device:
            self._near = near_rows(self.buckets, device)
        return self._near


_NEAR: dict[tuple[LogBuckets, torch.device], Int[Tensor, " o"]] = {}


def near_rows(buckets: LogBuckets, device: torch.device) -> Int[Tensor, " o"]:
    """`LogBuckets.near` on a device: a few kilobytes, sent there once for all models."""
    if torch.compiler.is_compiling():
        far = buckets.saturation
        return buckets(torch.arange(far, -far - 1, -1, device=device))
    found = _NEAR.get((buckets, device))
    if found is None:
        with torch.inference_mode(False):  # else no later pass could keep them for its gradients
            found = torch.tensor(buckets.near, device=device)
        if type(found) is Tensor:  # tracers make tensors of their own kind, which are nobody else's
            _NEAR[buckets, device] = found
    return found


def _lengthened(near: Int[Tensor, " o"], more: int) -> Int[Tensor, " _"]:
    """Repeat the first and the last row `more` times: the rows of distances beyond the table."""
    return torch.cat([near[:1].expand(more), near, near[-1:].expand(more)])


@final
@dataclass(frozen=True)
class PositionTable:
    """The learnt rows that all encoder layers share, and the row of each distance."""

    table: Float[Tensor, "r d"]
    offsets: OffsetRows
