"""The units that an extract is made of: sentences, headings and list items, and the turns of a dialogue.

A line of text is cut into sentences by the rules of `sentences`. Three things are not what they look like:

- a turn ("Ann: Hello. Where are you?") is one unit, so that words keep their speaker; a long one is cut into sentences;
- a block of lines of about the same width is a paragraph that was wrapped, so its line breaks end nothing;
- blank lines always end a unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from precis.data.text.marks import unit_starts
from precis.data.text.sentences import split_sentences

_TURN = re.compile(r"[^\s:.!?][^:\n.!?]{0,39}:\s")
_LONG_TURN = 60  # words
_BLOCK = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_LINE = re.compile(r"[^\n]+")
_WIDEST = 120  # characters of a line that an editor or a mail program wrapped
_NARROW = 0.6  # share of the widest line that a wrapped line fills at least
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
    """Pieces of the document that no sentence crosses: lines, or whole blocks that were wrapped."""
    for block in _BLOCK.finditer(document):
        if _is_wrapped(block.group()):
            yield block.start(), block.group()
        else:
            yield from (
                (block.start() + line.start(), line.group()) for line in _LINE.finditer(block.group())
            )


def _is_wrapped(block: str) -> bool:
    """Whether a block's lines are one paragraph: all but the last are about as wide as the widest, and none is a turn
    or begins an item of a list.
    """
    lines = block.split("\n")
    widest = max(len(line.rstrip()) for line in lines)
    if len(lines) < 2 or widest > _WIDEST:
        return False
    if any(_TURN.match(line) or _ITEM.match(line) for line in lines):
        return False
    return all(len(line.rstrip()) >= _NARROW * widest for line in lines[:-1])


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
