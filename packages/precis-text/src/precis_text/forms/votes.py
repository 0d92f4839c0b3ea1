"""Votes in minutes: "Motion failed 2-4." says nothing without the motion that it is about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from precis_text.forms.form import ScoredText
from precis_text.forms.meeting_cues import Cues, cues_of

_TOGETHER = 4  # most sentences from the first to the last of a group


def votes_of(texts: Sequence[str], begins: Collection[int], known: Cues) -> dict[int, list[int]]:
    """Return the place of each vote that does not say what it is about, with those of its motions, if it has any.

    They are those since the last vote, and since a section began. Two motions may be amendments or rivals, so that both
    are needed. Without a motion, the sentence before takes its place, unless it is a vote.
    """
    found: dict[int, list[int]] = {}
    motions, last = list[int](), -1
    for place, text in enumerate(texts):
        motions, last = ([], place - 1) if place in begins else (motions, last)
        if known.votes.search(text) and (before := motions or [*range(max(place - 1, last + 1), place)]):
            found[place] = before
        if known.votes.search(text):
            motions, last = [], place
        elif known.motions.search(text):
            motions.append(place)
    return found


def with_votes(source: ScoredText) -> ScoredText:
    """Return a document in which each written vote is one unit with its motions."""
    begins = {place + 1 for place, unit in enumerate(source.units) if unit.heading}
    votes = votes_of([unit.text for unit in source.units], begins, cues_of(source.document))
    return as_one(source, [[*motions, vote] for vote, motions in votes.items()])


def as_one(source: ScoredText, groups: Sequence[Sequence[int]]) -> ScoredText:
    """Return a document in which the written units of each group are one, if near; those between are asides."""
    units, scores = [*source.units], [*source.scores]
    for group in groups:
        first, stop = group[0], group[-1] + 1
        told = units[first:stop]
        if len(told) <= _TOGETHER and not any(unit.speaker or unit.aside or unit.heading for unit in told):
            text = " ".join(units[place].text for place in group)
            units[first:stop] = [replace(unit, aside=True) for unit in told]
            units[first] = replace(told[0], text=text, stop=told[-1].stop)
            scores[first] = max(scores[first:stop])
    return replace(source, units=units, scores=scores)
