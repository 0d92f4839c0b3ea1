"""Chooses units by their scores: which of them an extract holds. It needs no model and no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Protocol

from precis.data.text.leaning import leans
from precis.data.text.sentences import split_sentences
from precis.data.text.units import TextUnit
from precis.data.text.words import length_in_words, unicode_words
from precis.generation.length import Cap, Length, Sentences, Tokens

_SAME = 0.5  # share of a unit's pairs of words that chosen units may have
_FEWEST = 3  # words of a unit that is chosen beside others
TOGETHER = 8192  # tokens of an input at most: with more, the scores of global layers take memory
WINDOW = 1024  # units that are scored together
# Times the expected words: a mean of logs is below the log of the mean, and too much costs less than too little.
_GENEROUS = 1.25
_LONGEST = 400  # words of an extract that nobody asked to be of some length


class Units(Protocol):
    """A document's units, and how many tokens each has."""

    @property
    def units(self) -> Sequence[TextUnit]: ...

    @property
    def tokens(self) -> Sequence[int]: ...


def expected_words(logs: Sequence[float]) -> float:
    """How long an extract without a limit is, from what the scorer expects of each window: the log of the words."""
    return min(_LONGEST, _GENEROUS * math.exp(max(logs)))


def inputs_of(rows: Sequence[Sequence[int]], room: int) -> Iterator[list[Sequence[int]]]:
    """Units in inputs of at most `room` tokens; of a unit that is longer than that its beginning."""
    piece: list[Sequence[int]] = []
    for row in rows:
        if piece and sum(map(len, piece)) + len(row) > room:
            yield piece
            piece = []
        piece.append(row[:room])
    if piece:
        yield piece


def choose(read: Units, scores: Sequence[float], length: Length, *, words: float) -> list[int]:
    """Return the places of the units of highest scores that fit, in order; at least one.

    Headings are never chosen, and a sentence that leans on the one before it only after that one. A unit is passed over
    if most of its pairs of words are chosen already, if it has few words, or if it does not fit; then others may that
    are at least half as good.

    Args:
        scores: one for each unit.
        words: how long the extract is to be if there is no cap.
    """
    sizes = [length_in_words(unit.text) for unit in read.units]
    costs = _costs(read, sizes, length.cap)
    limit = words if length.cap is None else length.cap.count
    chosen: list[int] = []
    seen: set[tuple[str, str]] = set()
    spent = written = 0
    least = 0.0
    waiting = _Waiting(read.units, scores)
    while (place := waiting.best()) is not None:
        pairs = set(pairwise(unicode_words(read.units[place].text)))
        if chosen and pairs and len(pairs & seen) > _SAME * len(pairs):
            continue
        if chosen and (scores[place] < least or sizes[place] < _FEWEST):
            continue
        over = spent + costs[place] - limit
        if chosen and length.cap is None and over > limit - spent and written >= length.min_words:
            break  # farther from the length with it than without
        if chosen and length.cap is not None and over > 0:
            least = max(least, scores[place] / 2)  # what fits in its place is to be nearly as good
            continue
        chosen.append(place)
        waiting.choose(place)
        spent, written = spent + costs[place], written + sizes[place]
        seen |= pairs
    return sorted(chosen)


class _Waiting:
    """Units that may be chosen, the best first. One that leans on the unit before it comes once that is chosen."""

    def __init__(self, units: Sequence[TextUnit], scores: Sequence[float]) -> None:
        self._scores = scores
        leaning = [place > 0 and not unit.heading and leans(unit.text) for place, unit in enumerate(units)]
        free = [p for p, unit in enumerate(units) if not unit.heading and not leaning[p]]
        if not free:  # then all that is no heading
            leaning = [False] * len(units)
            free = [place for place, unit in enumerate(units) if not unit.heading]
        self._leaning = leaning
        self._heap = [(-scores[place], place) for place in free]
        heapify(self._heap)

    def best(self) -> int | None:
        """Take out the unit with the highest score; None if there is none."""
        return heappop(self._heap)[1] if self._heap else None

    def choose(self, place: int) -> None:
        """A unit was chosen, so that one that leans on it may be."""
        following = place + 1
        if following < len(self._leaning) and self._leaning[following]:
            heappush(self._heap, (-self._scores[following], following))


def _costs(read: Units, words: Sequence[int], cap: Cap | None) -> Sequence[int]:
    """What each unit takes of a cap."""
    if isinstance(cap, Sentences):
        return [len(split_sentences(unit.text)) for unit in read.units]
    return read.tokens if isinstance(cap, Tokens) else words


def joined(document: str, units: Sequence[TextUnit]) -> str:
    """Units as one text: a space between those that stood in one line, a line break between others."""
    text = units[0].text
    for before, unit in pairwise(units):
        same = "\n" not in document[before.stop : unit.start]
        text += (" " if same else "\n") + unit.text
    return text
