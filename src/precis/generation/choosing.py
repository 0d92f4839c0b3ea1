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
from precis.data.text.wholeness import asks, goes_on, is_part
from precis.data.text.words import length_in_words, unicode_words
from precis.generation.length import Cap, Length, Sentences, Tokens, Words

_SAME = 0.5  # share of a unit's pairs of words that chosen units may have
_HALF = 0.5  # of the worth of what does not fit, or of the best: what may fill the room that is left
_NEARLY = 0.7  # of the worth of the best, which would have to be cut: what may stand in its place
_FEWEST = 3  # words of a unit that is chosen beside others
_FEW = 5  # words of a unit that says something
_SHORT = 0.3  # what a shorter unit is worth of its score
_QUESTION = 0.5  # what a question without its answer is worth of its score
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
    """Return the places of the units of highest worth that fit, in order; at least one.

    Headings and parts of units are never chosen, and a sentence that leans on the one before it only after that one. A
    unit is passed over if most of its pairs of words are chosen already, if it is a word or two, or if it does not fit;
    then others may that are half as good, or nearly as good where nothing is chosen yet. Beyond `words`, half of a cap
    is filled with the best, and the other half with what is half as good as the best. If no unit fits, the best one is
    chosen, and has to be cut.

    Args:
        scores: one for each unit, 0 to 1.
        words: how long the extract is to be if there is no cap.
    """
    sizes = [length_in_words(unit.text) for unit in read.units]
    costs = _costs(read, sizes, length.cap)
    limit = words if length.cap is None else length.cap.count
    worth = [_worth(*each) for each in zip(read.units, scores, sizes, strict=True)]
    waiting = _Waiting(read.units, worth)
    best = waiting.best
    chosen: list[int] = []
    seen: set[tuple[str, str]] = set()
    spent = written = 0
    least = 0.0
    for place in waiting:
        pairs = set(pairwise(unicode_words(read.units[place].text)))
        is_said = bool(chosen and pairs) and len(pairs & seen) > _SAME * len(pairs)
        over = spent + costs[place] - limit
        if is_said or worth[place] < least or (chosen and sizes[place] < _FEWEST):
            pass
        elif length.cap is not None and over > 0:
            least = max(least, worth[place] * (_HALF if chosen else _NEARLY))  # what is to stand in its place
        elif chosen and over > limit - spent and written >= length.min_words:
            break  # farther from the length with it than without
        else:
            chosen.append(place)
            waiting.choose(place)
            spent, written = spent + costs[place], written + sizes[place]
            seen |= pairs
            if _may_end(length, written, spent, words):
                least = max(least, _HALF * worth[best])
    return sorted(chosen) or [best]


def _may_end(length: Length, written: int, spent: int, words: float) -> bool:
    """Whether an extract is long enough: as long as suits the document, and half of what was asked for.

    Who counts sentences wants so many.
    """
    if not isinstance(length.cap, Words | Tokens):
        return False
    return written >= max(words, length.min_words) and 2 * spent >= length.cap.count


def _worth(unit: TextUnit, score: float, words: int) -> float:
    """What a unit is worth in a summary: a question less than its score, and a few words less than that."""
    return score * (_QUESTION if asks(unit) else 1.0) * (_SHORT if words < _FEW else 1.0)


class _Waiting:
    """Units that may be chosen, the best first. One that leans on the unit before it comes once that is chosen."""

    def __init__(self, units: Sequence[TextUnit], worth: Sequence[float]) -> None:
        self._worth = worth
        out = [unit.heading or is_part(unit) for unit in units]
        self._leaning = [
            place > 0 and not out[place] and (leans(unit.text) or goes_on(units[place - 1], unit))
            for place, unit in enumerate(units)
        ]
        free = [place for place in range(len(units)) if not out[place] and not self._leaning[place]]
        if not free:  # then all that is no heading, or all
            self._leaning = [False] * len(units)
            free = [place for place, unit in enumerate(units) if not unit.heading] or [*range(len(units))]
        self._heap = [(-worth[place], place) for place in free]
        heapify(self._heap)

    @property
    def best(self) -> int:
        """The unit of the highest worth, while none has been taken out."""
        return self._heap[0][1]

    def __iter__(self) -> Iterator[int]:
        """Take units out."""
        while self._heap:
            yield heappop(self._heap)[1]

    def choose(self, place: int) -> None:
        """A unit was chosen, so that one that leans on it may be."""
        following = place + 1
        if following < len(self._leaning) and self._leaning[following]:
            heappush(self._heap, (-self._worth[following], following))


def _costs(read: Units, words: Sequence[int], cap: Cap | None) -> Sequence[int]:
    """What each unit takes of a cap."""
    if isinstance(cap, Sentences):
        return [len(split_sentences(unit.text)) for unit in read.units]
    return read.tokens if isinstance(cap, Tokens) else words


def joined(document: str, units: Sequence[TextUnit]) -> str:
    """Units as one text: a line break between those of different lines, else white space as the document has it."""
    text = units[0].text
    for before, unit in pairwise(units):
        if "\n" in document[before.stop : unit.start]:
            text += "\n"
        elif document[unit.start - 1].isspace():  # Chinese and Japanese sentences stand without
            text += " "
        text += unit.text
    return text
