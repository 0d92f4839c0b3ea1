"""The small template language of the synthetic scenarios, in text files: `scenarios/*.txt`.

A file holds sections. A section starts with ``=== its name``. Slots come first, one per line, then a line ``---`` and
the frames. Comments precede the first section. A function of `words` draws the value of a slot::

    town: town                              a function without arguments
    homes: number(300, 9900, step=10)       with arguments: numbers, texts, lists of `scenarios/names.txt`
    place: one of                           one of the indented lines
        at the station
        at the airport
    cause: table                            one row of a table; the first row names its forms
        short / long
        a cut cable / a digger cut through a cable

The sections ``common`` and ``passing`` hold slots that several scenarios share; ``remarks`` holds side remarks. Slots
in ``passing`` are for side remarks, and each frame draws them again. The frames, one per line::

    lead(what, where): {who} has [opened|started] a bakery in {town}.   it states the facts in brackets
    when: The doors [open|will open] at {time} on {day}.                a frame of the fact "when"
    never!when: It will never open, {who} said.                         a fact that may replace "when"
    price?: A loaf costs {price} {price:euro/euros}.                    a fact that half the texts leave out
    cake?price: A cake costs twice as much.                             the same, only in texts with "price"
    hook: {other.first} was up early.                                   an opening side remark
    aside: {other} remembers the bakery of {far_town}.                  a side remark: never in the summary
    close: Do drop in.                                                  a closing side remark
    summary: {who} opens a bakery on {day}<price: ; a loaf costs {price} euros>.

Indented lines continue the frame above; one that starts with ``a)`` is a turn of the speaker in slot ``a``.
In a text, ``{slot}`` and ``{slot.form}`` insert a drawn value, ``{slot:one/many}`` the word that agrees with a drawn
number, and ``[a|b]`` a random choice (which may be nested). ``<fact: text>`` and ``<!fact: text>`` insert text only if
the story states the fact, or does not. Extra spaces are removed at the end. Anything more needs a slot, by design.
Unknown slots and facts and unclosed brackets are errors when the file is read.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from precis.data.synthetic import names_and_numbers
from precis.data.synthetic.names_and_numbers import NAMES, choose, scenario_file

Forms = Mapping[str, "str | Text"]
"""One drawn value: its written forms by name; "" is the plain one."""

Draw = Callable[[random.Random], "str | Forms"]
"""A function that draws a slot; it returns forms, or a text for the plain form only."""

REDRAWS = 30  # how often to redraw a value that is already in use before accepting it
SINGULAR = frozenset({"1", "one"})
SHARED = frozenset({"=", ""})  # a form with a leading "=", such as a pronoun, may occur in several values


class Story:
    """The values and facts of one text during writing; values are drawn at their first use.

    ``facts`` are the stated ones. After ``complete`` a new value is an error, so that a summary contains
    nothing that its document does not.
    """

    def __init__(self, scenario: Scenario, rng: random.Random) -> None:
        self.rng = rng
        self.facts: set[str] = set()
        self.values: dict[str, Forms] = {}
        self._scenario = scenario
        self._taken: set[str] = set()
        self._complete = False

    def value(self, slot: str) -> Forms:
        """Return the value of a slot, drawn so that no other slot has the same name, number or day."""
        known = self.values.get(slot)
        if known is not None:
            return known
        if self._complete:
            raise ValueError(
                f"{self._scenario.name}: the summary uses {slot!r}, which the document does not state"
            )
        for _ in range(REDRAWS):
            drawn = self._scenario.slots[slot](self.rng)
            forms = {"": drawn} if isinstance(drawn, str) else drawn
            keys = [form for form in forms.values() if type(form) is str and form[:1] not in SHARED]
            if self._taken.isdisjoint(keys):
                break
        self._taken.update(keys)
        self.values[slot] = forms
        return forms

    def names(self, word: str) -> bool:
        """Check whether a word is a drawn value, such as a name, or the start of one."""
        return any(taken.startswith(word) for taken in self._taken)

    def complete(self) -> None:
        """Refuse new values: from here on, a slot that the document does not contain is an error."""
        self._complete = True

    def write(self, frame: Frame) -> str:
        """Write the frame with its slots filled and its choices made; forget passing slots afterwards."""
        out: list[str] = []
        frame.text.write(self, out)
        for slot in self._scenario.passing & self.values.keys():
            del self.values[slot]
        return "".join(out)


@dataclass(frozen=True, slots=True)
class Text:
    """A parsed frame: literal strings and nodes in order."""

    parts: tuple[str | Node, ...]

    def write(self, story: Story, out: list[str]) -> None:
        for part in self.parts:
            if type(part) is str:
                out.append(part)
            else:
                part.write(story, out)  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a text: ``{slot}``, ``{slot.form}``."""

    slot: str
    form: str

    def write(self, story: Story, out: list[str]) -> None:
        form = story.value(self.slot)[self.form]
        if isinstance(form, str):
            out.append(form[1:] if form[:1] == "=" else form)
        else:
            form.write(story, out)


