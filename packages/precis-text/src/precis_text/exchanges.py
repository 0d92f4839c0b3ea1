"""Decisions in chats and meetings, messages that only greet, and answers that need their question.

A scorer that learned from prose prefers messages like sentences of an article. `exchanges.toml` has the words by which
a decision, an answer and a courtesy are known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from precis_text.back_references import has_back_reference
from precis_text.central_choice import content_words
from precis_text.courtesies import CHAIRS, COURTESIES, MODERATES, TABLE, is_courteous
from precis_text.sentences import split_sentences
from precis_text.units import TextUnit
from precis_text.words import unicode_words

_ANSWERS = frozenset(TABLE["answers"].split())
_FILLERS = COURTESIES.union(TABLE["fillers"].replace("'", " ").split())
_DECISIONS = re.compile(TABLE["decisions"].replace("\n", ""), re.IGNORECASE)
_MARKS = ("?", "？", "؟", "\u037e")
_FINITE = frozenset(TABLE["finite"].split())
_TAG = re.compile(r"(?:and|or|but|so|then)\b(?:\W*\w+){1,2}\W*\?", re.IGNORECASE)
_FEW = 8  # words of an answer that says little without its question
_LONGEST_QUESTION = 30  # words of a question that is taken with its answer


def questions_of_answers(units: Sequence[TextUnit]) -> dict[int, int]:
    """Return the place of the question for each decision that says little without it.

    A question is the message before, by another speaker. The answer starts with a word such as "yes" or "they", or has
    fewer than 8 words. Answers that decide nothing, ask or only greet have none, since people's
    summaries of dialogues seldom repeat a question.
    """
    found = {}
    for place in range(1, len(units)):
        asked, answer = _message(units[place - 1]), _message(units[place])
        if not asked or not answer or units[place - 1].speaker == units[place].speaker:
            continue
        is_short = len(asked.split()) <= _LONGEST_QUESTION and not is_courtesy(units[place])
        if is_short and is_answer(asked, answer) and decides(units[place], units[place - 1]):
            found[place] = place - 1
    return found


def short_answers(units: Sequence[TextUnit]) -> dict[int, int]:
    """Return the place of the next speaker's "Yes, on Friday." or "Two." for each message that ends with a question."""
    return {
        place: place + 1
        for place, (before, unit) in enumerate(pairwise(units))
        if answers(unit, before) and len(unicode_words(_message(unit))) < _FEW and not is_courtesy(unit)
    }


def is_answer(asked: str, answer: str, *, few: int = _FEW) -> bool:
    """Check whether a text says little without the question before it: it starts with "yes", or has `few` words."""
    words = unicode_words(answer.lower())
    depends = 0 < len(words) < few or not _ANSWERS.isdisjoint(words[:1]) or has_back_reference(answer)
    return _asks(asked) and not _asks(answer) and depends


def is_courtesy(unit: TextUnit) -> bool:
    """Check whether a message only greets, thanks, agrees or opens a meeting; it may address a person by name."""
    return is_courteous(_message(unit))


def leads(unit: TextUnit) -> bool:
    """Check whether a message greets, or leads through a meeting: "Let's move on to the budget"."""
    return MODERATES.search(_message(unit)) is not None


def chairs(unit: TextUnit) -> bool:
    """Check whether a message opens the next part of a meeting or counts its time: "We'll move on to item 3"."""
    return CHAIRS.search(_message(unit)) is not None


def is_tag(unit: TextUnit) -> bool:
    """Check whether a message asks in two or three words what its neighbours are about: "And chocolate?"."""
    return _TAG.fullmatch(_message(unit)) is not None


def answers(unit: TextUnit, before: TextUnit | None) -> bool:
    """Check whether a message says little without the question of another speaker before it: "Yes, a single one."."""
    if before is None or before.speaker == unit.speaker or leads(before):
        return False
    answer = _message(unit)
    return is_answer(_message(before), answer) and _is_elliptical(answer)


def _is_elliptical(answer: str) -> bool:
    """Check whether an answer is not a sentence, says little behind "yes", or points back."""
    words = re.findall(r"[\w'’]+", answer.lower().replace("’", "'"))
    is_short = len(words) < _FEW and (words[0] in _ANSWERS or _FINITE.isdisjoint(words))
    return is_short or has_back_reference(answer)


def contents(units: Sequence[TextUnit]) -> list[int]:
    """Return the number of different content words in each unit, without those that fill a conversation."""
    return [len(set(words) - _FILLERS) for words in content_words(units)]


def decides(unit: TextUnit, question: TextUnit | None = None) -> bool:
    """Check whether a message, or its answer to `question`, says what was decided; a question does not."""
    said = " ".join(each for each in split_sentences(_message(unit)) if not _asks(each.rstrip()))
    asked = _message(question) if question else ""
    said = MODERATES.sub(" ", said)
    return bool(said) and _DECISIONS.search(f"{asked} {said}") is not None


def unanswered(units: Sequence[TextUnit]) -> list[bool]:
    """Mark the messages that only ask, and whose answer is not short, so that it does not come with them."""
    answered = short_answers(units)
    return [
        place not in answered and _asks(_message(unit)) and only_asks(unit) and not is_tag(unit)
        for place, unit in enumerate(units)
    ]


def only_asks(unit: TextUnit) -> bool:
    """Check whether a message has questions and nothing else; "We took the loan. Who signs it?" says something, too."""
    return all(_asks(sentence) or is_courteous(sentence) for sentence in split_sentences(_message(unit)))


def _asks(message: str) -> bool:
    return message.endswith(_MARKS)


def _message(unit: TextUnit) -> str:
    """Return the text of a turn without its speaker; "" of other units and of notices."""
    return "" if not unit.speaker or unit.aside else unit.text.removeprefix(f"{unit.speaker}:").strip()
