"""A batch without its padding: documents (or their chunks), grouped by length and concatenated.

The tokens of all groups form one row, so projections, norms and feed-forward networks process real tokens (and few
others). Attention runs group by group, on slices without copies. Groups are sorted by length; within one,
lengths differ by at most an eighth or 16 positions. For kernels that accept documents of any lengths in one launch
(`disentangled/flash.py`), `Documents` holds their bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor

from precis.nn.disentangled import flash
from precis.nn.layer_plan import Global, Local
from precis.nn.padding import Documents, padding_mask, sent

# A batch is packed if at least this share of its positions would be wasted.
WASTE = 0.05
_SLACK = 16
_SLACK_SHARE = 8


@final
@dataclass(frozen=True)
class Group:
    """Sequences of similar length: `count` times `length` tokens from `start` on; `mask` is None if all are real."""

    start: int
    count: int
    length: int
    mask: Bool[Tensor, "c 1 1 l"] | None
    device: torch.device

    @property
    def valid(self) -> Bool[Tensor, "c l"]:
        """True at real tokens."""
        if self.mask is not None:
            return self.mask[:, 0, 0]
        return torch.ones(self.count, self.length, dtype=torch.bool, device=self.device)

    @property
    def stop(self) -> int:
        return self.start + self.count * self.length

    def rows(self, tokens: Float[Tensor, "1 k d"]) -> Float[Tensor, "c l d"]:
        """Return the group's slice of the packed tokens, without a copy."""
        return tokens[0, self.start : self.stop].view(self.count, self.length, -1)


@final
@dataclass(frozen=True)
class Packing:
    """The source of each packed token in the flattened batch (row * width + position).

    Args:
        shape: rows and width of the batch.
        real: True at real packed tokens; None if all are.
        kept, target: indices of the real packed tokens, and their sources; None if all are real.
        documents: None if the kernel does not need them, or if a document has padding between its tokens.
    """

    groups: tuple[Group, ...]
    shape: tuple[int, int]
    source: Int[Tensor, " k"]
    real: Bool[Tensor, " k"] | None
    kept: Int[Tensor, " r"] | None
    target: Int[Tensor, " r"] | None
    documents: Documents | None = None

    @classmethod
    def of(
        cls, valid: Bool[Tensor, "b s"], scope: Local | Global, *, seen: NDArray[np.bool_] | None
    ) -> "Packing | None":
        """Pack a batch for layers of a scope, or return None if that saves too little (`WASTE`).

        A device with a kernel for documents of any lengths packs every padded batch: with a mask, the kernel
        would be compiled for each shape of a batch.

        Args:
            seen: `valid` in host memory, where this is decided; if None, all of it is True (`host_mask`).
        """
        width = _width(valid.shape[1], scope)
        if seen is None:
            if WASTE > 0.0 and valid.shape[1] % max(width, 1) == 0:
                return None  # no padding, so the rows need no check
            seen = np.ones(tuple(valid.shape), dtype=bool)
        spans = _spans(seen, scope)
        computed = sum(1 for _ in _starts(seen, width)) * width
        groups = _grouped(spans)
        packed = sum(len(group) * _longest(group) for group in groups)
        tokens = sum(span.length for span in spans)
        at_once = flash.serves(valid.device) and int(seen.sum()) == tokens < computed
        if not packed or (packed > (1.0 - WASTE) * computed and not at_once):
            return None
        return cls._build(seen, groups, valid.device, at_once=at_once)

    @classmethod
    def _build(
        cls, seen: NDArray[np.bool_], groups: list[list["_Span"]], device: torch.device, *, at_once: bool
    ) -> "Packing":
        flat = seen.ravel()
        built, sources, reals, start = [], [], [], 0
        for group in groups:
            length = _longest(group)
            offsets = np.arange(length)
            starts = np.array([span.start for span in group])[:, None]
            inside = offsets < np.array([span.length for span in group])[:, None]
            source = np.where(inside, starts + offsets, starts)
            real = inside & flat[source]
            mask = None if real.all() else padding_mask(sent(real, device))
            built.append(Group(start, len(group), length, mask, device))
            sources.append(source.ravel())
            reals.append(real.ravel())
            start += len(group) * length
        source, real = np.concatenate(sources), np.concatenate(reals)
        kept = np.flatnonzero(real)
        whole = len(kept) == len(real)
        return cls(
            groups=tuple(built),
            shape=(seen.shape[0], seen.shape[1]),
            source=sent(source, device),
            real=None if whole else sent(real, device),
            kept=None if whole else sent(kept, device),
            target=None if whole else sent(source[kept], device),
            documents=_documents(groups, device) if at_once else None,
        )

    def split(self, states: Shaped[Tensor, "b s *rest"]) -> Shaped[Tensor, "1 k *rest"]:
        """Return the batch's tokens, group by group; zero where a sequence is shorter than its group."""
        tokens = states.flatten(0, 1).index_select(0, self.source)
        if self.real is not None:
            tokens = tokens.masked_fill(~self.real[:, None], 0.0)
        return tokens[None]

    def join(self, tokens: Float[Tensor, "1 k d"]) -> Float[Tensor, "b s d"]:
        """Return the rows of the batch, zero at padding."""
        packed, source = tokens[0], self.source
        if self.kept is not None and self.target is not None:
            packed, source = packed[self.kept], self.target
        rows, width = self.shape
        whole = packed.new_zeros(rows * width, packed.shape[-1])
        return whole.index_copy(0, source, packed).view(rows, width, -1)

    def each(self, work: Callable[..., Tensor], *tokens: Float[Tensor, "1 k _"]) -> Float[Tensor, "1 k _"]:
        """Call `work(*rows of a group, group=group)` for every group, and concatenate the results."""
        parts = [work(*(group.rows(t) for t in tokens), group=group) for group in self.groups]
        return torch.cat([part.flatten(0, 1) for part in parts])[None]


