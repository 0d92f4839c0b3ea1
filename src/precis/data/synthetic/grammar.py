"""The small template language in which the synthetic scenarios are written.

A scenario is a dictionary of slots (how each fact is drawn) and one block of text, a frame per line::

    lead(what, where): {who} has [opened|started] a bakery in {town}.   it tells the facts in brackets
    when: The doors [open|will open] at {time} on {day}.                a frame of the fact "when"
    never!when: It will never open, {who} said.                         a fact that may replace "when"
    price?: A loaf costs {price} {price:euro/euros}.                    a fact that half the texts leave out
    cake?price: A cake costs twice as much.                             the same, told only if "price" is
    hook: {other.first} was up early.                                   a side remark to begin with
    aside: {other} remembers the bakery of {far_town}.                  a side remark: never in the summary
    close: Do drop in.                                                  a side remark to end with
    summary: {who} opens a bakery on {day}<price: ; a loaf costs {price} euros>.

Indented lines continue the frame above; one that begins with ``a)`` is a turn of the speaker in slot ``a``.
In a text ``{slot}`` and ``{slot.form}`` stand for a drawn value, ``{slot:one/many}`` for the word that
agrees with a drawn number, ``[a|b]`` for a free choice (nesting allowed), ``<fact: text>`` and ``<!fact:
text>`` for text that is there only if the fact was told, or was not. Spaces are closed up at the end, so
that one too many does no harm. There is no logic beyond that, on purpose: what needs more is a slot. A slot
or fact that is not there, and a bracket that is not closed, are errors when the module is imported.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Forms = Mapping[str, "str | Text"]
"""One drawn value: its written forms by name; "" is the plain one."""

Draw = Callable[[random.Random], Forms]
"""How a slot is drawn."""

REDRAWS = 30  # how often a value that is in use already is drawn again before it is accepted
SINGULAR = frozenset({"1", "one"})
SHARED = frozenset({"=", ""})  # a form that begins with "=", such as a pronoun, may occur in several values


class Story:
    """The values and facts of one text while it is being written; values are drawn at their first use.

    ``facts`` are those that are told. After ``complete`` a new value is an error, so that a summary holds
    nothing that its document does not.
    """

    def __init__(self, scenario: Scenario, rng: random.Random) -> None:
        self.rng = rng
        self.facts: set[str] = set()
        self.values: dict[str, Forms] = {}
        self._slots = scenario.slots
        self._passing = scenario.passing
        self._taken: set[str] = set()
        self._name = scenario.name
        self._complete = False

    def value(self, slot: str) -> Forms:
        """The value of a slot, drawn so that no other slot has the same name, number or day."""
        known = self.values.get(slot)
        if known is not None:
            return known
        if self._complete:
            raise ValueError(f"{self._name}: the summary uses {slot!r}, which the document does not tell")
        for _ in range(REDRAWS):
            drawn = self._slots[slot](self.rng)
            keys = [form for form in drawn.values() if type(form) is str and form[:1] not in SHARED]
            if self._taken.isdisjoint(keys):
                break
        self._taken.update(keys)
        self.values[slot] = drawn
        return drawn

    def names(self, word: str) -> bool:
        """Whether a word is one that was drawn, such as a name, or the first of one."""
        return any(taken.startswith(word) for taken in self._taken)

    def complete(self) -> None:
        """Draw no more values: from here on a slot that the document does not hold is an error."""
        self._complete = True

    def write(self, frame: Frame) -> str:
        """The frame with its slots filled and its choices made; passing slots are then forgotten."""
        out: list[str] = []
        frame.text.write(self, out)
        for slot in self._passing & self.values.keys():
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

    def nodes(self) -> Iterator[Node]:
        """Every node, inner ones included."""
        for part in self.parts:
            if not isinstance(part, str):
                yield part
                for inner in part.inside():
                    yield from inner.nodes()


@dataclass(frozen=True, slots=True)
class Value:
    """``{slot}``, ``{slot.form}``"""

    slot: str
    form: str

    def write(self, story: Story, out: list[str]) -> None:
        form = story.value(self.slot)[self.form]
        if isinstance(form, str):
            out.append(form[1:] if form[:1] == "=" else form)
        else:
            form.write(story, out)

    def inside(self) -> Sequence[Text]:
        return ()


@dataclass(frozen=True, slots=True)
class Agreeing:
    """``{slot:one/many}``"""

    slot: str
    one: str
    many: str

    def write(self, story: Story, out: list[str]) -> None:
        out.append(self.one if story.value(self.slot)[""] in SINGULAR else self.many)

    def inside(self) -> Sequence[Text]:
        return ()


@dataclass(frozen=True, slots=True)
class Choice:
    """``[a|b|c]``"""

    options: tuple[Text, ...]

    def write(self, story: Story, out: list[str]) -> None:
        self.options[int(story.rng.random() * len(self.options))].write(story, out)

    def inside(self) -> Sequence[Text]:
        return self.options


@dataclass(frozen=True, slots=True)
class IfTold:
    """``<fact: text>``, ``<!fact: text>``"""

    fact: str
    told: bool
    text: Text

    def write(self, story: Story, out: list[str]) -> None:
        if (self.fact in story.facts) is self.told:
            self.text.write(story, out)

    def inside(self) -> Sequence[Text]:
        return (self.text,)


Node = Value | Agreeing | Choice | IfTold

_TOKEN = re.compile(r"\{(\w+)(?:\.(\w+)|:([^{}/]*)/([^{}/]*))?\}|<(!?)(\w+):|[\[\]|>]|[^\[\]|<>{}]+|.")


def parse(source: str) -> Text:
    """Parse one frame. Raises ValueError naming the frame if a bracket is not closed."""
    tokens = list(_TOKEN.finditer(source))
    text, position = _sequence(tokens, 0, frozenset())
    if position != len(tokens):
        raise ValueError(f"bracket without partner in {source!r}")
    return text


def _sequence(tokens: Sequence[re.Match[str]], start: int, stop: frozenset[str]) -> tuple[Text, int]:
    parts: list[str | Node] = []
    position = start
    while position < len(tokens) and tokens[position].group() not in stop:
        token = tokens[position]
        slot, form, one, many, negated, fact = token.groups()
        position += 1
        if slot is not None:
            parts.append(Value(slot, form or "") if one is None else Agreeing(slot, one, many))
        elif fact is not None:
            inner, position = _sequence(tokens, position, frozenset(">"))
            parts.append(IfTold(fact, not negated, inner))
            position = _expect(tokens, position)
        elif token.group() == "[":
            choice, position = _choice(tokens, position)
            parts.append(choice)
        elif token.group() in "]|>{}<":
            raise ValueError(f"bracket without partner in {token.string!r}")
        else:
            parts.append(token.group())
    return Text(tuple(parts)), position


def _choice(tokens: Sequence[re.Match[str]], position: int) -> tuple[Choice, int]:
    options: list[Text] = []
    while True:
        option, position = _sequence(tokens, position, frozenset("|]"))
        options.append(option)
        closing = position < len(tokens) and tokens[position].group() == "]"
        position = _expect(tokens, position)
        if closing:
            return Choice(tuple(options)), position


def _expect(tokens: Sequence[re.Match[str]], position: int) -> int:
    if position >= len(tokens):
        raise ValueError(f"bracket without partner in {tokens[0].string!r}")
    return position + 1


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame and the facts that it tells."""

    text: Text
    tells: tuple[str, ...] = ()


