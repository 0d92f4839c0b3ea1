"""The outline of a document: one line for each heading or chapter, else for each topic.

Headings come from the format, else from the lines that look like one. A document without headings is divided where its
words change, as TextTiling does (Hearst 1997).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, final

import numpy as np

from precis_text.back_references import has_back_reference
from precis_text.cohesion import announces, asks, is_part
from precis_text.exchanges import is_answer
from precis_text.forms.form import Form, FormLine, FormType, ScoredText
from precis_text.forms.votes import with_votes
from precis_text.length import Length
from precis_text.selection import shown_texts
from precis_text.sentences import split_sentences
from precis_text.units import ENDED, without_item_mark
from precis_text.words import unicode_words

_FEWEST_HEADINGS = 2
_LONG_HEADING = 8  # most words of a heading without text of its own
_BLOCK = 6  # units on each side of a gap that are compared
_APART = 5  # least units of a topic
_DEEP = 0.5  # standard deviations of a gap's depth above the mean that divide two topics
_LONGER = 3  # least letters of a word that is compared
_FEW_WORDS = 4  # fewest words of a sentence that stands for a section
_TELLING = 0.5  # factor on a sentence that refers back to another one


@dataclass(frozen=True)
class Section:
    """The units `start` to `stop` (exclusive) of a document; `heading` is "" for a topic."""

    heading: str
    start: int
    stop: int


def sections_of(source: ScoredText) -> list[Section]:
    """Return the sections of a document by its headings, else by its topics; units before the first heading too."""
    named = [source.passages.at(unit.start).heading for unit in source.units]
    begins = [place for place, name in enumerate(named) if place == 0 or name != named[place - 1]]
    if sum(bool(named[place]) for place in begins) < _FEWEST_HEADINGS:
        named = _marked_headings(source)
        begins = [place for place, name in enumerate(named) if place == 0 or name]
        if sum(bool(named[place]) for place in begins) < _FEWEST_HEADINGS:
            return topics_of(source)
    return [Section(named[start], start, stop) for start, stop in pairwise([*begins, len(named)])]


def topics_of(source: ScoredText) -> list[Section]:
    """Return the sections between which the words change most."""
    words = [
        [w for w in unicode_words(unit.text) if len(w) > _LONGER and not unit.heading]
        for unit in source.units
    ]
    cuts = _cuts(words)
    return [Section("", start, stop) for start, stop in pairwise([0, *cuts, len(words)])]


@final
@dataclass(frozen=True, kw_only=True)
class Outline(Form):
    """One line for each section: its heading, and the sentence that says most."""

    name: ClassVar[FormType] = "outline"

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return a line for each section; with a question, only for those that say something about it."""
        sections, source = sections_of(source), with_votes(source)
        found = [line for line in (section_line(source, each) for each in sections) if line is not None]
        return [line for line in found if line.worth > 0] if self.about else found


def section_line(source: ScoredText, section: Section) -> FormLine | None:
    """Return a section's line; None if it has neither a heading nor a sentence."""
    best = _best(source, section)
    if best is None and not section.heading:
        return None
    shown = "" if best is None else without_item_mark(shown_texts([source.units[best]])[0])
    unit = source.units[section.start if best is None else best]
    text = ": ".join(part for part in (section.heading, shown) if part)
    return FormLine(
        text, unit.start, unit.stop, heading=section.heading, speaker=unit.speaker,
        time=source.passages.at(source.units[section.start].start).time,
        worth=0.0 if best is None else source.scores[best],
        shorter=section.heading if shown and section.heading else "",
    )  # fmt: skip


def _best(source: ScoredText, section: Section) -> int | None:
    """Return the unit of a section that says most; None if there are only headings, also as sentences, and asides."""
    worth = {
        place: source.scores[place] * (_TELLING if _leans(source, place) else 1.0)
        for place in range(section.start, section.stop)
        if not (source.units[place].heading or source.units[place].aside or is_part(source.units[place]))
        if not announces(source.units[place]) and source.units[place].text != section.heading
        if len(source.units[place].text.split()) >= _FEW_WORDS
    }
    return max(worth, key=lambda place: worth[place], default=None)


def _leans(source: ScoredText, place: int) -> bool:
    """Check whether a unit refers back, asks, or starts with a short answer: "On Friday. That suits us."."""
    unit, before = source.units[place], source.units[max(place - 1, 0)]
    answers = before.speaker != unit.speaker and is_answer(before.text, split_sentences(unit.text)[0])
    return has_back_reference(unit.text) or asks(unit) or answers


def _marked_headings(source: ScoredText) -> list[str]:
    """Return the heading that begins at each unit, or "".

    Titles before the text join the next heading, and so do long lines, labels, items, notes in italics and names below
    a closing or behind the text.
    """
    units, names = source.units, [""] * len(source.units)
    below = [False, *(unit.text.startswith("#") for unit in units)]
    told = [
        at
        for at, each in enumerate(units)
        if below[at] or "|" in each.text or not (each.heading or each.aside)
    ]
    for place, (unit, after) in enumerate(pairwise(units[: max(told, default=0) + 1])):
        if not unit.heading or unit.text[0] in "-*•–—" or ENDED.search(unit.text):
            continue
        before = source.units[place - 1]
        is_signed = unit.aside or (place and before.aside and before.text.endswith(","))
        is_short = len(unit.text.split()) <= _LONG_HEADING and not is_signed
        is_told = not after.heading if any(names) else not (after.heading or after.aside)
        if is_told or (any(names) and is_short):
            names[place] = unit.text
    return names


def _cuts(words: Sequence[Sequence[str]]) -> list[int]:
    """Return the units at which a topic begins, without the first."""
    gaps = range(_APART, len(words) - _APART + 1)
    if not gaps:
        return []
    alike = np.array([_cosine(words[max(0, gap - _BLOCK) : gap], words[gap : gap + _BLOCK]) for gap in gaps])
    rises = [_peak(alike[: at + 1][::-1]) + _peak(alike[at:]) - 2 * alike[at] for at in range(len(alike))]
    least = float(np.mean(rises) + _DEEP * np.std(rises))
    cuts: list[int] = []
    for at in sorted(range(len(rises)), key=lambda place: -rises[place]):
        gap = gaps[at]
        if rises[at] > least and all(abs(gap - other) >= _APART for other in cuts):
            cuts.append(gap)
    return sorted(cuts)


def _peak(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the highest of the values before they fall."""
    peak = float(values[0])
    for value in values[1:]:
        if value < peak:
            break
        peak = float(value)
    return peak


def _cosine(left: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> float:
    one, other = (Counter(word for unit in side for word in unit) for side in (left, right))
    product = sum(count * other[word] for word, count in one.items())
    size = sum(c * c for c in one.values()) * sum(c * c for c in other.values())
    return float(product / size**0.5) if size else 0.0
