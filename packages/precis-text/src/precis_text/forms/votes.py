"""Written votes as one unit with the motions that they are about, for the forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from precis_text.forms.form import ScoredText
from precis_text.forms.meeting_cues import cues_of
from precis_text.motions import votes_of

_TOGETHER = 4  # most sentences from the first to the last of a group


def with_votes(source: ScoredText) -> ScoredText:
    """Return a document in which each written vote is one unit with its motions."""
    begins = {place + 1 for place, unit in enumerate(source.units) if unit.heading}
    votes = votes_of([unit.text for unit in source.units], begins, cues_of(source.document).moved)
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
