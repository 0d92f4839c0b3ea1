"""Names and numbers of the synthetic corpus: everything in it that a model has to copy.

Names are put together from word parts, so that the sets are large and open: a held-out text nearly always
holds names that no training text had. Any likeness to a real person, place or company is chance.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

from precis.data.synthetic.grammar import Draw, Forms, Text, parse

COUNT_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def scenario_file(name: str) -> str:
    """The text of a file of `scenarios/`."""
    return (files(__package__) / "scenarios" / f"{name}.txt").read_text(encoding="utf-8")


def _lists() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in scenario_file("names").splitlines():
        if line.endswith(":"):
            name = line[:-1]
            found[name] = ()
        elif line.startswith(" "):
            found[name] += tuple(line.split())
    return found


NAMES: Mapping[str, tuple[str, ...]] = _lists()
"""Parts of names by the name of their list, as `scenarios/names.txt` has them."""


def choose(rng: random.Random, options: Sequence[str]) -> str:
    """One of the options; three times as fast as ``rng.choice``, which matters at this volume."""
    return options[int(rng.random() * len(options))]


def _part(rng: random.Random, name: str) -> str:
    return choose(rng, NAMES[name])


def between(rng: random.Random, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return low + int(rng.random() * (high - low + 1))


def person() -> Draw:
    """Forms: full name; first, last; he, him, his (each as the person's own pronoun)."""

    def draw(rng: random.Random) -> Forms:
        first, woman = _first_name(rng)
        last = _part(rng, "SURNAME_STARTS") + _part(rng, "SURNAME_ENDS")
        pronouns = ("=she", "=her", "=her") if woman else ("=he", "=him", "=his")
        he, him, his = pronouns
        return {"": f"{first} {last}", "first": first, "last": last, "he": he, "him": him, "his": his}

    return draw


def speaker() -> Draw:
    """Forms: first name; he, him, his."""

    def draw(rng: random.Random) -> Forms:
        first, woman = _first_name(rng)
        he, him, his = ("=she", "=her", "=her") if woman else ("=he", "=him", "=his")
        return {"": first, "he": he, "him": him, "his": his}

    return draw


def _first_name(rng: random.Random) -> tuple[str, bool]:
    woman = rng.random() < 0.5
    if rng.random() < 0.6:
        return _part(rng, "WOMEN" if woman else "MEN"), woman
    return _part(rng, "NAME_STARTS") + _part(rng, "NAME_ENDS_WOMEN" if woman else "NAME_ENDS_MEN"), woman


def made_of(*parts: Sequence[str] | str) -> Draw:
    """A name made of one item of each list; strings are taken as they are."""

    def draw(rng: random.Random) -> Forms:
        return {"": "".join([part if isinstance(part, str) else choose(rng, part) for part in parts])}

    return draw


def town() -> Draw:
    """A town such as Oakbury, one in four with a word before it such as Upper Oakbury."""
    return _town


def _town(rng: random.Random) -> Forms:
    name = _part(rng, "PLACE_STARTS") + _part(rng, "PLACE_ENDS")
    return {"": f"{_part(rng, 'PLACE_WORDS')} {name}" if rng.random() < 0.25 else name}


def street() -> Draw:
    """A street such as Castle Lane; one in three is named after a place."""
    return _street


def _street(rng: random.Random) -> Forms:
    place = rng.random() < 0.33
    name = _part(rng, "PLACE_STARTS") + _part(rng, "PLACE_ENDS") if place else _part(rng, "STREET_STARTS")
    return {"": f"{name} {_part(rng, 'STREET_ENDS')}"}


def company(*kinds: str) -> Draw:
    """A company's name; ``kinds`` are the words that follow its stem, such as "Foods"."""
    return made_of(NAMES["STEM_STARTS"], NAMES["STEM_ENDS"], " ", kinds)


def product(low: int = 2, high: int = 90) -> Draw:
    """A product's name: a made-up word and a number."""

    def draw(rng: random.Random) -> Forms:
        return {"": f"{_part(rng, 'STEM_STARTS')}{_part(rng, 'STEM_ENDS')} {between(rng, low, high)}"}

    return draw


def number(low: int, high: int, *, step: int = 1) -> Draw:
    """A count: below ten in words, from a thousand up with a comma."""

    def draw(rng: random.Random) -> Forms:
        value = low + step * between(rng, 0, (high - low) // step)
        return {"": COUNT_WORDS[value] if 0 < value < 10 else f"{value:,}"}

    return draw


def figure(low: int, high: int, *, tenths: bool = False) -> Draw:
    """A measured value, always in figures; with ``tenths`` one place after the point."""

    def draw(rng: random.Random) -> Forms:
        value = between(rng, low, high)
        return {"": f"{value}.{between(rng, 1, 9)}" if tenths else f"{value:,}"}

    return draw


def year(low: int, high: int) -> Draw:
    """A year."""

    def draw(rng: random.Random) -> Forms:
        return {"": str(between(rng, low, high))}

    return draw


def clock(first: int = 6, last: int = 22, *, minutes: Sequence[str] = ("00", "15", "30", "45")) -> Draw:
    """A time of day such as 14:30."""

    def draw(rng: random.Random) -> Forms:
        return {"": f"{between(rng, first, last)}:{choose(rng, minutes)}"}

    return draw


def score(low: int, high: int) -> Draw:
    """A result such as 3-1, the winner first. Forms: part, whole: what one player of the winner scored."""

    def draw(rng: random.Random) -> Forms:
        lost = between(rng, low, high)
        won = lost + between(rng, 1, 3)
        parts = ["the first goal / the opening goal", "the last goal / the final goal"]
        if won > 1:
            parts.append("twice / two of the goals")
        if won > 2:
            parts.append("three times / three of the goals")
        part, whole = choose(rng, parts).split(" / ") if won > 1 else ("the only goal", "the goal of the day")
        return {"": f"{won}-{lost}", "part": part, "whole": whole}

    return draw


def weekday() -> Draw:
    """A day of the week."""
    return made_of(NAMES["WEEKDAYS"])


def workday() -> Draw:
    """A day from Monday to Friday."""
    return made_of(NAMES["WEEKDAYS"][:5])


def date() -> Draw:
    """A day and month such as 14 March."""

    def draw(rng: random.Random) -> Forms:
        return {"": f"{between(rng, 1, 28)} {_part(rng, 'MONTHS')}"}

    return draw


def month() -> Draw:
    """A month."""
    return made_of(NAMES["MONTHS"])


def one_of(*options: str) -> Draw:
    """One of the options, each a frame of its own."""
    return _row_of([{"": _cell(option)} for option in options])


def table(block: str) -> Draw:
    """One row of a table: its forms are named by the first line, " / " parts the cells, cells are frames.

    A line that begins with a space continues the row above.
    """
    joined = re.sub(r"\n +", " ", block.strip("\n"))
    header, *lines = [[cell.strip() for cell in line.split(" / ")] for line in joined.splitlines()]
    for cells in lines:
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} cells for the forms {header} in {cells}")
    return _row_of([dict(zip(header, map(_cell, cells), strict=True)) for cells in lines])


def _cell(source: str) -> str | Text:
    parsed = parse(source)
    return parsed if any(parsed.nodes()) else source


def _row_of(entries: Sequence[Forms]) -> Draw:
    return lambda rng: entries[int(rng.random() * len(entries))]
