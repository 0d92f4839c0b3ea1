"""The statements of a meeting: its sentences, each with its speaker, time and turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, groupby, pairwise

from precis_text.citations import Citations
from precis_text.control_characters import unit_starts
from precis_text.courtesies import is_courteous
from precis_text.exchanges import is_answer
from precis_text.forms.form import ScoredText
from precis_text.pauses import Pauses, blank_sounds
from precis_text.sentences import split_sentences
from precis_text.turns import turns_of
from precis_text.units import TextUnit, visible, without_item_mark
from precis_text.words import unicode_words

_FACE = "[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff]"
_SMILES = re.compile(rf"(?i)(?<!{_FACE})(?<!{_FACE} )(?<!lol)(?<![:;-]\))(?: ?{_FACE}| [:;]-?\)| lol)++$")
_FRAGMENT, _SHORT_ANSWER = 4, 7  # words of "On Friday.", and of "I'll do it on Tuesday.", with one of these:
POINTING = frozenset(("it", "that", "this", "them", "das", "es", "ihn", "ça", "cela", "lo", "eso"))


@dataclass(frozen=True)
class Statement:
    """A sentence: `document[start:stop]`.

    Attributes:
        text: on one line, without its speaker and without pauses.
        unit: the index of its unit.
        speaker: who says it, or "".
        time: its time as the document writes it, or "".
        turn: the number of its turn, from 1; 0 in a document without turns.
        asked: the question that it answers, if it says little without it.
    """

    text: str
    start: int
    stop: int
    unit: int
    speaker: str
    time: str
    turn: int
    asked: Statement | None = None


def statements_of(source: ScoredText, listed: Container[int] = ()) -> list[Statement]:
    """Return the sentences of a document in order, without the headings and asides that are not `listed`."""
    times = {turn.start: (turn.body, turn.time) for turn in turns_of(source.document)}
    pauses, citations = Pauses.of(source.document), Citations.of(source.document)
    found: list[Statement] = []
    turn, last, time = 0, "", ""
    for place, unit in enumerate(source.units):
        unit = _spoken(unit, last, source)
        body, stamped = times.get(unit.start, (unit.start, None))
        is_named = bool(unit.speaker) and source.document.startswith(f"{unit.speaker}:", unit.start)
        is_turn = is_named or (bool(unit.speaker) and (stamped is not None or unit.speaker != last))
        turn += is_turn
        last = unit.speaker
        time = time if stamped is None and times else stamped or ""
        if (unit.heading or unit.aside) and place not in listed:
            continue
        if body == unit.start and is_named:
            body = source.document.index(":", unit.start) + 1
        for text, start, stop in _sentences(
            source.document, body, unit.stop, pauses if unit.speaker else citations
        ):
            when = time or source.passages.at(start).time
            found.append(Statement(text, start, stop, place, unit.speaker, when, turn if unit.speaker else 0))
    return found


def _spoken(unit: TextUnit, last: str, source: ScoredText) -> TextUnit:
    """Return a unit with its speaker; subtitles name a voice once, before its first line."""
    goes_on = last and not unit.speaker and source.passages.at(unit.start).time
    return replace(unit, speaker=last) if goes_on and not unit.text.startswith("-") else unit


def _sentences(
    document: str, start: int, stop: int, extra: Pauses | Citations
) -> Iterator[tuple[str, int, int]]:
    """Yield the sentences between two offsets, with their own, without pauses or references."""
    body = blank_sounds(document[start:stop]) if isinstance(extra, Pauses) else document[start:stop]
    sentences = split_sentences(body)
    begins = [*unit_starts(body, sentences), len(body)]
    for sentence, (begin, end) in zip(sentences, pairwise(begins), strict=True):
        text = without_item_mark(visible(" ".join(sentence.split())))
        text = extra.left_out(text)
        if text:
            yield text, start + begin, start + begin + len(body[begin:end].rstrip())


def plain(statement: Statement) -> str:
    """Return the text of a statement with straight apostrophes, without the smile at its end."""
    return _SMILES.sub("", statement.text.replace("’", "'"))


def replies_to(said: Sequence[Statement], place: int) -> list[int]:
    """Return the indices of the next turn's statements; none if the same person says them."""
    later = dropwhile(lambda other: said[other].turn == said[place].turn, range(place, len(said)))
    turns = groupby(later, key=lambda other: said[other].turn)
    _, replies = next(turns, (0, iter(())))
    return [other for other in replies if said[other].speaker != said[place].speaker]


def with_question(said: Sequence[Statement], place: int, is_told: Callable[[int], bool]) -> Statement:
    """Return a statement with the question before it, if it needs that and no other line has it."""
    first = place
    while first and said[first - 1].turn == said[place].turn and is_courteous(said[first - 1].text):
        first -= 1
    asked, answer = said[first - 1], said[place]
    is_other = first and asked.turn and asked.speaker != answer.speaker
    few = _FRAGMENT if POINTING.isdisjoint(unicode_words(answer.text.lower())) else _SHORT_ANSWER
    is_meant = is_other and is_answer(asked.text, plain(answer), few=few) and not is_told(first - 1)
    return replace(answer, asked=asked) if is_meant else answer
