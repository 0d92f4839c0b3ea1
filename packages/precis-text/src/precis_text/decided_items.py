"""Decisions and tasks that written minutes list, as below "We decided:", and what notes of meetings say was agreed.

A reader wants them first. A scorer that learnt from papers and news gives them little.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from precis_text.cohesion import announces
from precis_text.units import TextUnit, is_item

_TABLE = tomllib.loads(files("precis_text").joinpath("decided_items.toml").read_text("utf-8"))
_DECISIONS, _TASKS = (frozenset(_TABLE[name].replace("\n", "").split("|")) for name in ("decisions", "tasks"))
_LEAST = {True: 0.8, False: 0.4}  # of decisions and of tasks, as a share of the worth of the best unit
_SAYS, _MEETING = (re.compile(_TABLE[name].replace("\n", ""), re.I) for name in ("says", "meeting"))
_NOTE, _SAID = 500, 0.9  # most words of a note of a meeting, and the least worth of such a sentence in it
_MOST_WORDS = 80  # of decisions that a summary without a requested length has room for


def least_worths(units: Sequence[TextUnit]) -> list[float]:
    """Return the least worth of each unit as a share of the best one's; 0 for all others, which are most."""
    is_short = sum(len(unit.text.split()) for unit in units) <= _NOTE
    is_note = is_short and any(_MEETING.search(unit.text) for unit in units)
    is_note = is_note and not any(unit.speaker for unit in units)
    said = [is_note and not unit.aside and _says(unit.text) for unit in units]
    listed = listed_worths(units)
    return [_SAID if says else listed.get(place, 0.0) for place, says in enumerate(said)]


def listed_worths(units: Sequence[TextUnit]) -> dict[int, float]:
    """Return the least worth of the items of such lists, and of their heads, by place."""
    found, least = {}, 0.0
    heads = [_head(unit) for unit in units]
    has_decisions = not _DECISIONS.isdisjoint(heads)
    for place, head in enumerate(heads):
        is_head = head in _DECISIONS or (head in _TASKS and has_decisions)
        if is_head:
            least = _LEAST[head in _DECISIONS]
        elif not is_item(units[place].text):
            least = 0.0
        if least:
            found[place] = least
    return found


def decided_words(units: Sequence[TextUnit], sizes: Sequence[int]) -> int:
    """Return the words of the decisions that a summary without a requested length has room for."""
    listed = listed_worths(units)
    return min(_MOST_WORDS, sum(sizes[place] for place, least in listed.items() if least == _LEAST[True]))


def _says(text: str) -> bool:
    """Check whether a sentence says that its writers agreed or decided."""
    return _SAYS.search(text) is not None and not text.endswith("?")


def _head(unit: TextUnit) -> str:
    """Return what a unit names as the head of a list, in small letters; "" if it heads none."""
    is_head = unit.heading or unit.aside or announces(unit)
    return unit.text.lower().strip(" \t:.#*_0123456789") if is_head and not unit.speaker else ""
