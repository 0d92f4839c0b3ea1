"""Written votes as one unit with the motions that they are about, for the forms."""

from __future__ import annotations

from dataclasses import replace

from precis_text.forms.form import ScoredText
from precis_text.forms.meeting_cues import cues_of
from precis_text.motions import votes_of

_TOGETHER = 4  # most sentences from a motion to its vote that are shown as one


def with_votes(source: ScoredText) -> ScoredText:
    """Return a document in which each written vote is one unit with its motions; what is between is an aside."""
    units, scores = [*source.units], [*source.scores]
    begins = {place + 1 for place, unit in enumerate(units) if unit.heading}
    votes = votes_of([unit.text for unit in units], begins, cues_of(source.document).moved)
    for vote, motions in votes.items():
        told = units[(first := motions[0]) : vote + 1]
        if len(told) <= _TOGETHER and not any(unit.speaker or unit.aside or unit.heading for unit in told):
            text = " ".join(units[place].text for place in [*motions, vote])
            units[first : vote + 1] = [replace(unit, aside=True) for unit in told]
            units[first] = replace(told[0], text=text, stop=told[-1].stop)
            scores[first] = max(scores[first : vote + 1])
    return replace(source, units=units, scores=scores)
