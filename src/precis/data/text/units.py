"""The units that an extract is made of: sentences, headings and list items, and the turns of a dialogue.

A line of text is cut into sentences by the rules of `sentences`. Three things are not what they look like:

- a turn ("Ann: Hello. Where are you?") is one unit, so that words keep their speaker; a long one is cut into sentences;
- a line that is about as wide as the widest around it was wrapped, so its line break ends nothing;
- blank lines always end a unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from precis.data.text.marks import unit_starts
from precis.data.text.sentences import split_sentences

_TURN = re.compile(r"[^\s:.!?][^:\n.!?]{0,39}:\s")
_LONG_TURN = 60  # words
_BLOCK = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_LINE = re.compile(r"[^\n]+")
_NARROWEST, _WIDEST = 36, 128  # characters of the widest line where an editor or a mail program wrapped
_FULL = 0.75  # share of the widest line that a wrapped line fills at least
_ITEM = re.compile(r"\s*(?:[-*•–—#>|]|\(?\d{1,3}[.)]|[A-Za-z][.)])\s")


@dataclass(frozen=True)
class TextUnit:
    """A unit: `document[start:stop]`, and its text in one line."""

    text: str
    start: int
    stop: int


def extraction_units(document: str) -> list[TextUnit]:
    """The units of a document in order, none empty; together they hold all of its words."""
    return [unit for start, text in _runs(document) for unit in _cut(text, start)]


def _runs(document: str) -> Iterator[tuple[int, str]]:
    """Pieces of the document that no sentence crosses: lines, or lines that were one before they were wrapped."""
    for block in _BLOCK.finditer(document):
        lines = [*_LINE.finditer(block.group())]
        widest = max(len(line.group().rstrip()) for line in lines)
        start = 0
        for line, following in pairwise([*lines, None]):
            if (
                following is not None
                and line is not None
                and _goes_on(line.group(), following.group(), widest)
            ):
                continue
            end = len(block.group()) if line is None else line.end()
            yield block.start() + start, block.group()[start:end]
            start = end if following is None else following.start()


def _goes_on(line: str, following: str, widest: int) -> bool:
    """Whether a line was wrapped, so that its sentence may go on in the following one.

    It is about as wide as the widest of its block, and the following one begins neither a turn nor an item.
    """
    if not _NARROWEST <= widest <= _WIDEST or len(line.rstrip()) < _FULL * widest:
        return False
    return not (_TURN.match(following) or _ITEM.match(following))


def _cut(text: str, start: int) -> Iterator[TextUnit]:
    """The units of a piece that begins at `start` of the document."""
    words = text.split()
    if not words:
        return
    is_turn = _TURN.match(text.lstrip()) and len(words) <= _LONG_TURN
    sentences = [" ".join(words)] if is_turn else split_sentences(text)
    begins = unit_starts(text, sentences)
    for sentence, begin, end in zip(sentences, begins, (*begins[1:], len(text)), strict=True):
        yield TextUnit(sentence, start + begin, start + begin + len(text[begin:end].rstrip()))
