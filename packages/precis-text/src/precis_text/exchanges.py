"""Decisions in chats and meetings, messages that only greet, and answers that need their question.

A scorer that learned from prose prefers messages like sentences of an article. `exchanges.toml` has the words by which
a decision, an answer and a courtesy are known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from operator import and_

from precis_text.back_references import has_back_reference
from precis_text.central_choice import content_words
from precis_text.courtesies import CHAIRS, COURTESIES, MEETS, MODERATES, TABLE, is_courteous, only_greets
from precis_text.sentences import split_sentences
from precis_text.units import ENDED, TextUnit
from precis_text.words import unicode_words

_ANSWERS = frozenset(TABLE["answers"].split())
_FILLERS = COURTESIES.union(TABLE["fillers"].replace("'", " ").split())
_DECISIONS = re.compile(TABLE["decisions"], re.IGNORECASE)
_MARKS = ("?", "？", "؟", "\u037e")
_FINITE, _ENGLISH = (frozenset(TABLE[name].split()) for name in ("finite", "english"))
_ASKS_WHAT = re.compile(  # "What do we need?", but "Do you know who paid?" and "What about Friday?"
    r"(?:^|[.!?] )(?:(?:and|but|so),? )?(?:what(?! about)|who|whom|whose|where|why|how(?! about)|which)\b[^.!?]*\?$",
    re.IGNORECASE,
)
_ECHO = re.compile(TABLE["echoes"])
_WORDS = re.compile(r"[\w'’]+")
_PHRASE = 4  # words from which on an answer that is not a sentence must be known to be English
_TAG = re.compile(r"(?:and|or|but|so|then)\b(?:\W*\w+){1,2}\W*\?", re.IGNORECASE)
_MANY = 20  # fewest messages of a speaker that show a habit
_SELDOM = 0.2  # largest share of messages that are exceptions from it
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
        if needs_question(unit, before)
        and len(unicode_words(_message(unit))) < _FEW
        and not only_greets(_message(unit))
        and not (is_courtesy(unit) and _ASKS_WHAT.search(_message(before)))
    }


def is_answer(asked: str, answer: str, *, few: int = _FEW) -> bool:
    """Check whether a text may need the question before it: "yes", fewer than `few` words, or "it" and the like."""
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
    """Check whether a message only opens the next part of a meeting, or counts its time: "We'll move on to item 3"."""
    return CHAIRS.search(_message(unit)) is not None


def speaks_of_meeting(unit: TextUnit) -> bool:
    """Check whether a message speaks of the meeting itself: "The meeting is going to follow our agenda"."""
    return MEETS.search(_message(unit)) is not None


def is_tag(unit: TextUnit) -> bool:
    """Check whether a message asks in two or three words what its neighbours are about: "And chocolate?"."""
    return _TAG.fullmatch(_message(unit)) is not None


def needs_question(unit: TextUnit, before: TextUnit | None) -> bool:
    """Check whether a message says little without the question of another speaker before it: "Yes, a single one."."""
    if before is None or before.speaker == unit.speaker:
        return False
    return is_answer(_message(before), _message(unit)) and _is_elliptical(_message(unit))


def _is_elliptical(answer: str) -> bool:
    """Check whether an answer agrees in a few words, is not a sentence ("With a bath", "Ann did"), or points back.

    In other languages than English this finds only "yes" and "no", and answers of one to three words.
    """
    words = _WORDS.findall(answer.lower().replace("’", "'"))
    if not words or len(words) >= 2 * _FEW:
        return False
    if has_back_reference(answer) or _ECHO.fullmatch(" ".join(words)):
        return True
    is_phrase = _FINITE.isdisjoint(words) and not any(word.endswith("ed") for word in words)
    is_known = len(words) < _PHRASE or not _ENGLISH.isdisjoint(words)
    return len(words) < _FEW and (words[0] in _ANSWERS or (is_phrase and is_known))


def contents(units: Sequence[TextUnit]) -> list[int]:
    """Return the number of different content words in each unit, without those that fill a conversation."""
    return [len(set(words) - _FILLERS) for words in content_words(units)]


def decides(unit: TextUnit, question: TextUnit | None = None) -> bool:
    """Check whether a message, or its answer to `question`, says what was decided; a question does not."""
    said = " ".join(each for each in split_sentences(_message(unit)) if not _asks(each.rstrip()))
    asked = _message(question) if question else ""
    said = MODERATES.sub(" ", said)
    return bool(said) and _DECISIONS.search(f"{asked} {said}") is not None


def asks_alone(units: Sequence[TextUnit], answered: Collection[int]) -> list[bool]:
    """Mark the messages that only ask.

    Args:
        answered: the places of those that have a short answer (`short_answers`), which are not marked.
    """
    return [
        place not in answered and _asks(_message(unit)) and only_asks(unit) and not is_tag(unit)
        for place, unit in enumerate(units)
    ]


def pieces(units: Sequence[TextUnit]) -> list[bool]:
    """Mark messages that continue a sentence of an earlier one ("so you can use it"), or break off without a mark.

    A transcript has such pieces where speakers interrupt each other. Who seldom writes so in many messages did not
    leave out a capital or a full stop.
    """
    said = [_message(unit) for unit in units]
    found = [(text[:1].islower(), bool(text) and ENDED.search(text) is None) for text in said]
    of_speaker: dict[str, list[tuple[bool, bool]]] = {}
    for unit, text, kinds in zip(units, said, found, strict=True):
        if text:
            of_speaker.setdefault(unit.speaker, []).append(kinds)
    seldom = {
        speaker: [len(rows) >= _MANY and sum(kind) <= _SELDOM * len(rows) for kind in zip(*rows, strict=True)]
        for speaker, rows in of_speaker.items()
    }
    return [
        any(map(and_, kinds, seldom.get(unit.speaker, ()))) for unit, kinds in zip(units, found, strict=True)
    ]


def only_asks(unit: TextUnit) -> bool:
    """Check whether a message has questions and nothing else; "We took the loan. Who signs it?" says something, too."""
    return all(_asks(sentence) or is_courteous(sentence) for sentence in split_sentences(_message(unit)))


def _asks(message: str) -> bool:
    return message.endswith(_MARKS)


def _message(unit: TextUnit) -> str:
    """Return the text of a turn without its speaker; "" of other units and of notices."""
    return "" if not unit.speaker or unit.aside else unit.text.removeprefix(f"{unit.speaker}:").strip()