@dataclass(frozen=True, slots=True)
class Agreeing:
    """A word that agrees with a number: ``{slot:one/many}``."""

    slot: str
    one: str
    many: str

    def write(self, story: Story, out: list[str]) -> None:
        out.append(self.one if story.value(self.slot)[""] in SINGULAR else self.many)


@dataclass(frozen=True, slots=True)
class Choice:
    """A random choice: ``[a|b|c]``."""

    options: tuple[Text, ...]

    def write(self, story: Story, out: list[str]) -> None:
        choose(story.rng, self.options).write(story, out)


@dataclass(frozen=True, slots=True)
class IfTold:
    """Text that depends on a fact: ``<fact: text>``, ``<!fact: text>``."""

    fact: str
    told: bool
    text: Text

    def write(self, story: Story, out: list[str]) -> None:
        if (self.fact in story.facts) is self.told:
            self.text.write(story, out)


Node = Value | Agreeing | Choice | IfTold

_TOKEN = re.compile(r"\{(\w+)(?:\.(\w+)|:([^{}/]*)/([^{}/]*))?\}|<(!?)(\w+):|[\[\]|>]|[^\[\]|<>{}]+|.")


class Frame:
    """A parsed frame.

    Attributes:
        tells: the facts that it states.
        slots, facts: the slots and facts in its text.

    Raises:
        ValueError: a bracket is not closed; the message quotes the frame.
    """

    def __init__(self, source: str, tells: Sequence[str] = ()) -> None:
        self.tells = tells
        self.slots: set[str] = set()
        self.facts: set[str] = set()
        self._source, self._tokens = source, _TOKEN.finditer(source)
        self.text, _ = self._parse(until="")

    def _parse(self, until: str) -> tuple[Text, str]:
        """Return the text before one of these marks, and that mark."""
        parts: list[str | Node] = []
        for token in self._tokens:
            slot, form, one, many, negated, fact = token.groups()
            mark = token.group()
            if mark in until:
                return Text(tuple(parts)), mark
            if slot is not None:
                self.slots.add(slot)
                parts.append(Value(slot, form or "") if one is None else Agreeing(slot, one, many))
            elif fact is not None:
                self.facts.add(fact)
                parts.append(IfTold(fact, not negated, self._parse(until=">")[0]))
            elif mark == "[":
                options, closing = [], "|"
                while closing == "|":
                    option, closing = self._parse(until="|]")
                    options.append(option)
                parts.append(Choice(tuple(options)))
            elif mark in "]|>{}<":
                until = mark
                break
            else:
                parts.append(mark)
        if until:
            raise ValueError(f"unmatched bracket in {self._source!r}")
        return Text(tuple(parts)), ""


@dataclass(slots=True)
class Scenario:
    """One kind of story: slots, and the frames by label in the order of the block.

    Each frame draws the slots in ``passing`` again. Facts in ``optional`` may be left out, and are if the
    fact named there ("" for none) is not stated; ``instead`` maps a fact to the one that it may replace.
    """

    name: str
    slots: Mapping[str, Draw]
    passing: frozenset[str] = frozenset()
    frames: dict[str, list[Frame]] = field(default_factory=dict)
    optional: dict[str, str] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)

    @property
    def facts(self) -> list[str]:
        """The labels other than opening, side remark and summary, in order."""
        return [label for label in self.frames if label not in RESERVED]


RESERVED = frozenset({"hook", "lead", "aside", "close", "summary"})
_ENTRY = re.compile(r"\n(?=\S)")
_LABEL = re.compile(r"(\w+)(?:(\?)(\w*)|!(\w+)|\(([\w, ]*)\))?: ?(.*)")
_TURN = re.compile(r"^(\w)\) ?", re.MULTILINE)  # "a) Hello" is a turn of the speaker in slot a


