"""Decisions and tasks that written minutes list, as below "We decided:", and what notes of meetings say was agreed.

A reader wants them first. A scorer that learnt from papers and news gives them little.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from precis_text.cohesion import announces
from precis_text.minutes_heads import DECISIONS, TASKS
from precis_text.tables import read_table
from precis_text.units import TextUnit, is_item

_TABLE = read_table("decided_items.toml")
_DECISION, _TASK = 0.8, 0.4  # least worth of an item, as a share of that of the best unit
_SAYS, _LIMITS, _MEETING = (re.compile(each, re.I) for each in _TABLE["said"].values())
_NOTE, _SAID = 500, 0.9  # most words of a note of a meeting, and the least worth of such a sentence in it
_MOST_WORDS = 80  # of decisions that a summary without a requested length has room for


def least_worths(units: Sequence[TextUnit]) -> list[float]:
    """Return the least worth of each unit as a share of the best one's; 0 for all others, which are most."""
    listed = listed_worths(units)
    is_short = sum(len(unit.text.split()) for unit in units) <= _NOTE
    is_note = is_short and any(map(_names_meeting, units)) and not any(unit.speaker for unit in units)
    said = [is_note and not unit.aside and _says(unit.text) for unit in units]
    return [_SAID if says else listed.get(place, 0.0) for place, says in enumerate(said)]


def listed_worths(units: Sequence[TextUnit]) -> dict[int, float]:
    """Return the least worth of the items of such lists, by place.

    A list ends with the next heading or head of a list, and at a line without a mark that is apart. Manuals and release
    notes have such heads, too: they count in a text that names a meeting, or next to another one.
    """
    heads = [_head(unit) for unit in units]
    known = {*heads} & (DECISIONS | TASKS)
    if DECISIONS.isdisjoint(known) or (len(known) == 1 and not any(map(_names_meeting, units))):
        return {}
    found, least = {}, 0.0
    for place, (unit, head) in enumerate(zip(units, heads, strict=True)):
        if head or unit.heading:
            least = _DECISION if head in DECISIONS else _TASK if head in TASKS else 0.0
        elif is_item(unit) and least:
            found[place] = least
        elif place and unit.start - units[place - 1].stop > 1:
            least = 0.0
    return found


def decided_words(units: Sequence[TextUnit], sizes: Sequence[int]) -> int:
    """Return the words of the decisions that a summary without a requested length has room for."""
    told = zip(sizes, least_worths(units), strict=True)
    return min(_MOST_WORDS, sum(size for size, least in told if least >= _DECISION))


def _names_meeting(unit: TextUnit) -> bool:
    return _MEETING.search(unit.text) is not None


def _says(text: str) -> bool:
    """Check whether a sentence says that its writers agreed or decided, without "if" or "not"."""
    return _SAYS.search(text) is not None and not text.endswith("?") and not _LIMITS.search(text)


def _head(unit: TextUnit) -> str:
    """Return what a unit names as the head of a list, in small letters; "" if it heads none."""
    text = "decided" if announces(unit) and _says(unit.text) else unit.text.lower()
    is_head = unit.heading or unit.aside or announces(unit) or text in DECISIONS or text in TASKS
    return text.strip(" \t:.#*_0123456789") if is_head and not (is_item(unit) or unit.speaker) else ""