@final
@dataclass(frozen=True)
class _Span:
    """A sequence in the flattened batch."""

    start: int
    length: int


def _width(length: int, scope: Local | Global) -> int:
    return length if isinstance(scope, Global) else min(length, scope.chunk_length)


def _starts(seen: NDArray[np.bool_], width: int) -> list[tuple[int, int]]:
    """Return (row, position) of each document or chunk with a token: those that the padded path computes."""
    return [
        (row, first)
        for row in range(seen.shape[0])
        for first in range(0, seen.shape[1], width)
        if seen[row, first : first + width].any()
    ]


def _spans(seen: NDArray[np.bool_], scope: Local | Global) -> list[_Span]:
    """Return the span from each document's or chunk's first token to its last."""
    length = seen.shape[1]
    width = _width(length, scope)
    spans = []
    for row, first in _starts(seen, width):
        there = np.flatnonzero(seen[row, first : first + width])
        spans.append(_Span(row * length + first + int(there[0]), int(there[-1] - there[0]) + 1))
    return spans


def _grouped(spans: list[_Span]) -> list[list[_Span]]:
    """Group spans sorted by length; a new group starts where one is shorter than the longest by more than the slack."""
    groups: list[list[_Span]] = []
    for span in sorted(spans, key=lambda s: -s.length):
        longest = _longest(groups[-1]) if groups else 0
        if groups and longest - span.length <= max(longest // _SLACK_SHARE, _SLACK):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _documents(groups: list[list[_Span]], device: torch.device) -> Documents:
    """Return the bounds of each span, and of its filler up to the group's length."""
    parts = [part for group in groups for s in group for part in (s.length, _longest(group) - s.length)]
    bounds = np.cumsum([0, *(part for part in parts if part)], dtype=np.int32)
    return Documents(sent(bounds, device), max(_longest(group) for group in groups))


def _longest(group: list[_Span]) -> int:
    return group[0].length
