"""A batch without its padding: documents (or their chunks) of about one length side by side, all others cut off.

The tokens of all groups form one row, so that projections, norms and feed-forward networks see real tokens (and few
others); attention runs group by group, on slices that need no copy. The groups are sorted by length; within one,
lengths differ by an eighth or 16 positions at most. Where a kernel takes documents of any lengths in one launch
(`disentangled/flash.py`), `Documents` says where each begins and ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from precis.nn.disentangled import flash
from precis.nn.layer_plan import Global, Local
from precis.nn.padding import Documents, padding_mask, sent

# A batch is packed when at least this share of its positions would be computed for nothing.
WASTE = 0.05
_SLACK = 16
_SLACK_SHARE = 8


@final
@dataclass(frozen=True)
class Group:
    """Sequences of about one length: `count` times `length` tokens from `start` on.

    Args:
        mask: True at real tokens; None if all are.
    """

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
        """The group's part of the packed tokens; no copy."""
        return tokens[0, self.start : self.stop].view(self.count, self.length, -1)


@final
@dataclass(frozen=True)
class Packing:
    """Where each packed token comes from in the flattened batch (row * width + position).

    Args:
        shape: rows and width of the batch.
        real: which packed tokens are real; None if all are.
        kept, target: the places of the real ones, and where they come from; None if all are real.
        documents: None if no kernel needs them, or if a document has padding between its tokens.
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

        A device with a kernel for documents of any lengths packs whatever has padding: the kernel's form with a mask
        is compiled for each shape of a batch.

        Args:
            seen: `valid` in the host's memory, where this is decided; if None, all of it is True (`host_mask`).
        """
        width = _width(valid.shape[1], scope)
        if seen is None:
            if WASTE > 0.0 and valid.shape[1] % max(width, 1) == 0:
                return None  # nothing to leave out, and no need to go through the rows
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
        flat = seen.reshape(-1)
        built, sources, reals, start = [], [], [], 0
        for group in groups:
            length = _longest(group)
            offsets = np.arange(length)
            starts = np.array([span.start for span in group])[:, None]
            inside = offsets < np.array([span.length for span in group])[:, None]
            source = np.where(inside, starts + offsets, 0)
            real = inside & flat[source]
            mask = None if real.all() else padding_mask(sent(real, device))
            built.append(Group(start, len(group), length, mask, device))
            sources.append(source.reshape(-1))
            reals.append(real.reshape(-1))
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

    def split(self, states: Float[Tensor, "b s d"]) -> Float[Tensor, "1 k d"]:
        """The batch's tokens, group by group; zero where a group's sequence is shorter than the group."""
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
        """`work(*rows of a group, group=group)` for every group, put side by side again."""
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
    """(row, position) of each document or chunk that holds a token: what the padded path computes."""
    return [
        (row, first)
        for row in range(seen.shape[0])
        for first in range(0, seen.shape[1], width)
        if seen[row, first : first + width].any()
    ]


def _spans(seen: NDArray[np.bool_], scope: Local | Global) -> list[_Span]:
    """The span from each document's or chunk's first token to its last."""
    length = seen.shape[1]
    width = _width(length, scope)
    spans = []
    for row, first in _starts(seen, width):
        there = np.flatnonzero(seen[row, first : first + width])
        spans.append(_Span(row * length + first + int(there[0]), int(there[-1] - there[0]) + 1))
    return spans


def _grouped(spans: list[_Span]) -> list[list[_Span]]:
    """Spans sorted by length; a new group begins where one is shorter than the longest by more than its slack."""
    groups: list[list[_Span]] = []
    for span in sorted(spans, key=lambda s: -s.length):
        longest = _longest(groups[-1]) if groups else 0
        if groups and longest - span.length <= max(longest // _SLACK_SHARE, _SLACK):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _documents(groups: list[list[_Span]], device: torch.device) -> Documents:
    """The bounds of each span, and of what fills its row up to the group's length."""
    parts = [part for group in groups for s in group for part in (s.length, _longest(group) - s.length)]
    bounds = np.cumsum([0, *(part for part in parts if part)], dtype=np.int32)
    return Documents(sent(bounds, device), max(_longest(group) for group in groups))


def _longest(group: list[_Span]) -> int:
    return group[0].length
