"""Centrality of a document's units by their words: LexRank and TextRank.

Two units are alike if they share words. A unit is central if many units are like it, and more so if these are central
too. No model, no training and no language is needed, only words.

- LexRank (Erkan & Radev 2004): the cosine of tf-idf vectors, as a graph of the pairs above a threshold.
- TextRank (Mihalcea & Tarau 2004): the shared words, divided by the logs of the two lengths.

The values follow sumy's, to which tests compare them. LexRank may restart its walk: the paper does, sumy does not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rank = Callable[[Sequence[Sequence[str]]], Floats]
"""Scores units by their words: `lex_rank` or `text_rank`."""

WINDOW = 1024  # units that are compared with each other; time and memory grow with its square
_COLUMNS = 4096  # terms that are multiplied at once, so that memory does not grow with the vocabulary
_STEPS = 200  # most steps of a walk
_CLOSE = 1e-9  # a walk ends when no more than this changes
_TINY = 1e-12


@dataclass(frozen=True)
class TermCounts:
    """The words of units, flat: `unit[e]` contains `term[e]` `count[e]` times.

    Attributes:
        units: number of units, with the empty ones.
        frequency: (terms,) the number of units with each term.
        most: (units,) the count of each unit's most frequent term, at least 1.
        sizes: (units,) words of each unit.
    """

    units: int
    unit: NDArray[np.int64]
    term: NDArray[np.int64]
    count: Floats
    frequency: Floats
    most: Floats
    sizes: Floats

    @classmethod
    def of(cls, units: Sequence[Sequence[str]]) -> TermCounts:
        """Count the words of each unit."""
        ids: dict[str, int] = {}
        counted = [Counter(words) for words in units]
        flat = [
            (place, ids.setdefault(word, len(ids)), count)
            for place, words in enumerate(counted)
            for word, count in words.items()
        ]
        entries = np.array(flat, dtype=np.int64).reshape(-1, 3)
        return cls(
            units=len(units), unit=entries[:, 0], term=entries[:, 1], count=entries[:, 2].astype(np.float64),
            frequency=np.bincount(entries[:, 1], minlength=len(ids)).astype(np.float64),
            most=np.array([max(words.values(), default=1) for words in counted], dtype=np.float64),
            sizes=np.array([len(words) for words in units], dtype=np.float64),
        )  # fmt: skip

    def tf_idf(self) -> Floats:
        """Return each entry's weight: tf relative to the unit's most frequent term, times log(units / (1 + df))."""
        return self.count / self.most[self.unit] * np.log(self.units / (1 + self.frequency))[self.term]

    def products(self, weights: Floats) -> Floats:
        """Return the (units, units) inner products of the units' vectors with these weights of the entries."""
        found = np.zeros((self.units, self.units))
        for start in range(0, len(self.frequency), _COLUMNS):
            inside = (self.term >= start) & (self.term < start + _COLUMNS)
            width = min(_COLUMNS, len(self.frequency) - start)
            part = np.zeros((self.units, width))
            part[self.unit[inside], self.term[inside] - start] = weights[inside]
            found += part @ part.T
        return found


def cosines(terms: TermCounts) -> Floats:
    """Return the (units, units) cosines of the tf-idf vectors; 0 for a unit without weight."""
    weights = terms.tf_idf()
    norms = np.sqrt(np.bincount(terms.unit, weights**2, minlength=terms.units))
    return terms.products(weights / np.maximum(norms, _TINY)[terms.unit])


def lex_rank(units: Sequence[Sequence[str]], *, threshold: float = 0.1, restart: float = 0.15) -> Floats:
    """Return (units,) shares of a walk over units that are alike; they sum to 1.

    Args:
        units: the words of each unit.
        threshold: the least cosine of two units that are linked.
        restart: probability of a jump to any unit, 0 to 1; 0 is sumy's, with which parts of a graph may lose all.
    """
    return lex_shares(cosines(TermCounts.of(units)), threshold=threshold, restart=restart)


def lex_shares(alike: Floats, *, threshold: float = 0.1, restart: float = 0.15) -> Floats:
    """Return `lex_rank` of units with these (units, units) cosines."""
    links = (alike > threshold).astype(np.float64)
    degrees = np.maximum(links.sum(1, keepdims=True), 1)
    return _walk(links / degrees, restart)


def text_rank(units: Sequence[Sequence[str]], *, restart: float = 0.15) -> Floats:
    """Return (units,) shares of a walk over units by the words that they share; they sum to 1.

    Args:
        units: the words of each unit.
        restart: probability of a jump to any unit, 0 to 1.
    """
    return text_shares(TermCounts.of(units), restart=restart)


def text_shares(terms: TermCounts, *, restart: float = 0.15) -> Floats:
    """Return `text_rank` of units with these words."""
    logs = np.log(np.maximum(terms.sizes, 1))
    lengths = logs[:, None] + logs[None, :]
    links = terms.products(terms.count) / np.where(lengths > _TINY, lengths, 1.0)
    return _walk(links / np.maximum(links.sum(1, keepdims=True), _TINY), restart)


def in_windows(rank: Rank, units: Sequence[Sequence[str]]) -> Floats:
    """Return (units,) scores with mean 1 in each window of `WINDOW` units, so that time grows with their number."""
    windows = [units[start : start + WINDOW] for start in range(0, len(units), WINDOW)]
    return np.concatenate([np.zeros(0), *(rank(window) * len(window) for window in windows)])


def _walk(steps: Floats, restart: float) -> Floats:
    """Return where a walk ends with these (from, to) probabilities; a unit without links is left by a jump.

    The shares x solve s x = (1 - restart) x steps + restart / count. A unit without links passes nothing on, so that a
    step with the share a of such units keeps s, where s^2 - s + (1 - restart) restart a = 0.
    """
    count = len(steps)
    if not count:
        return np.zeros(0)
    if not restart:
        return _repeated(steps)
    alone = float((steps.sum(1) == 0).mean())
    kept = (1 + math.sqrt(1 - 4 * (1 - restart) * restart * alone)) / 2
    system = -(1 - restart) * steps.T
    system[np.diag_indices(count)] += kept
    shares: Floats = np.linalg.solve(system, np.full(count, restart / count))
    return shares / shares.sum()


def _repeated(steps: Floats) -> Floats:
    """Return where a walk without jumps is after many steps from all units alike."""
    shares = np.full(len(steps), 1.0 / len(steps))
    for _ in range(_STEPS):
        following = shares @ steps
        following /= max(float(following.sum()), _TINY)
        changed = float(np.abs(following - shares).sum())
        shares = following
        if changed < _CLOSE:
            break
    return shares
