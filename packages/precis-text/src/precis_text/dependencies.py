"""Which units of a document a summary may quote alone, and which only after a neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from precis_text.back_references import has_back_reference
from precis_text.cohesion import announces, formalities, goes_on, halves, is_part
from precis_text.exchanges import is_courtesy, only_asks
from precis_text.partners import Partners
from precis_text.units import ENDED, TextUnit


@dataclass(frozen=True)
class Dependencies:
    """Which units may be chosen, and after which others.

    Attributes:
        alone: the places of units that need no other one; at least one.
        answers: those of units that answer a question, and so may be chosen without what they need.
        needs: for each unit, the neighbour without which it says nothing. Its own place says that it comes only
            together with the unit before it or never, None that it needs none or is never chosen.
    """

    alone: frozenset[int]
    answers: frozenset[int]
    needs: Sequence[int | None]

    @classmethod
    def of(cls, units: Sequence[TextUnit], partners: Partners) -> Dependencies:
        """Return the dependencies in a document.

        Headings, asides, courtesies, formalities, halves and parts of units are never chosen while it has others.
        """
        small, formal, asked = halves(units), formalities(units), {*partners.questions.values()}
        follows = [False, *(goes_on(before, unit) for before, unit in pairwise(units))]
        is_out = [
            unit.heading or unit.aside or is_part(unit) or formal[place] or (small[place] and not follows[place])
            or is_courtesy(unit) or (place in asked and only_asks(unit))
            for place, unit in enumerate(units)
        ]  # fmt: skip
        is_written = any(ENDED.search(unit.text) for unit in units)  # speech has no full stops
        refers = [
            place > 0 and (has_back_reference(unit.text) or (is_written and follows[place]))
            for place, unit in enumerate(units)
        ]
        cut = [is_written and half and on for half, on in zip(small, follows, strict=True)]
        is_open = [on or announces(unit) for on, unit in zip([*cut[1:], False], units, strict=True)]
        needs = [None if out else _needed(place, refers, is_open, is_out) for place, out in enumerate(is_out)]
        answers = frozenset(place for place, unit in enumerate(units) if unit.answers and not is_out[place])
        alone = [place for place, need in enumerate(needs) if need is None and not is_out[place]]
        if not alone:  # then all units that say something, or all except headings, or all
            needs = [None] * len(units)
            untitled = [place for place, unit in enumerate(units) if not unit.heading]
            told = [place for place in untitled if not units[place].aside]
            alone = told or untitled or [*range(len(units))]
        return cls(frozenset(alone), answers, needs)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The units that refer back, each behind the one before it, which may be chosen."""
        return [
            (before, place)
            for before, place in pairwise(range(len(self.needs)))
            if self.needs[place] == before and (before in self.alone or self.needs[before] == before)
        ]


def _needed(
    place: int, refers: Sequence[bool], is_open: Sequence[bool], is_out: Sequence[bool]
) -> int | None:
    """Return the neighbour without which a unit says nothing, or None; see `Dependencies.needs`.

    Args:
        refers: for each unit, whether it refers to the one before it.
        is_open: for each unit, whether the next one continues what it announces or begins.
        is_out: for each unit, whether it is never chosen.
    """
    if not is_open[place]:
        return place - 1 if refers[place] else None
    following = place + 1
    is_last = following == len(is_out) or is_out[following] or refers[following]
    return place if is_last or refers[place] else following
