"""The units of an extract: chosen by their scores, with what their abbreviations mean, within the requested length.

A paper's summary often fills its cap, so that nothing can be added. Then the units are chosen once more, for a cap that
leaves room. That choice counts if it gives more meanings, keeps the best unit, and is nearly as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from precis_text.abbreviations import meanings_in, spelled_out
from precis_text.length import Cap, Length, Tokens, Words, holds
from precis_text.selection import Units, choose, join_units, shown_texts
from precis_text.units import TextUnit
from precis_text.words import length_in_words

_MOST = 0.1  # largest share of a cap that is kept free
_LEAST = 0.85  # least length of the second choice, relative to the first


def extract_units(
    document: str,
    read: Units,
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
    second = told(chosen(replace(length, cap=smaller, min_words=0)))
    best = _best(read.units, units, scores)
    return second if _is_better(document, first, second, length, best=best) else first


def _best(all_units: Sequence[TextUnit], units: Sequence[TextUnit], scores: Sequence[float]) -> TextUnit:
    """Return the unit of an extract with the highest score."""
    score_at = {unit.start: score for unit, score in zip(all_units, scores, strict=True)}
    return max(units, key=lambda unit: score_at[unit.start])


def _is_better(
    document: str, first: Sequence[TextUnit], second: Sequence[TextUnit], length: Length, *, best: TextUnit
) -> bool:
    """Check whether a second choice gives more meanings, keeps the best unit, and is nearly as long."""
    before, after = (length_in_words(join_units(document, units)) for units in (first, second))
    gives_more = len(_meanings(second)) > len(_meanings(first))
    keeps = any(unit.start == best.start for unit in second)
    return gives_more and keeps and after >= max(_LEAST * before, min(length.min_words, before))


def _meanings(units: Sequence[TextUnit]) -> list[str]:
    return meanings_in(" ".join(shown_texts(units)))


def _lacking(document: str, units: Sequence[TextUnit], told: Sequence[TextUnit]) -> list[str]:
    """Return the meanings in square brackets that an extract lacked room for."""
    given = {*_meanings(told)}
    return [each for each in _meanings(spelled_out(document, units, lambda _: True)) if each not in given]


def _smaller(cap: Cap | None, added: Sequence[str], count: Callable[[str], int]) -> Cap | None:
    """Return a cap with room for some texts; None if they would take too much of it, or need none, as in sentences."""
    if isinstance(cap, Words):
        room = sum(map(length_in_words, added))
        return Words(count=cap.count - room) if room <= _MOST * cap.count else None
    if isinstance(cap, Tokens):
        room = sum(count(f" {text}") for text in added)
        return Tokens(count=cap.count - room) if room <= _MOST * cap.count else None
    return None
