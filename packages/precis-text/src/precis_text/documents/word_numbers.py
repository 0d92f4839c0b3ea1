"""The numbers that Word writes before paragraphs: "1.", "2.1", "(a)", "IV." The text of the file lacks them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from precis_text.documents.archives import attribute, local
from precis_text.documents.html_text import numbered

_KINDS = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True)
class _Level:
    """A level of a list: its kind of numbers, its pattern such as "%1.%2", and its first number."""

    kind: str = "decimal"
    pattern: str = "%1."
    start: int = 1


@dataclass
class WordNumbers:
    """The lists of a document (numbering.xml), and how far each has counted."""

    levels: dict[str, dict[int, _Level]] = field(default_factory=dict)  # by the id of a list
    shared: dict[str, str] = field(default_factory=dict)  # id of a list -> id of its definition
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    restarted: set[tuple[str, int]] = field(default_factory=set)
    overridden: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def read(cls, root: Any) -> WordNumbers:
        """Read numbering.xml; None gives no lists."""
        found, defined = cls(), {}
        for each in root if root is not None else ():
            if local(each) == "abstractNum":
                defined[attribute(each, "abstractNumId")] = {
                    _number(attribute(level, "ilvl")): _level(level)
                    for level in each
                    if local(level) == "lvl"
                }
        for each in root if root is not None else ():
            if local(each) == "num":
                found._add_list(each, defined)
        return found

    def _add_list(self, element: Any, defined: dict[str, dict[int, _Level]]) -> None:
        name = attribute(element, "numId")
        for each in element:
            if local(each) == "abstractNumId":
                self.shared[name] = attribute(each, "val")
                self.levels[name] = dict(defined.get(self.shared[name], {}))
        for each in element:
            if local(each) == "lvlOverride":
                self._override(name, each)

    def _override(self, name: str, element: Any) -> None:
        place = _number(attribute(element, "ilvl"))
        for each in element:
            if local(each) == "lvl":
                self.levels.setdefault(name, {})[place] = _level(each)
            elif local(each) == "startOverride":
                level = self.levels.get(name, {}).get(place, _Level())
                self.levels.setdefault(name, {})[place] = replace(
                    level, start=_number(attribute(each, "val"))
                )
                self.overridden.add((name, place))

    def label(self, name: str, place: int) -> str | None:
        """Count a paragraph of a list.

        Returns:
            Its number as Word shows it; "" for a bullet; None if the list does not exist.
        """
        levels = self.levels.get(name)
        if levels is None or place not in levels:
            return None
        definition = self.shared[name]
        if (name, place) in self.overridden and (name, place) not in self.restarted:
            self.counts.pop((definition, place), None)
            self.restarted.add((name, place))
        self.counts[definition, place] = self.counts.get((definition, place), levels[place].start - 1) + 1
        for deeper in range(place + 1, 10):
            self.counts.pop((definition, deeper), None)
        if levels[place].kind in ("bullet", "none"):
            return ""

        def shown(found: re.Match[str]) -> str:
            at = int(found.group(1)) - 1
            level = levels.get(at, _Level())
            return numbered(self.counts.get((definition, at), level.start), _KINDS.get(level.kind, "1"))

        return _PLACE.sub(shown, levels[place].pattern).strip()


def _level(element: Any) -> _Level:
    values = {local(each): attribute(each, "val") for each in element}
    start = _number(values["start"]) if "start" in values else 1
    return _Level(values.get("numFmt", "decimal"), values.get("lvlText", ""), start)


def _number(text: str) -> int:
    return int(text[:9]) if text.isdecimal() else 0
