"""Which units of a document are not whole: what a summary shows of them needs what stands beside them.

The unit is a part of something: it announces what follows, it holds one end of a quotation, it goes on with a sentence
that a line break cut, or it asks. `leaning` has sentences that are whole and point back.
"""

from __future__ import annotations

from precis.data.text.units import ENDED, TURN, TextUnit

_ANNOUNCING = 9  # words that an announcement has fewer than if it says nothing else
_QUOTES = "\"'”’»)]"


def is_part(unit: TextUnit) -> bool:
    """Whether a unit is a short announcement ("In a clone of this repository:") or holds one end of a quotation."""
    if TURN.match(unit.text):
        return False
    announces = unit.text.endswith((":", "：")) and len(unit.text.split()) < _ANNOUNCING
    return announces or _is_torn(unit.text)


def _is_torn(text: str) -> bool:
    """Whether a quotation or a bracket begins in a text and does not end there, or the other way round."""
    if "„" in text:  # German quotations end with what begins English ones, Polish ones do not
        return text.count("„") != text.count("“") + text.count("”")
    opened, closed = text.count("“"), text.count("”")
    alone = opened > closed or (closed - opened) % 2 == 1  # Swedish ones begin and end with the same
    return alone or text.count('"') % 2 == 1 or text.count("(") > text.count(")")  # "1)" begins an item


def goes_on(before: TextUnit, unit: TextUnit) -> bool:
    """Whether a unit goes on with the sentence of the one before it, which a line break cut."""
    if before.heading or TURN.match(unit.text):
        return False
    return unit.text[:1].islower() and not ENDED.search(before.text)


def asks(unit: TextUnit) -> bool:
    """Whether a unit is a question that nobody in a dialogue puts: its answer stands elsewhere."""
    return unit.text.rstrip(_QUOTES).endswith(("?", "？", "؟")) and not TURN.match(unit.text)
