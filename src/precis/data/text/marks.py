"""Marks that a document carries: between its two parts, and before units that somebody annotated.

ProphetNet (arXiv:2001.04063, section 3.3) reads "answer [SEP] passage" where it is to ask for the answer. A "[SEP]"
typed into a text is plain text to our tokenizer, and other tokenizers have another separator. So a mark stands
between the parts, and `encoding` puts one separator token there.

A mark before each unit tells blocked prefixes where a segment may begin (`precis.data.text.segments.Marked`).
Units are elementary discourse units, for one. These marks are taken out before a text becomes tokens.
"""

from collections.abc import Sequence
from itertools import accumulate

from precis.errors import UserError

SEPARATOR = "\x1f"
"""ASCII's unit separator, `\\u001f` in JSON: white space to Python, so that words are counted as if it were a space."""


def join_parts(first: str, second: str) -> str:
    """Join two parts with a mark. Only a document's first mark counts, so those in `first` become spaces."""
    return f"{first.replace(SEPARATOR, ' ')}{SEPARATOR}{second}"


def readable(document: str) -> str:
    """The document as people read it: no marks of units, and " [SEP] " between its parts."""
    return unmarked(document).replace(SEPARATOR, " [SEP] ", 1)


def main_part(document: str) -> str:
    """The second part of a document of two parts, which other documents may share; otherwise the document."""
    return document.partition(SEPARATOR)[2] or document


UNIT_MARK = "\x1e"
"""ASCII's record separator, `\\u001e` in JSON: white space to Python."""

_REACH = 60  # letters that may stand between two units


def mark_units(document: str, units: Sequence[str]) -> str:
    """Put a mark before each of these units, and remove all other marks.

    Raises:
        UserError: the units do not give the document; see `unit_starts`.
    """
    text = unmarked(document)
    begins = (0, *unit_starts(text, units)[1:])
    ends = (*begins[1:], len(text))
    return "".join(f"{UNIT_MARK}{text[begin:end]}" for begin, end in zip(begins, ends, strict=True))


def unmarked(document: str) -> str:
    """The document without marks of units, as a model reads it."""
    return document.replace(UNIT_MARK, "")


def marked_starts(document: str) -> tuple[int, ...]:
    """Offset of each unit's first character in the unmarked document. Text before the first unit belongs to it.

    Raises:
        UserError: the document has no mark.
    """
    before, *parts = document.split(UNIT_MARK)
    if not parts:
        raise UserError(
            f"the document {document[:40]!r} has no marks of units, and segments are to be made of them; name the "
            "column that lists its units (--units-column), or mark them (precis.data.text.marks)"
        )
    starts = accumulate((len(part) for part in parts[:-1]), initial=len(before))
    return tuple(dict.fromkeys(starts))


def unit_starts(text: str, units: Sequence[str]) -> tuple[int, ...]:
    """Find the offsets of units that are given as texts, in order.

    White space does not count, so units may be tokenized ("( L2 )" for "(L2)"). Text between two units, such as a
    speaker's name, belongs to the second.

    Raises:
        UserError: a unit is not found within reach of where the one before it ends, or much text is left at the end.
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
                f"unit {index + 1} of {len(units)} is {unit[:40]!r}, but the text goes on with "
                f"{solid[passed : passed + 40]!r}; units must give the text in order"
            )
        starts.append(places[passed])
        passed = found + len(letters)
    if len(solid) - passed > _REACH:
        raise UserError(
            f"the {len(units)} units end before the text does: {solid[passed : passed + 40]!r} is in none of them"
        )
    return tuple(starts)
