"""The worth of a unit in a summary: its score, less if a reader cannot use it by itself, more if it says a decision.

A scorer learned which words a summary shares with its document. That a sentence breaks off, points to another one or
only agrees costs it little there, and a reader much. A long conversation has better messages than short ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from precis_text.asides import greets
from precis_text.back_references import has_inner_reference, points_to_a_part
from precis_text.cohesion import (
    asks,
    formalities,
    holed,
    is_aim,
    is_broken_off,
    is_formal,
    tells_news,
    unended,
)
from precis_text.decided_items import least_worths
from precis_text.exchanges import (
    asks_alone,
    chairs,
    contents,
    decides,
    is_courtesy,
    is_tag,
    leads,
    needs_question,
    pieces,
    speaks_of_meeting,
)
from precis_text.partners import Partners
from precis_text.section_weights import section_weights
from precis_text.units import TextUnit

_FEW = 5  # fewest words of a unit that keeps its full score
_SHORT = 0.3  # factor on the score of a shorter unit
_QUESTION = 0.03  # factor on the score of a question without its answer
_COURTESY = 0.1  # factor on the score of a message that only greets, thanks or agrees
_LEADS = 0.5  # factor on the score of a message that leads through the meeting
_MEETS = 0.3  # factor on the score of one that speaks of the meeting itself, its order or its microphones
_CHAIRS = 0.1  # factor on the score of one that goes on to its next part
_ANSWER = 0.3  # factor on the score of "No, not yet" or "A single one" without its question
_ASKS_ALONE = 0.3  # factor on the score of a message that only asks, without a short answer
_PIECE = 0.3  # factor on the score of a message that goes on with a sentence of an earlier one, or breaks off
_DECISION = 1.5  # factor on the score of a message that says what was decided
_CONTENT = (4, 8)  # fewest content words of a message that keeps its score: of short and of long documents
_BROKEN = 0.3  # factor on the score of a message that breaks off, or has words that were not heard
_UNENDED = 0.5  # factor on the score of a unit without an end mark, in a text whose other units have one
_PART = 0.3  # factor on the score of a unit that speaks of a section or table of its document
_MOTION = 0.5  # least worth of a motion whose vote is told, relative to the best unit that is no heading
_NEWS, _LETTER = (
    1.4,
    600,
)  # least worth of what a letter is for, relative to that unit; most words of a letter
_FORMAL = 0.03  # factor on the score of a unit that says what all texts of its kind say
_AIM = 0.3  # factor on the score of a sentence that says what was done, and not what was found
_HOLE = 0.1  # factor on the score of a unit that lost a formula
# Powers of the share of readers who understand a unit: in a short summary of prose, in others
_STANDALONE = (2, 4)
_LONGER = 50  # words of a longer one
_POINTS = 0.5  # factor on the score of a unit that speaks of "these samples" of another one


def worths(
    units: Sequence[TextUnit],
    scores: Sequence[float],
    sizes: Sequence[int],
    partners: Partners,
    *,
    longer: float,
) -> list[float]:
    """Return the worth of each unit of a document.

    Args:
        scores: one for each unit, 0 to 1.
        sizes: words of each unit with its speaker's name.
        longer: the length of the document over that of the summary.
    """
    least, most = _CONTENT
    full = min(max(least * math.sqrt(longer / least), least), most)  # content words
    questions = partners.questions
    marked = (
        (
            _SHORT,
            (
                size < _FEW and not (place in questions or (units[place].answers and not asks(units[place])))
                for place, size in enumerate(sizes)
            ),
        ),
        (_QUESTION, map(asks, units)),
        (_UNENDED, unended(units)),
        (_POINTS, (has_inner_reference(unit.text) for unit in units)),
        (_PART, (points_to_a_part(unit.text) for unit in units)),
        (_FORMAL, map(is_formal, units)),
        (_HOLE, holed(units)),
        (_AIM, map(is_aim, units)),
        (_ASKS_ALONE, asks_alone(units, partners.answers)),
        (_PIECE, pieces(units)),
    )
    factors = [map({True: factor, False: 1.0}.__getitem__, marks) for factor, marks in marked]
    said = (
        _of_message(unit, before, content / full, units[questions[place]] if place in questions else None)
        for place, (unit, before, content) in enumerate(
            zip(units, (None, *units[:-1]), contents(units), strict=True)
        )
    )
    found = [*map(math.prod, zip(scores, section_weights(units), said, *factors, strict=True))]
    told = [worth for worth, unit in zip(found, units, strict=True) if not (unit.heading or unit.aside)]
    best = max(told or found)
    floors = least_worths(units)
    is_letter = sum(sizes) <= _LETTER and any(unit.aside and greets(unit.text) for unit in units)
    for place, unit in enumerate(units):
        is_told = is_letter and not (unit.speaker or unit.heading or unit.aside)
        floors[place] = _NEWS if is_told and tells_news(unit.text) else floors[place]
    formal = formalities(units)
    for place in partners.votes:
        floors[place] = max(floors[place], 0.0 if formal[place] else _MOTION)
    return [max(worth, share * best) for worth, share in zip(found, floors, strict=True)]


def read_worth(worth: float, share: float, *, asked_words: float, is_spoken: bool) -> float:
    """Return the worth of a unit that a share of readers understands in its summary.

    In a short summary of prose, a sentence or two, most sentences say what they speak of.

    Args:
        asked_words: the length of the summary in words.
        is_spoken: whether the unit has a speaker.
    """
    return float(worth * share ** _STANDALONE[is_spoken or asked_words >= _LONGER])


def _of_message(unit: TextUnit, before: TextUnit | None, content: float, question: TextUnit | None) -> float:
    """Return the factor on the score of a message; 1 for other units.

    Args:
        before: the unit before it.
        content: content words, relative to the fewest that keep the full score.
        question: what it answers, if the two are chosen together.
    """
    if not unit.speaker:
        return 1.0
    factor = _DECISION if decides(unit, question) else 1.0
    factor *= _BROKEN if is_broken_off(unit) else 1.0
    factor *= _COURTESY if is_courtesy(unit) else 1.0
    factor *= _QUESTION if is_tag(unit) else 1.0
    factor *= _CHAIRS if chairs(unit) else _LEADS if leads(unit) else 1.0
    factor *= _MEETS if speaks_of_meeting(unit) else 1.0
    factor *= _ANSWER if question is None and needs_question(unit, before) else 1.0
    return factor * (1.0 if question else min(content, 1.0) ** 2)
