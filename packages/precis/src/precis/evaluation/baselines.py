"""Baselines that any model must beat (first, longest, most central units), and the bound of copying whole units.

A unit is a line (a dialogue's turn) if the document has several lines, else a sentence. Line breaks join units, so
ROUGE-Lsum sees each as a sentence. Units keep speaker names: with names LEAD-3 on SAMSum's test set gives ROUGE-1/2/L
31.3/8.7/24.2, without them 23.9/9.2/19.7.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from precis.data.pairs.pair import Pair
from precis.evaluation.rouge import Rouge
from precis_text.centrality import Rank, in_windows, lex_rank, text_rank
from precis_text.config import Settings
from precis_text.control_characters import remove_marks
from precis_text.errors import UserError
from precis_text.sentences import split_sentences
from precis_text.units import extraction_units
from precis_text.words import unicode_words


def split_units(document: str) -> list[str]:
    """Return the stripped non-empty lines of `document`, or its sentences if it has only one such line."""
    lines = [line.strip() for line in document.splitlines() if line.strip()]
    return lines if len(lines) > 1 else split_sentences(document)


def without_headings(document: str) -> list[str]:
    """Return the units of `split_units` that are not headings, or all if there are only headings."""
    lines = [line for line in re.finditer(r"[^\n\r]+", document) if line.group().strip()]
    if len(lines) < 2:
        return split_units(document)
    headings = [unit.start for unit in extraction_units(document) if unit.heading]
    found = [
        line.group().strip()
        for line in lines
        if bisect_left(headings, line.start()) == bisect_left(headings, line.end())
    ]
    return found or split_units(document)


def lead(document: str, k: int = 3) -> str:
    """Return the first `k` units that are not headings."""
    return "\n".join(without_headings(document)[: _at_least_one(k)])


def most_central(document: str, k: int = 3, *, rank: Rank = lex_rank) -> str:
    """Return the `k` units that `rank`, lex_rank or text_rank, finds most central, in their order, without headings."""
    units = without_headings(document)
    scores = in_windows(rank, [unicode_words(unit) for unit in units])
    chosen = sorted(range(len(units)), key=lambda place: -scores[place])[: _at_least_one(k)]
    return "\n".join(units[place] for place in sorted(chosen))


def longest(document: str, k: int = 3, *, order: Literal["length", "document"] = "length") -> str:
    """Return the `k` units with the most characters (speaker's name included); the earlier one wins a tie.

    They come longest first: LONGEST-3 then gives ROUGE-1/2/L 32.3/10.3/22.8 on SAMSum's test set.
    `order="document"` restores their order, which raises ROUGE-2 there to 10.4 and ROUGE-L to 24.6.
    """
    units = split_units(document)
    chosen = sorted(range(len(units)), key=lambda i: -len(units[i]))[: _at_least_one(k)]
    return "\n".join(units[i] for i in (chosen if order == "length" else sorted(chosen)))


def oracle(
    document: str, references: Sequence[str], *, rouge: Rouge | None = None, max_units: int | None = None
) -> str:
    """Return the units that a greedy search finds best for the references, in document order.

    Each step adds the unit that most raises ROUGE-1 F1 + ROUGE-2 F1 on the tokens of `rouge`. The search ends
    when no unit does, or after `max_units`. It ignores bigrams across units. With several references it runs for
    each, and the best selection wins, since the score takes the best reference. A greedy extract is near the best
    one, but not always equal. It is empty if document and references share nothing.
    """
    rouge = rouge or Rouge()
    units = split_units(document)
    tokens = [rouge.tokenize(unit) for unit in units]
    limit = len(units) if max_units is None else _at_least_one(max_units)
    found = [_greedy(tokens, rouge.tokenize(reference), limit) for reference in references]
    _, chosen = max(found, key=lambda result: result[0], default=(0.0, []))
    return "\n".join(units[i] for i in sorted(chosen))


def best_units(units: Sequence[str], references: Sequence[str], *, rouge: Rouge) -> list[int]:
    """Return the sorted indices of the units that the search of `oracle` chooses; it reads the references."""
    tokens = [rouge.tokenize(unit) for unit in units]
    found = [_greedy(tokens, rouge.tokenize(reference), len(units)) for reference in references]
    return sorted(max(found, key=lambda result: result[0], default=(0.0, []))[1])


@dataclass(frozen=True)
class _GramCounts:
    """The n-grams that units share with a reference, flat: `unit[e]` contains `gram[e]` `count[e]` times.

    All computation is on these entries, so a step of the search is linear in their number for any document length.
    """

    unit: NDArray[np.int64]
    gram: NDArray[np.int64]
    count: NDArray[np.int64]
    sizes: NDArray[np.int64]  # (units,) n-grams in each unit, shared or not
    wanted: NDArray[np.int64]  # (grams,) occurrences in the reference

    def f1(self, left: NDArray[np.int64], chosen_size: int) -> NDArray[np.float64]:
        """Compute (units,) F1 after adding each unit to a selection of `chosen_size` n-grams that lacks `left`."""
        total = int(self.wanted.sum())
        gains = np.bincount(self.unit, np.minimum(self.count, left[self.gram]), minlength=len(self.sizes))
        hits = total - int(left.sum()) + gains
        return 2 * hits / np.maximum(chosen_size + self.sizes + total, 1)

    def after(self, left: NDArray[np.int64], unit: int) -> NDArray[np.int64]:
        rows = self.unit == unit
        left = left.copy()
        left[self.gram[rows]] -= np.minimum(self.count[rows], left[self.gram[rows]])
        return left


def _greedy(units: Sequence[Sequence[str]], reference: Sequence[str], limit: int) -> tuple[float, list[int]]:
    """Return the score reached and the units chosen, in the order of choice."""
    orders = [
        _count([Counter(unit) for unit in units], Counter(reference)),
        _count([Counter(pairwise(unit)) for unit in units], Counter(pairwise(reference))),
    ]
    left = [grams.wanted for grams in orders]
    size = [0, 0]
    chosen: list[int] = []
    best = 0.0
    while units and len(chosen) < limit:
        scores = np.sum([g.f1(rest, n) for g, rest, n in zip(orders, left, size, strict=True)], axis=0)
        scores[chosen] = -1.0
        unit = int(scores.argmax())
        if scores[unit] <= best:
            break
        best = float(scores[unit])
        chosen.append(unit)
        left = [g.after(rest, unit) for g, rest in zip(orders, left, strict=True)]
        size = [n + int(g.sizes[unit]) for g, n in zip(orders, size, strict=True)]
    return best, chosen


def _count(units: Sequence[Counter[Any]], reference: Counter[Any]) -> _GramCounts:
    ids = {gram: i for i, gram in enumerate(reference)}
    entries = [
        (u, ids[gram], count) for u, unit in enumerate(units) for gram, count in unit.items() if gram in ids
    ]
    flat = np.array(entries, dtype=np.int64).reshape(len(entries), 3)
    return _GramCounts(
        unit=flat[:, 0],
        gram=flat[:, 1],
        count=flat[:, 2],
        sizes=np.array([unit.total() for unit in units], dtype=np.int64),
        wanted=np.array(list(reference.values()), dtype=np.int64),
    )


class Baseline(Protocol):
    """A system that needs no model. One that reads the references is a bound, not a competitor."""

    @property
    def name(self) -> str: ...

    @property
    def reads_references(self) -> bool: ...

    def extract(self, pair: Pair, *, rouge: Rouge) -> str: ...


@dataclass(frozen=True, kw_only=True)
class OfUnits(Settings):
    """A baseline of `units` units that does not read the references."""

    units: int = 3
    reads_references: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"{type(self).__name__.upper()}-{self.units}"


@dataclass(frozen=True, kw_only=True)
class Lead(OfUnits):
    """LEAD-k: the first k units that are not headings."""

    def extract(self, pair: Pair, *, rouge: Rouge) -> str:
        return lead(remove_marks(pair.document), self.units)


@dataclass(frozen=True, kw_only=True)
class Longest(OfUnits):
    """LONGEST-k: the k units with the most characters."""

    order: Literal["length", "document"] = "length"

    def extract(self, pair: Pair, *, rouge: Rouge) -> str:
        return longest(remove_marks(pair.document), self.units, order=self.order)


@dataclass(frozen=True, kw_only=True)
class LexRank(OfUnits):
    """LEXRANK-k: the k units most central by shared words (Erkan & Radev 2004)."""

    def extract(self, pair: Pair, *, rouge: Rouge) -> str:
        return most_central(remove_marks(pair.document), self.units, rank=lex_rank)


@dataclass(frozen=True, kw_only=True)
class TextRank(OfUnits):
    """TEXTRANK-k: the k units most central by shared words and their lengths (Mihalcea & Tarau 2004)."""

    def extract(self, pair: Pair, *, rouge: Rouge) -> str:
        return most_central(remove_marks(pair.document), self.units, rank=text_rank)


@dataclass(frozen=True, kw_only=True)
class Oracle(Settings):
    """ORACLE: the extract closest to the references, which it reads."""

    max_units: int | None = None
    reads_references: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "ORACLE" if self.max_units is None else f"ORACLE-{self.max_units}"

    def extract(self, pair: Pair, *, rouge: Rouge) -> str:
        return oracle(remove_marks(pair.document), pair.all_references, rouge=rouge, max_units=self.max_units)


DEFAULT_BASELINES: tuple[Baseline, ...] = (Lead(), Longest(), LexRank(), TextRank(), Oracle())


def _at_least_one(k: int) -> int:
    if k < 1:
        raise UserError(f"a baseline of {k} units is empty; use 1 or more")
    return k