@dataclass(slots=True)
class Scenario:
    """One kind of story: slots, and the frames by label in the order of the block.

    Slots in ``passing`` are drawn anew for each frame. Facts in ``optional`` may be left out, and are if the
    fact named there ("" for none) is not told; ``instead`` names for a fact the one that it may replace.
    """

    name: str
    slots: Mapping[str, Draw]
    passing: frozenset[str] = frozenset()
    frames: dict[str, list[Frame]] = field(default_factory=dict)
    optional: dict[str, str] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)

    @property
    def facts(self) -> list[str]:
        """The labels that are neither opening, side remark nor summary, in order."""
        return [label for label in self.frames if label not in RESERVED]


RESERVED = frozenset({"hook", "lead", "aside", "close", "summary"})
_LABEL = re.compile(r"(\w+)(?:(\?)(\w*)|!(\w+)|\(([\w, ]*)\))?: ?(.*)")
_TURN = re.compile(r"^(\w)\) ?", re.MULTILINE)  # "a) Hello" is a turn of the speaker in slot a


def scenario(
    name: str,
    slots: Mapping[str, Draw],
    block: str,
    *,
    common: Mapping[str, Draw],
    passing: Mapping[str, Draw],
) -> Scenario:
    """Parse a scenario's block of frames.

    ``common`` and ``passing`` are slots that several scenarios share; the latter are for side remarks, and
    are drawn anew for each frame. Raises ValueError for a slot or a fact that is not there.
    """
    result = Scenario(name, {**common, **passing, **slots}, frozenset(passing))
    for label, mark, needed, replaced, tells, source in _labelled(block):
        told = tuple(fact.strip() for fact in tells.split(",") if fact.strip())
        if mark:
            result.optional[label] = needed
        if replaced:
            result.instead[label] = replaced
        text = parse(_TURN.sub(r"{\1}: ", source))
        result.frames.setdefault(label, []).append(Frame(text, told))
    _check(result)
    return result


