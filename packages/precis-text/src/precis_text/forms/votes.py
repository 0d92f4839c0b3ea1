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
    texts = [unit.text for unit in source.units]
    votes = votes_of(source.units, texts, begins, cues_of(source.document).moved)
    return as_one(source, [[*motions, vote] for vote, motions in votes.items()])


def as_one(source: ScoredText, groups: Sequence[Sequence[int]]) -> ScoredText:
    """Return a document in which the written units of each group are one, if near; those between stay.

    The place is that of the first unit, or of all if none is between them.
    """
    units, scores = [*source.units], [*source.scores]
    for group in groups:
        first, stop = group[0], group[-1] + 1
        told = units[first:stop]
        if len(told) <= _TOGETHER and not any(unit.speaker or unit.aside or unit.heading for unit in told):
            text = " ".join(units[place].text for place in group)
            scores[first] = max(scores[place] for place in group)
            for place in group:
                units[place] = replace(units[place], aside=True)
            end = told[-1 if len(told) == len(group) else 0].stop
            units[first] = replace(told[0], text=text, stop=end)
    return replace(source, units=units, scores=scores)
