"""Incomplete units of a document, which a summary cannot quote without their neighbours.

An incomplete unit announces the next one, has one end of a quotation, continues a sentence that a line break split,
or asks a question. `leaning` finds complete sentences that point back.
"""

from __future__ import annotations

from precis_text.units import ENDED, TURN, TextUnit

_ANNOUNCING = 9  # an announcement with fewer words says nothing else
_QUOTES = "\"'”’»)]"


def is_part(unit: TextUnit) -> bool:
    """Check whether a unit is a short announcement ("In a clone of this repository:") or has one end of a quotation."""
    if TURN.match(unit.text):
        return False
    announces = unit.text.endswith((":", "：")) and len(unit.text.split()) < _ANNOUNCING
    return announces or _is_torn(unit.text)


def _is_torn(text: str) -> bool:
    """Check whether a quotation or a bracket starts in a text but does not end there, or the other way round."""
    if "„" in text:  # German closes quotations with the English opening mark, Polish does not
        return text.count("„") != text.count("“") + text.count("”")
    opened, closed = text.count("“"), text.count("”")
    alone = opened > closed or (closed - opened) % 2 == 1  # Swedish opens and closes with one mark
    return alone or text.count('"') % 2 == 1 or text.count("(") > text.count(")")  # "1)" starts an item


def goes_on(before: TextUnit, unit: TextUnit) -> bool:
    """Check whether a unit continues the sentence of the one before it, which a line break split."""
    if before.heading or TURN.match(unit.text):
        return False
    return unit.text[:1].islower() and not ENDED.search(before.text)


def asks(unit: TextUnit) -> bool:
    """Check whether a unit is a question outside of a dialogue: its answer is elsewhere."""
    return unit.text.rstrip(_QUOTES).endswith(("?", "？", "؟")) and not TURN.match(unit.text)
