"""The units of an extract: chosen by their scores, with what their abbreviations mean, within the requested length.

A paper's summary often fills its cap, so that nothing can be added. Then the units are chosen once more for a cap that
leaves room, if that gives more of the meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from precis_text.abbreviations import meanings_in, spelled_out
from precis_text.length import Cap, Length, Tokens, Words, holds
from precis_text.selection import choose, join_units, shown_texts
from precis_text.units import TextUnit
from precis_text.words import length_in_words

_MOST = 0.1  # largest share of a cap that is kept free


class _Read(Protocol):
    @property
    def units(self) -> Sequence[TextUnit]: ...

    @property
    def tokens(self) -> Sequence[int]: ...


def extract_units(
    document: str,
    read: _Read,
    scores: Sequence[float],
    length: Length,
    *,
    words: float,
    count: Callable[[str], int],
) -> list[TextUnit]:
    """Return the units of an extract in the order of the document, for `join_units`; at least one.

    Args:
        read: the document's units, and the number of tokens in each.
        scores: one for each unit, 0 to 1.
        words: the length of the extract without a cap.
        count: returns the tokens of a text, for a cap in tokens.
    """

    def chosen(asked: Length) -> list[TextUnit]:
        return [read.units[place] for place in choose(read, scores, asked, words=words)]

    def told(units: Sequence[TextUnit]) -> list[TextUnit]:
        return spelled_out(document, units, lambda some: holds(length.cap, join_units(document, some), count))

    units = chosen(length)
    first = told(units)
    lacking = _lacking(document, units, first)
    smaller = _smaller(length.cap, lacking, count) if lacking else None
    if smaller is None:
        return first
    units = chosen(replace(length, cap=smaller, min_words=0))
    second = told(units)
    return second if len(_lacking(document, units, second)) < len(lacking) else first


def _lacking(document: str, units: Sequence[TextUnit], told: Sequence[TextUnit]) -> list[str]:
    """Return the meanings in square brackets that an extract lacked room for."""
    given = {*meanings_in(" ".join(shown_texts(told)))}
    needed = spelled_out(document, units, lambda _: True)
    return [each for each in meanings_in(" ".join(shown_texts(needed))) if each not in given]


def _smaller(cap: Cap | None, added: Sequence[str], count: Callable[[str], int]) -> Cap | None:
    """Return a cap with room for some texts, or None if they would take too much of it."""
    if isinstance(cap, Words):
        room = sum(map(length_in_words, added))
        return Words(count=cap.count - room) if room <= _MOST * cap.count else None
    if isinstance(cap, Tokens):
        room = sum(count(f" {text}") for text in added)
        return Tokens(count=cap.count - room) if room <= _MOST * cap.count else None
    return None
