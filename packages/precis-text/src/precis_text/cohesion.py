"""Incomplete units of a document, which a summary cannot quote without their neighbours, and complete ones with a flaw.

An incomplete unit announces the next one, has one end of a quotation, continues a sentence that a line break split,
or asks a question. `back_references` finds complete sentences that point back. The flaws lower a unit's worth
(`unit_worth`): a formality, the aim of a study without its result, a message that breaks off, a lost formula.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from precis_text.pauses import BREAKS_OFF, UNHEARD
from precis_text.quoted_spans import straight_quotes, without_smileys
from precis_text.tables import read_table
from precis_text.units import ENDED, TextUnit

_TOLD = 3  # least words behind "I am sorry to tell you"
_ANNOUNCING = 9  # an announcement with fewer words says nothing else
_ASKS = re.compile("[?？؟\u037e]$|(?<=[\u0370-\u03ff\u1f00-\u1fff]);$")  # Greek has another mark
_TABLE = read_table("cohesion.toml")
_BELOW, _FOLLOWS, _DEMANDS, _NEWS, _FORMAL, _SESSIONS, _HOLES, _LOST, _CUT, _AIMS = (
    re.compile("|".join(_TABLE[name].split("\n")))
    for name in ("below", "follows", "demands", "news", "formal", "sessions", "holes", "lost", "cut", "aims")
)
_LONGEST_AIM = 600  # characters
_ENDED = 0.6  # least share of units with an end mark, in a text whose sentences have one
_LOWER = 0.2  # largest share of units with a small first letter, in a text that uses capitals
_LOOSE = 0.1  # largest share of the marks behind a space, in such a text
_QUOTES = "\"'”’»)]"


def is_part(unit: TextUnit) -> bool:
    """Check whether a unit is a short announcement ("In a clone of this repository:") or has one end of a quotation."""
    if unit.speaker:
        return False
    is_short = announces(unit) and len(unit.text.split()) < _ANNOUNCING
    return is_short or _is_torn(unit.text)


def _is_torn(text: str) -> bool:
    """Check whether a text has only one end of a quotation, or the beginning of a bracket without its end."""
    text = without_smileys(text).replace("\x1b[", "")  # that bracket colours a terminal
    if "„" in text:  # German closes quotations with the English opening mark, Polish does not
        return text.count("„") != text.count("“") + text.count("”")
    opened, closed = text.count("“"), text.count("”")
    alone = opened > closed or (closed - opened) % 2 == 1  # Swedish opens and closes with one mark
    link = text[max(text.rfind("["), 0) :] if "[" in text else "]"  # not "[0, 1)"
    is_open = text.count("(") > text.count(")") or not ("]" in link or ")" in link)  # "1)" starts an item
    return alone or straight_quotes(text) % 2 == 1 or is_open


def announces(unit: TextUnit) -> bool:
    """Check whether a unit points to the next one: "The parts:", "Below are hints", "It goes as follows"."""
    points = _BELOW.match(unit.text) or _FOLLOWS.search(unit.text)
    return (unit.text.endswith((":", "：")) or points is not None) and not unit.speaker


def needs_next(unit: TextUnit) -> bool:
    """Check whether a unit says nothing without what it announces; a demand with its deadline says enough."""
    is_told = len(unit.text.split()) >= _ANNOUNCING and _DEMANDS.search(unit.text) is not None
    return announces(unit) and not is_told


def tells_news(text: str) -> bool:
    """Check whether a sentence says what a letter is for: "I am sorry to tell you that ..."; a quotation does not."""
    found = _NEWS.search(text)
    return found is not None and text[:1] not in '"“„«‘' and len(text[found.end() :].split()) >= _TOLD


def goes_on(before: TextUnit, unit: TextUnit) -> bool:
    """Check whether a unit continues the sentence of the one before it, which a line break split."""
    is_apart = before.heading or unit.speaker
    return not is_apart and unit.text[:1].islower() and not ENDED.search(before.text)


def asks(unit: TextUnit) -> bool:
    """Check whether a unit is a question outside of a dialogue: its answer is elsewhere."""
    return _ASKS.search(unit.text.rstrip(_QUOTES)) is not None and not unit.speaker


def is_formal(unit: TextUnit) -> bool:
    """Check whether a unit says what all texts of its kind say: "The minutes of the last meeting were approved"."""
    return _FORMAL.search(unit.text) is not None and not unit.speaker


def formalities(units: Sequence[TextUnit]) -> list[bool]:
    """Mark what opens and closes a meeting or is formal, in minutes: a text with two such sentences, or more."""
    found = [
        is_formal(unit) or (not unit.speaker and _SESSIONS.search(unit.text) is not None) for unit in units
    ]
    return found if sum(found) > 1 else [False] * len(units)


def is_aim(unit: TextUnit) -> bool:
    """Check whether a sentence of a study says what was done and not what was found: "Next, we measured it."."""
    return not unit.speaker and len(unit.text) <= _LONGEST_AIM and _AIMS.search(unit.text) is not None


def is_broken_off(unit: TextUnit) -> bool:
    """Check whether a message breaks off ("So we thought that the"), or has words that were not heard."""
    return bool(unit.speaker) and (BREAKS_OFF.search(unit.text) or UNHEARD.search(unit.text)) is not None


def unended(units: Sequence[TextUnit]) -> list[bool]:
    """Mark the written units without an end mark, in a text whose sentences have one; items of a list need none."""
    told = [unit for unit in units if not (unit.heading or unit.aside)]
    ended = sum(ENDED.search(unit.text) is not None for unit in told)
    if ended < _ENDED * len(told):
        return [False] * len(units)
    return [not (unit.speaker or unit.text[:1] in "-*•–" or ENDED.search(unit.text)) for unit in units]


def holed(units: Sequence[TextUnit]) -> list[bool]:
    """Mark the units that lost a formula, a source or a name: "With , we find", "shown by.", "The code for provides".

    A space before a mark counts only in a text with few of them. Speech may repeat words: "in the of the".
    """
    marks = sum(unit.text.count(", ") + unit.text.count(". ") for unit in units)
    found = [len(_HOLES.findall(unit.text)) for unit in units]
    is_tight = sum(found) < _LOOSE * marks
    return [
        (is_tight and holes > 0)
        or (not unit.speaker and _LOST.search(unit.text) is not None)
        or (is_unended and _CUT.search(unit.text) is not None)
        for unit, holes, is_unended in zip(units, found, unended(units), strict=True)
    ]


def halves(units: Sequence[TextUnit]) -> list[bool]:
    """Mark the units that start in the middle of a sentence, in a text whose sentences start with a capital.

    A page or a table that parts a sentence leaves one.
    """
    small = [_begins_small(unit) for unit in units]
    return small if sum(small) <= _LOWER * len(units) else [False] * len(units)


def _begins_small(unit: TextUnit) -> bool:
    first = unit.text[:1]
    word = unit.text.split()[0]
    return first.islower() and word.islower() and word.isalpha() and not unit.speaker
