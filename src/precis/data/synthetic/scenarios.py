"""Read the scenarios, which are text files: `scenarios/*.txt`.

A file holds sections. A section begins with ``=== its name``. Slots come first, a line each, then a line ``---`` and
the frames (`grammar`). A slot is drawn by a function of `words`::

    town: town                              a function without arguments
    homes: number(300, 9900, step=10)       with arguments: numbers, texts, lists of `scenarios/names.txt`
    place: one of                           one of the indented lines
        at the station
        at the airport
    cause: table                            one row of a table; the first row names its forms
        short / long
        a cut cable / a digger cut through a cable

The sections ``common`` and ``passing`` hold slots that several scenarios share; ``remarks`` holds side remarks. A line
that begins with ``# `` is a comment.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from precis.data.synthetic import words
from precis.data.synthetic.grammar import Draw, Frame, Scenario, scenario
from precis.data.synthetic.words import NAMES, one_of, scenario_file, table

_DRAWN_BY: Mapping[str, Callable[..., Draw]] = {
    name: getattr(words, name)
    for name in (
        *("person", "speaker", "town", "street", "company", "product", "number", "figure", "year", "clock"),
        *("score", "weekday", "workday", "date", "month", "made_of"),
    )
}
_SHARED = ("common", "passing", "remarks")


@dataclass(frozen=True)
class ScenarioFile:
    """What a file holds: scenarios by name, side remarks that fit all of them, slots that they share."""

    scenarios: Sequence[Scenario]
    remarks: Sequence[Frame]
    common: Mapping[str, Draw] = field(default_factory=dict)
    passing: Mapping[str, Draw] = field(default_factory=dict)


def read_scenarios(name: str, shared: ScenarioFile | None = None) -> ScenarioFile:
    """Read `scenarios/NAME.txt`; its scenarios may use the slots that `shared` has for all.

    Raises:
        ValueError: a slot, a fact or a drawing function is not there, or a bracket is not closed.
    """
    sections = dict(_sections(scenario_file(name)))
    slots = {title: _slots(lines) for title, (lines, _) in sections.items()}
    common = {**(shared.common if shared else {}), **slots.get("common", {})}
    passing = {**(shared.passing if shared else {}), **slots.get("passing", {})}
    made = {
        title: scenario(title, slots[title], "\n".join(frames), common=common, passing=passing)
        for title, (_, frames) in sections.items()
        if title not in ("common", "passing")
    }
    remarks = made["remarks"].frames["aside"] if "remarks" in made else shared.remarks if shared else ()
    return ScenarioFile([s for title, s in made.items() if title not in _SHARED], remarks, common, passing)


def _sections(text: str) -> Iterator[tuple[str, tuple[list[str], list[str]]]]:
    """Each section's title, lines of slots and lines of frames."""
    for part in f"\n{text}".split("\n=== ")[1:]:
        title, *lines = part.rstrip().split("\n")
        end = lines.index("---") if "---" in lines else len(lines)
        yield title, (lines[:end], lines[end + 1 :])


def _slots(lines: list[str]) -> dict[str, Draw]:
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("    "):
            entries[-1][1].append(line[4:])
        elif line:
            entries.append((line, []))
    return dict(_slot(head, rest) for head, rest in entries)


def _slot(line: str, rest: list[str]) -> tuple[str, Draw]:
    name, _, how = line.partition(": ")
    match how:
        case "table":
            return name, table("\n".join(rest))
        case "one of":
            return name, one_of(*rest)
        case _:
            return name, _drawn(how)


def _drawn(how: str) -> Draw:
    """The call that `how` describes; of Python it may hold one call of a known function, and plain values."""
    call = ast.parse(how, mode="eval").body
    function = getattr(call.func if isinstance(call, ast.Call) else call, "id", "")
    if function not in _DRAWN_BY:
        raise ValueError(f"{how!r} is no way to draw a slot; known: {', '.join(_DRAWN_BY)}")
    if not isinstance(call, ast.Call):
        return _DRAWN_BY[function]()
    options = {keyword.arg or "": _value(keyword.value) for keyword in call.keywords}
    return _DRAWN_BY[function](*map(_value, call.args), **options)


def _value(node: ast.expr) -> Any:
    return NAMES[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)
