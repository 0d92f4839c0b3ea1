"""Motions and votes in written minutes: "Motion failed 2-4." says nothing without the motion that it is about."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from precis_text.units import TextUnit

_DEFAULT = "en"


@dataclass(frozen=True)
class Motions:
    """The words of a language, or of several, for what is moved and for the result of a vote."""

    motions: re.Pattern[str]
    votes: re.Pattern[str]


@cache
def motions_in(*codes: str) -> Motions:
    """Return the words of those languages that are known, else the English ones; without codes, those of all."""
    table = tomllib.loads(files("precis_text").joinpath("motions.toml").read_text("utf-8"))
    records = [table[code] for code in codes or table if code in table] or [table[_DEFAULT]]
    return Motions(
        *(
            re.compile("|".join(f"(?:{each})" for record in records for each in record[name]), re.IGNORECASE)
            for name in ("motions", "votes")
        )
    )


def votes_of(texts: Sequence[str], begins: Collection[int], known: Motions) -> dict[int, list[int]]:
    """Return the place of each vote that does not say what it is about, with those of its motions, if it has any.

    They are those since the last vote, and since a section began. Two motions may be amendments or rivals, so that both
    are needed. Without a motion, the sentence before takes its place, unless it is a vote.
    """
    found: dict[int, list[int]] = {}
    motions, last = list[int](), -1
    for place, text in enumerate(texts):
        motions, last = ([], place - 1) if place in begins else (motions, last)
        is_vote = known.votes.search(text) is not None
        if is_vote and (before := motions or [*range(max(place - 1, last + 1), place)]):
            found[place] = before
        if is_vote:
            motions, last = [], place
        elif known.motions.search(text):
            motions.append(place)
    return found


def votes_on_motions(units: Sequence[TextUnit]) -> Mapping[int, int]:
    """Return the place of the vote on each motion that is written: without it, a motion looks as if it had passed.

    A motion that ends in the words of its vote has it already.
    """
    known = motions_in()
    texts = ["" if unit.speaker else unit.text for unit in units]
    begins = {place + 1 for place, unit in enumerate(units) if unit.heading}
    votes = votes_of(texts, begins, known)
    return {
        motion: vote
        for vote, motions in votes.items()
        if not any(texts[motion].endswith(texts[vote]) for motion in motions)
        for motion in motions
        if known.motions.search(texts[motion])
    }