def _labelled(block: str) -> Iterator[tuple[str, ...]]:
    """Label, "?", needed fact, replaced fact, told facts and text of each frame."""
    entry: list[str] = []
    for line in [*block.strip("\n").splitlines(), "end:"]:
        if line[:1] not in ("", " "):
            if entry:
                yield _entry(entry)
            entry = []
        if line.strip():
            entry.append(line.strip())


def _entry(lines: Sequence[str]) -> tuple[str, ...]:
    match = _LABEL.fullmatch(lines[0])
    if match is None:
        raise ValueError(f"no label at the start of {lines[0]!r}")
    *labels, source = match.groups("")
    for line in lines[1:]:
        source += ("\n" if _TURN.match(line) else " ") + line
    return (*labels, source)


def _check(result: Scenario) -> None:
    for label, entries in result.frames.items():
        for frame in entries:
            for node in frame.text.nodes():
                if isinstance(node, IfTold) and node.fact not in result.frames:
                    raise ValueError(f"{result.name}, {label}: no fact {node.fact!r}")
                if isinstance(node, Value | Agreeing) and node.slot not in result.slots:
                    raise ValueError(f"{result.name}, {label}: no slot {node.slot!r}")
        named = [result.instead.get(label, label), result.optional.get(label) or label]
        for fact in [*named, *(fact for frame in entries for fact in frame.tells)]:
            if fact not in result.frames:
                raise ValueError(f"{result.name}, {label}: no fact {fact!r}")


_ARTICLE = re.compile(r"\b([Aa])n? (?=(\"?[\w]+))")
_VOWEL_SOUND = re.compile(
    r"\"?(?:(?!uni|use|usu|eu|one\b|once)[aeiou]|hour|honest|8|11\b|18\b)", re.IGNORECASE
)
_SENTENCE_START = re.compile(r"(?:^|(?<=[.!?] ))[a-z]")
_SPACES = re.compile(r"  +| (?=[.,;!?](?:\s|$))")


def polish(text: str) -> str:
    """Agree "a" and "an" with the next word, close up spaces, begin sentences with a capital."""
    text = _SPACES.sub(lambda match: " " if len(match.group()) > 1 else "", text)
    text = _ARTICLE.sub(_article, text)
    return _SENTENCE_START.sub(lambda match: match.group().upper(), text.strip())


def _article(match: re.Match[str]) -> str:
    return match.group(1) + ("n " if _VOWEL_SOUND.match(match.group(2)) else " ")
