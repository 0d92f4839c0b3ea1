"""Documents whose units somebody annotated: elementary discourse units, for one.

A document carries a mark before each of its units. No model reads the marks: they are taken out before a
text becomes tokens, and tell blocked prefixes where a segment may begin (`precis.data.text.segments.Marked`).
"""

from collections.abc import Sequence
from itertools import accumulate

from precis.errors import UserError

UNIT_MARK = "\x1e"
"""ASCII's record separator, `\\u001e` in JSON: white space to Python."""

_REACH = 60  # letters that may stand between two units


def mark_units(document: str, units: Sequence[str]) -> str:
    """The document with a mark before each of these units, and no other.

    Raises:
        UserError: the units do not give the document; see `unit_starts`.
    """
    text = unmarked(document)
    begins = (0, *unit_starts(text, units)[1:])
    ends = (*begins[1:], len(text))
    return "".join(f"{UNIT_MARK}{text[begin:end]}" for begin, end in zip(begins, ends, strict=True))


def unmarked(document: str) -> str:
    """The document as it is read."""
    return document.replace(UNIT_MARK, "")


def marked_starts(document: str) -> tuple[int, ...]:
    """Offset of each unit's first character in the unmarked document; what stands before the first goes with it.

    Raises:
        UserError: the document has no mark.
    """
    before, *parts = document.split(UNIT_MARK)
    if not parts:
        raise UserError(
            f"the document {document[:40]!r} has no marks of units, and segments are to be made of them; name the "
            "column that lists its units (--units-column), or mark them (precis.data.text.unit_marks)"
        )
    starts = accumulate((len(part) for part in parts[:-1]), initial=len(before))
    return tuple(dict.fromkeys(starts))


def unit_starts(text: str, units: Sequence[str]) -> tuple[int, ...]:
    """Offsets of units that are given as texts, in order.

    White space does not count, so units may be tokenized ("( L2 )" for "(L2)"). Text before a unit that is in none,
    such as a speaker's name, goes with it.

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