def scenario(name: str, slots: Mapping[str, Draw], block: str, *, passing: Mapping[str, Draw]) -> Scenario:
    """Parse a scenario's block of frames; raise `ValueError` for an unknown slot or fact, label or open bracket."""
    result = Scenario(name, {**passing, **slots}, frozenset(passing))
    for entry in _ENTRY.split(block.strip("\n")):
        first, *more = (line.strip() for line in entry.splitlines() if line.strip())
        match = _LABEL.fullmatch(first)
        if match is None:
            raise ValueError(f"no label at the start of {first!r}")
        label, mark, needed, replaced, tells, source = match.groups("")
        if mark:
            result.optional[label] = needed
        if replaced:
            result.instead[label] = replaced
        source += "".join(("\n" if _TURN.match(line) else " ") + line for line in more)
        told = [fact.strip() for fact in tells.split(",") if fact.strip()]
        result.frames.setdefault(label, []).append(Frame(_TURN.sub(r"{\1}: ", source), told))
    for label, entries in result.frames.items():
        facts = {result.instead.get(label, label), result.optional.get(label) or label}
        facts |= {fact for frame in entries for fact in (*frame.facts, *frame.tells)}
        asked = {slot for frame in entries for slot in frame.slots}
        for what, missing in (("fact", facts - result.frames.keys()), ("slot", asked - result.slots.keys())):
            if missing:
                raise ValueError(f"{name}, {label}: no {what} {min(missing)!r}")
    return result


@dataclass(frozen=True)
class ScenarioFile:
    """The contents of a file: scenarios, side remarks that fit all of them, and shared slots."""

    scenarios: Sequence[Scenario]
    remarks: Sequence[Frame]
    common: Mapping[str, Draw] = field(default_factory=dict)
    passing: Mapping[str, Draw] = field(default_factory=dict)


def read_scenarios(name: str, shared: ScenarioFile | None = None) -> ScenarioFile:
    """Read `scenarios/NAME.txt`; its scenarios may use the common slots of `shared`.

    Raises:
        ValueError: a slot, a fact or a drawing function is unknown, or a bracket is not closed.
    """
    sections = dict(_sections(scenario_file(name)))
    common, passing = (
        {**(getattr(shared, part) if shared else {}), **(sections.pop(part)[0] if part in sections else {})}
        for part in ("common", "passing")
    )
    made = {
        title: scenario(title, {**common, **slots}, frames, passing=passing)
        for title, (slots, frames) in sections.items()
    }
    own = made.pop("remarks", None)
    remarks = own.frames["aside"] if own else shared.remarks if shared else ()
    return ScenarioFile([*made.values()], remarks, common, passing)


def _sections(text: str) -> Iterator[tuple[str, tuple[dict[str, Draw], str]]]:
    """Yield each section's title, slots and block of frames."""
    for part in f"\n{text}".split("\n=== ")[1:]:
        head, _, frames = part.rstrip().partition("\n---\n")
        title, _, slots = head.partition("\n")
        yield title, (dict(_slot(entry) for entry in _ENTRY.split(slots) if entry), frames)


def _slot(entry: str) -> tuple[str, Draw]:
    head, *rest = (line.removeprefix("    ") for line in entry.splitlines() if line)
    name, _, how = head.partition(": ")
    match how:
        case "table":
            return name, table("\n".join(rest))
        case "one of":
            return name, one_of(*rest)
        case _:
            return name, _drawn(how)


def one_of(*options: str) -> Draw:
    """Return a draw of one of the options, each of which is a frame."""
    rows = [{"": _cell(option)} for option in options]
    return lambda rng: choose(rng, rows)


def table(block: str) -> Draw:
    """Return a draw of one row of a table; the first line names its forms, " / " separates cells, cells are frames.

    A line with a leading space continues the row above.
    """
    joined = re.sub(r"\n +", " ", block.strip("\n"))
    header, *lines = [[cell.strip() for cell in line.split(" / ")] for line in joined.splitlines()]
    for cells in lines:
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} cells for the forms {header} in {cells}")
    rows = [dict(zip(header, map(_cell, cells), strict=True)) for cells in lines]
    return lambda rng: choose(rng, rows)


def _cell(source: str) -> str | Text:
    text = Frame(source).text
    return source if all(isinstance(part, str) for part in text.parts) else text


_DRAWN_BY: Mapping[str, Callable[..., str | Forms]] = {
    name: getattr(names_and_numbers, name)
    for name in (
        *("person", "speaker", "town", "street", "company", "product", "number", "figure", "year", "clock"),
        *("score", "weekday", "workday", "date", "month", "made_of"),
    )
}


def _drawn(how: str) -> Draw:
    """Return the call that `how` describes: one call of a known function with plain values."""
    call = ast.parse(how, mode="eval").body
    function = getattr(call.func if isinstance(call, ast.Call) else call, "id", "")
    if function not in _DRAWN_BY:
        raise ValueError(f"{how!r} does not draw a slot; known functions: {', '.join(_DRAWN_BY)}")
    draw = _DRAWN_BY[function]
    if not isinstance(call, ast.Call):
        return draw
    arguments = [_value(node) for node in call.args]
    options = {keyword.arg or "": _value(keyword.value) for keyword in call.keywords}
    return lambda rng: draw(rng, *arguments, **options)


def _value(node: ast.expr) -> Any:
    return NAMES[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)
