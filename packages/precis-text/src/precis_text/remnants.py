"""Units that state nothing by themselves: references, notices of rights, labels, announcements, halves of sentences.

An extract never chooses them while there is anything else. The rules see only form: a year and pages, a sign of
copyright, a caption's number. English words are listed; other languages match by signs and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from precis_text.units import ENDED, TURN, TextUnit

_RIGHTS = re.compile(
    r"©|\(c\)\s*(?:19|20)\d\d|^\W*copyright\b|\ball rights reserved\b|^\W*(?:licensed|distributed) under\b",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"\bdoi\s*:|\bdoi\.org/|\barxiv\s*:\s*\d|\bisbn\b[\s:]*[\d-]{9}|\bissn\b[\s:]*\d{4}", re.IGNORECASE
)
_AUTHORS = re.compile(
    r"^\W*(?:\[\w{1,12}\]|\d{1,3}[.)])?\s*[A-Z][\w'’-]+,?\s+(?:[A-Z]\.[\s,;&-]*)+"
)  # "Smith, J. A."
_VOLUME = re.compile(
    r"\b\d{1,4}\s*\(\d{1,4}\)|\b\d{1,4}\s*,\s*\d{1,4}\s*\((?:19|20)\d\d\)|\bpp?\.\s*\d+"
    r"|\b\d{1,4}\s*[,:]\s*\d{1,5}\s*[-–]\s*\d{1,5}|\bin proc(?:eedings|\.)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_CAPTION = re.compile(
    r"^\W*(?:figure|fig\.|table|listing|algorithm|exhibit|box|plate|chart)\s+[A-Z]?[\d.]+\s*[:.–-]",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\W*(?:appendix|annex|chapter|section|part|posted|published|updated|last (?:updated|modified)|date|sent|from|to"
    r"|cc|bcc|subject|re|keywords?|tags?|category|categories|authors?|by|source|photo|image|credit|url|status|version"
    r"|contact|e-?mail|phone|tel|fax)\b[^:.!?\n]{0,30}:\s",
    re.IGNORECASE,
)  # fmt: skip
_BIBLIOGRAPHY = re.compile(
    r"^\W*(?:[\dIVX.]+\s+)?(?:references|bibliography|works cited|literature cited|further reading|literatur"
    r"|literaturverzeichnis|bibliographie|bibliografía|références|referencias)\W*$",
    re.IGNORECASE,
)
_ENTRY = 4  # most sentences that an entry of a bibliography is split into
_NAMES = 14  # most words of the sentence with its authors
_LONG = 25  # words of a label's line that says something
_LOWER = 0.2  # largest share of units with a small first letter, in a text that uses capitals


def is_remnant(text: str) -> bool:
    """Check whether a unit is a notice of rights, a reference, a caption, a label, or announces what comes next.

    Examples:
        >>> is_remnant("Smith, J. A postmortem for a bridge. Comm. ACM 12, 8 (1969).")
        True
        >>> is_remnant("Smith said in 1969 that the bridge was safe.")
        False
    """
    if _RIGHTS.search(text) and len(text.split()) < _LONG:
        return True
    if text.rstrip().endswith((":", "：")) and TURN.match(text) is None:
        return True
    if _CAPTION.match(text):
        return True
    if _LABEL.match(text) and not ENDED.search(text) and len(text.split()) < _LONG:
        return True
    return _is_reference(text)


def remnants(units: Sequence[TextUnit]) -> list[bool]:
    """Mark the units that are remnants by themselves, or by their neighbours: the sentences of a bibliography."""
    found = [is_remnant(unit.text) for unit in units]
    listed = False
    for place, unit in enumerate(units):
        if unit.heading:
            listed = _BIBLIOGRAPHY.match(unit.text) is not None
        found[place] = found[place] or listed
        if _AUTHORS.match(unit.text) and len(unit.text.split()) <= _NAMES:
            end = _end_of_entry(units, place)
            found[place:end] = [True] * (end - place)
    return found


def _end_of_entry(units: Sequence[TextUnit], start: int) -> int:
    """Return the place after an entry of a bibliography that starts with its authors; `start` if it is none."""
    for place in range(start, min(start + _ENTRY, len(units))):
        text = units[place].text
        if (
            _YEAR.search(text)
            and (_VOLUME.search(text) or _SOURCE.search(text))
            and len(text.split()) <= _NAMES
        ):
            return place + 1
    return start


def _is_reference(text: str) -> bool:
    """Check for an entry of a bibliography: authors with initials, a year, and a volume, pages or an identifier."""
    signs = [_AUTHORS.match(text), _YEAR.search(text), _VOLUME.search(text) or _SOURCE.search(text)]
    return all(sign is not None for sign in signs) or (
        _SOURCE.search(text) is not None and len(text.split()) < 15
    )


def halves(units: Sequence[TextUnit]) -> list[bool]:
    """Mark the units that start in the middle of a sentence, in a text whose sentences start with a capital.

    A page or a table that parts a sentence leaves one.
    """
    small = [_begins_small(unit) for unit in units]
    if sum(small) > _LOWER * len(units):
        return [False] * len(units)
    return small


def _begins_small(unit: TextUnit) -> bool:
    first = unit.text[:1]
    word = unit.text.split()[0]
    return first.islower() and word.islower() and word.isalpha() and TURN.match(unit.text) is None
