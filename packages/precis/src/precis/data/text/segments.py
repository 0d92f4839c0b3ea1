"""The start of each unit of a text, and the segment of each of its tokens.

A unit is a sentence, a paragraph, a dialogue turn, or an annotated span (elementary discourse units). A blocked prefix
has only a few segments, so neighbouring units share one: with K units and S segments, unit k is in segment
floor(k S / K). A text of fewer units than segments leaves some segments without tokens.

Units are spans of characters; a fast tokenizer's offsets map tokens to them. Nothing is split.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from transformers import PreTrainedTokenizerBase

from precis.data.text.encoding import panics_in_one_line, with_instruction
from precis_text.config import Settings
from precis_text.control_characters import SEPARATOR, marked_starts, remove_marks, unit_starts
from precis_text.errors import UserError
from precis_text.sentences import split_sentences

_TURN = re.compile(r"^[^\S\n]*[^\s:][^:\n]{0,39}:(?=\s)", re.MULTILINE)


@final
@dataclass(frozen=True, kw_only=True)
class Sentences(Settings):
    """Sentences by the rules of `precis_text.sentences`."""

    def starts(self, text: str) -> tuple[int, ...]:
        """Return the offset of each sentence's first character."""
        return unit_starts(text, split_sentences(text))


@final
@dataclass(frozen=True, kw_only=True)
class Paragraphs(Settings):
    """Blocks between blank lines; in a text without blank lines, its lines."""

    def starts(self, text: str) -> tuple[int, ...]:
        """Return the offset of each paragraph's first character."""
        between = r"\n[^\S\n]*\n\s*" if re.search(r"\S[^\S\n]*\n[^\S\n]*\n\s*\S", text) else r"\n\s*"
        begins = [0, *(found.end() for found in re.finditer(between, text))]
        starts = (_after_white(text, begin) for begin in begins if text[begin:].strip())
        return tuple(dict.fromkeys(starts))  # a break before the first paragraph ends at its start


@final
@dataclass(frozen=True, kw_only=True)
class Turns(Settings):
    """Dialogue turns: lines that start with a speaker and a colon, with the lines that follow them."""

    def starts(self, text: str) -> tuple[int, ...]:
        """Return the offset of each turn's first character; text before the first turn is a unit too."""
        turns = [_after_white(text, found.start()) for found in _TURN.finditer(text)]
        first = _after_white(text, 0)
        if first < len(text) and (not turns or turns[0] > first):
            turns.insert(0, first)
        return tuple(turns)


@final
@dataclass(frozen=True, kw_only=True)
class Marked(Settings):
    """Units annotated by marks in the document; see `precis_text.control_characters`."""

    def starts(self, text: str) -> tuple[int, ...]:
        """Return the offset of each unit's first character in the text without its marks."""
        return marked_starts(text)


UnitKind = Sentences | Paragraphs | Turns | Marked

UNIT_KINDS: Mapping[str, UnitKind] = MappingProxyType(
    {"sentences": Sentences(), "paragraphs": Paragraphs(), "turns": Turns(), "marked": Marked()}
)
"""Kinds by their names on the command line and in adapters."""


def kind_name(kind: UnitKind) -> str:
    """Return the name of a kind in `UNIT_KINDS`."""
    return next(name for name, known in UNIT_KINDS.items() if known == kind)


def document_units(
    document: str, tokenizer: PreTrainedTokenizerBase, kind: UnitKind, *, instruction: str = ""
) -> list[int]:
    """Return the unit of each token that a model reads, control tokens included; an instruction is in the first unit.

    Raises:
        UserError: the tokenizer gives no offsets, or the document has two parts.
    """
    if SEPARATOR in document:
        raise UserError(
            "a document of two parts, a question's answer and its passage, cannot be split into units; use equal parts"
        )
    plain = remove_marks(document)
    starts = kind.starts(document if isinstance(kind, Marked) else plain)
    text = with_instruction(plain, instruction)
    before = len(text) - len(plain)
    return token_units(text, tokenizer, starts=[before + start for start in starts])


@final
@dataclass(frozen=True)
class UnitSegmenter:
    """A mapping of the units of one kind, such as sentences or turns, to `count` segments of a blocked prefix."""

    kind: UnitKind
    count: int
    tokenizer: PreTrainedTokenizerBase
    instruction: str = ""

    def units(self, document: str) -> list[int]:
        """Return the unit of each token that a model reads; see `document_units`."""
        return document_units(document, self.tokenizer, self.kind, instruction=self.instruction)

    def segments(self, units: Sequence[int]) -> list[int]:
        """Return the segments of the tokens of these units; see `segments_of_units`."""
        return segments_of_units(units, self.count)


def segments_of_units(units: Sequence[int], segments: int) -> list[int]:
    """Return each token's segment from the tokens' units in ascending order; segments share the units evenly."""
    if not units:
        return []
    first, count = units[0], units[-1] - units[0] + 1
    return [(unit - first) * segments // count for unit in units]


def token_units(text: str, tokenizer: PreTrainedTokenizerBase, *, starts: Sequence[int]) -> list[int]:
    """Return the unit, counted from 0, of each token of `tokenizer(text)`, control tokens included.

    A token belongs to the unit of its first character that is not white space. A control token belongs to the unit of
    the token before it, or to the first unit if there is none.

    Args:
        starts: from a `UnitKind` or `unit_starts`; if empty, the text is one unit.

    Raises:
        UserError: the tokenizer gives no offsets.
    """
    if not tokenizer.is_fast:
        raise UserError(
            f"{type(tokenizer).__name__} gives no character offsets, which segments need; use a fast tokenizer"
        )
    with panics_in_one_line():
        offsets = tokenizer(text, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    found: list[int] = []
    for begin, end in offsets:
        place = _after_white(text, begin, end)
        if place >= end:  # a control token, or only white space
            found.append(found[-1] if found else 0)
        else:
            found.append(max(0, bisect_right(starts, place) - 1))
    return found


def _after_white(text: str, begin: int, end: int | None = None) -> int:
    """Return the index of the first character from `begin` that is not white space, or the end."""
    end = len(text) if end is None else end
    while begin < end and text[begin].isspace():
        begin += 1
    return begin
