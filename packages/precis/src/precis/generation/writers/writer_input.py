"""The parts that a writer reads of a document longer than its context: the best passages, a start, or pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from precis_text.centrality import in_windows, lex_rank
from precis_text.selection import join_units
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words, unicode_words

Choose = Callable[[str, int], Sequence[int]]
"""From a document and a number of words, the offsets where the chosen units start, in the order of the document."""


def by_centrality(document: str, words: int) -> list[int]:
    """Choose the most central units of a document that `words` hold, by LexRank; at least one."""
    units = [unit for unit in extraction_units(document) if not (unit.heading or unit.aside)]
    scores = in_windows(lex_rank, [unicode_words(unit.text) for unit in units])
    chosen: list[TextUnit] = []
    left = words
    for place in sorted(range(len(units)), key=lambda each: (-float(scores[each]), each)):
        size = length_in_words(units[place].text)
        if size <= left or not chosen:
            chosen.append(units[place])
            left -= size
    return sorted(unit.start for unit in chosen)


@dataclass(frozen=True)
class Readable:
    """A document, the whole `text`, with the `units` that a writer may read, in order."""

    text: str
    units: Sequence[TextUnit]

    @property
    def whole(self) -> str:
        """The text, or the joined units if some were left out."""
        return self.text if len(self.units) == len(extraction_units(self.text)) else self.join(self.units)

    def join(self, units: Sequence[TextUnit]) -> str:
        """Return units as one text."""
        return join_units(self.text, units) if units else ""

    def at(self, starts: Sequence[int]) -> list[TextUnit]:
        """Return the units that start at these offsets."""
        wanted = set(starts)
        return [unit for unit in self.units if unit.start in wanted]

    def best(self, choose: Choose, words: int) -> list[TextUnit]:
        """Return the units chosen for some words; for more words while all of them are units that were left out."""
        most = length_in_words(self.text)
        while not (found := self.at(choose(self.text, words))) and words < most:
            words *= 2
        return found or [*self.units[:1]]

    def passages(self, choose: Choose, fits: Callable[[str], bool], *, words: int) -> str:
        """Return the best units that fit, in order: those for `words` words, or for a tenth fewer until they fit."""
        while words:
            text = self.join(self.at(choose(self.text, words)))
            if text and fits(text):
                return text
            words = words * 9 // 10
        return self.start(fits)

    def start(self, fits: Callable[[str], bool]) -> str:
        """Return the longest start of the document that fits; whole units if one fits."""
        count = _most(len(self.units), lambda count: fits(self.join(self.units[:count])))
        if count:
            return self.join(self.units[:count])
        return longest_start(self.join(self.units[:1]), fits)

    def pieces(self, fits: Callable[[str], bool]) -> list[str]:
        """Return texts that fit and together hold all units; a unit that does not fit is split."""
        texts = [text for unit in self.units for text in _split(unit.text, fits)]
        found: list[str] = []
        while texts:
            count = max(1, _most(len(texts), partial(_fit, texts, fits)))
            found.append("\n".join(texts[:count]))
            texts = texts[count:]
        return found


def _fit(texts: Sequence[str], fits: Callable[[str], bool], count: int) -> bool:
    return fits("\n".join(texts[:count]))


def _split(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Return parts of a text that fit; the caller has checked that some words do."""
    found: list[str] = []
    while not fits(text):
        found.append(longest_start(text, fits) or text[:1])
        text = text[len(found[-1]) :]
    return [*found, text] if text.strip() else found


def longest_start(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest start of a text that fits; "" if none does."""
    return text[: _most(len(text), lambda stop: fits(text[:stop]))]


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `count` that fits, where larger ones fit less; 0 if none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
