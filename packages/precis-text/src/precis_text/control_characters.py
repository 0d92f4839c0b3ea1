"""Marks inside a document: one between its two parts, and one before each annotated unit.

ProphetNet (arXiv:2001.04063, section 3.3) reads "answer [SEP] passage" to generate a question. A "[SEP]" typed into a
text is plain text to our tokenizer, and other tokenizers have another separator. So the parts have a mark between
them, and `encoding` replaces it with one separator token.

A mark before each unit shows blocked prefixes where a segment may start (`precis.data.text.segments.Marked`).
Elementary discourse units are one example. These marks are removed before a text becomes tokens.
"""

from collections.abc import Sequence
from itertools import accumulate

from precis_text.errors import UserError

SEPARATOR = "\x1f"
"""ASCII's unit separator, `\\u001f` in JSON: white space to Python, so that it separates words like a space."""


def join_parts(first: str, second: str) -> str:
    """Join two parts with a mark. Only a document's first mark counts, so marks in `first` become spaces."""
    return f"{first.replace(SEPARATOR, ' ')}{SEPARATOR}{second}"


def readable(document: str) -> str:
    """Return the document for people to read: without unit marks, and with " [SEP] " between its parts."""
    return remove_marks(document).replace(SEPARATOR, " [SEP] ", 1)


def main_part(document: str) -> str:
    """Return the second part of a document of two parts, which other documents may share; otherwise the document."""
    return document.partition(SEPARATOR)[2] or document


UNIT_MARK = "\x1e"
"""ASCII's record separator, `\\u001e` in JSON: white space to Python."""

_REACH = 60  # most characters, without white space, between two units


def mark_units(document: str, units: Sequence[str]) -> str:
    """Put a mark before each of these units, and remove all other marks.

    Raises:
        UserError: the units do not make up the document; see `unit_starts`.
    """
    text = remove_marks(document)
    begins = (0, *unit_starts(text, units)[1:])
    ends = (*begins[1:], len(text))
    return "".join(f"{UNIT_MARK}{text[begin:end]}" for begin, end in zip(begins, ends, strict=True))


def remove_marks(document: str) -> str:
    """Return the document without unit marks, as a model reads it."""
    return document.replace(UNIT_MARK, "")


def marked_starts(document: str) -> tuple[int, ...]:
    """Return the offset of each unit's first character in the unmarked document. Leading text belongs to the first.

    Raises:
        UserError: the document contains no mark.
    """
    before, *parts = document.split(UNIT_MARK)
    if not parts:
        raise UserError(
            f"the document {document[:40]!r} contains no unit marks, which its segments need; name the "
            "column that lists its units (--units-column), or mark them (precis_text.control_characters)"
        )
    starts = accumulate((len(part) for part in parts[:-1]), initial=len(before))
    return tuple(dict.fromkeys(starts))


def unit_starts(text: str, units: Sequence[str]) -> tuple[int, ...]:
    """Find the offsets of units that are given as texts, in order.

    White space is ignored, so units may be tokenized ("( L2 )" for "(L2)"). Text between two units, such as a
    speaker's name, belongs to the second.

    Raises:
        UserError: a unit does not follow closely on the one before it, or much text is left at the end.
    """
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    solid = "".join(text[place] for place in places)
    starts, passed = [], 0
    for index, unit in enumerate(units):
        letters = "".join(unit.split())
        if not letters:
            continue
        found = solid.find(letters, passed, passed + _REACH + len(letters))
        if found < 0:
            raise UserError(
                f"unit {index + 1} of {len(units)} is {unit[:40]!r}, but the text continues with "
                f"{solid[passed : passed + 40]!r}; list the units in the order of the text"
            )
        starts.append(places[passed])
        passed = found + len(letters)
    if len(solid) - passed > _REACH:
        raise UserError(
            f"the {len(units)} units end before the text: no unit contains {solid[passed : passed + 40]!r}"
        )
    return tuple(starts)
