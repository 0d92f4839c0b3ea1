"""Motions and votes in written minutes: "Motion failed 2-4." says nothing without the motion that it is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from precis_text.tables import read_table
from precis_text.units import TextUnit

_DEFAULT = "en"


@dataclass(frozen=True)
class Motions:
    """The words of a language, or of several, for what is moved or proposed and for the result of a vote."""

    motions: re.Pattern[str]
    proposals: re.Pattern[str]
    past: re.Pattern[str]
    closed: re.Pattern[str]
    votes: re.Pattern[str]

    def moves(self, text: str) -> bool:
        return any(each.search(text) for each in (self.motions, self.proposals))


@cache
def motions_in(*codes: str) -> Motions:
    """Return the words of those languages that are known, else the English ones; without codes, those of all."""
    table = read_table("motions.toml")
    records = [table[code] for code in codes or table if code in table] or [table[_DEFAULT]]
    return Motions(
        *(
            re.compile("|".join(f"(?:{each})" for record in records for each in record[name]), re.IGNORECASE)
            for name in ("motions", "proposals", "past", "closed", "votes")
        )
    )


def votes_of(
    units: Sequence[TextUnit], texts: Sequence[str], begins: Collection[int], known: Motions
) -> dict[int, list[int]]:
    """Return the place of each vote that does not say what it is about, with those of its motions, if it has any.

    It is the last one since the last vote, and since a section began. Others of its paragraph may be amendments or
    rivals, so that all are needed, unless what is between may be a vote in other words. A mere proposal counts right
    before the vote, or in its paragraph if nothing is moved. Without either, the sentence before takes its place,
    unless it is a vote.
    """
    found: dict[int, list[int]] = {}
    apart = {place for place, (one, two) in enumerate(pairwise(units), 1) if two.start - one.stop > 1}
    motions, proposed, last, closed, part = list[int](), -1, -1, -1, 0
    for place, text in enumerate(texts):
        motions, proposed, last = ([], -1, place - 1) if place in begins else (motions, proposed, last)
        part = place if place in apart else part
        is_vote = known.votes.search(text) is not None
        is_near = proposed > last and (proposed == place - 1 or (not motions and proposed >= part))
        told = motions + [proposed] * is_near
        if is_vote and (before := told or [*range(max(place - 1, last + 1), place)]):
            found[place] = before
        if is_vote:
            motions, last = [], place
        elif known.motions.search(text):
            since = max(part, closed + 1)
            motions = [*(each for each in motions if each >= since), place]
        elif known.proposals.search(text):
            proposed = place
        elif known.closed.search(text):
            closed = place
    return found


def votes_on_motions(units: Sequence[TextUnit]) -> Mapping[int, int]:
    """Return the place of the vote on each motion that is written: without it, a motion looks as if it had passed.

    A motion that ends in the words of its vote has it already.
    """
    known = motions_in()
    texts = ["" if unit.speaker else unit.text for unit in units]
    begins = {place + 1 for place, unit in enumerate(units) if unit.heading}
    votes = votes_of(units, texts, begins, known)
    return {
        motion: vote
        for vote, motions in votes.items()
        if not any(texts[motion].endswith(texts[vote]) for motion in motions)
        for motion in motions
        if known.moves(texts[motion])
    }
