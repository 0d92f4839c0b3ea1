"""Units that a summary has together: questions and answers, motions and votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from precis_text.exchanges import questions_of_answers, short_answers
from precis_text.motions import votes_on_motions
from precis_text.units import TextUnit


@dataclass(frozen=True)
class Partners:
    """The place of the partner of some units, by kind.

    Attributes:
        questions: the question of each decision that answers one (`questions_of_answers`).
        answers: the short answer to each turn that ends with a question (`short_answers`).
        votes: the vote on each motion (`votes_on_motions`).
    """

    questions: Mapping[int, int] = field(default_factory=dict)
    answers: Mapping[int, int] = field(default_factory=dict)
    votes: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, units: Sequence[TextUnit]) -> Partners:
        """Return the partners in a document."""
        return cls(questions_of_answers(units), short_answers(units), votes_on_motions(units))

    def of_group(self, group: Sequence[int]) -> list[int]:
        """Return the places of the partners that units have."""
        kinds = (self.questions, self.answers, self.votes)
        return [found[place] for found in kinds for place in group if place in found]
