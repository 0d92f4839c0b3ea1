"""Items of lists of decisions and tasks, as written minutes have them: "We decided:" with a list below it.

A reader of minutes wants them first. A scorer that learnt from papers and news gives them little.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files

from precis_text.cohesion import announces
from precis_text.units import TextUnit, is_item

_TABLE = tomllib.loads(files("precis_text").joinpath("decided_items.toml").read_text("utf-8"))
_DECISIONS, _TASKS = (frozenset(_TABLE[name].replace("\n", "").split("|")) for name in ("decisions", "tasks"))
_LEAST = {True: 0.8, False: 0.4}  # of decisions and of tasks, as a share of the worth of the best unit
_MOST_WORDS = 80  # of decisions that a summary without a requested length has room for


def least_worths(units: Sequence[TextUnit]) -> list[float]:
    """Return the least worth of each unit as a share of the best one's: 0, but for such items and their heads."""
    found, least = [], 0.0
    heads = [_head(unit) for unit in units]
    has_decisions = not _DECISIONS.isdisjoint(heads)
    for unit, head in zip(units, heads, strict=True):
        listed = is_item(unit.text)
        if head in _DECISIONS or (head in _TASKS and has_decisions):
            least = _LEAST[head in _DECISIONS]
        elif not listed:
            least = 0.0
        found.append(least if listed or head in _DECISIONS | _TASKS else 0.0)
    return found


def decided_words(units: Sequence[TextUnit], sizes: Sequence[int]) -> int:
    """Return the words of the decisions that a summary without a requested length has room for."""
    told = zip(sizes, least_worths(units), strict=True)
    return min(_MOST_WORDS, sum(size for size, least in told if least == _LEAST[True]))


def _head(unit: TextUnit) -> str:
    """Return what a unit names as the head of a list, in small letters; "" if it heads none."""
    is_head = unit.heading or unit.aside or announces(unit)
    return unit.text.lower().strip(" \t:.#*_0123456789") if is_head and not unit.speaker else ""
