"""Names and numbers of the synthetic corpus: everything that a model has to copy.

Names are combined from word parts, so that the sets are large and open. A held-out text nearly always
contains names that are absent from training. Any likeness to a real person, place or company is chance.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TypeVar

Item = TypeVar("Item")

COUNT_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def scenario_file(name: str) -> str:
    """Return the text of a file of `scenarios/`."""
    return (files(__package__) / "scenarios" / f"{name}.txt").read_text(encoding="utf-8")


_, *_LISTS = re.split(r"^(\w+):\n", scenario_file("names"), flags=re.MULTILINE)
NAMES: Mapping[str, tuple[str, ...]] = {
    name: tuple(parts.split()) for name, parts in zip(_LISTS[::2], _LISTS[1::2], strict=True)
}
"""Parts of names by the name of their list in `scenarios/names.txt`."""


def choose(rng: random.Random, options: Sequence[Item]) -> Item:
    """Choose one of the options, three times as fast as ``rng.choice``, which matters at this volume."""
    return options[int(rng.random() * len(options))]


def made_of(rng: random.Random, *parts: Sequence[str] | str) -> str:
    """Make a name from one item of each list; strings are used unchanged."""
    return "".join([part if isinstance(part, str) else choose(rng, part) for part in parts])


def _named(rng: random.Random, *lists: str) -> str:
    return "".join([choose(rng, NAMES[name]) for name in lists])


def _between(rng: random.Random, low: int, high: int) -> int:
    """Draw a whole number from low to high, both included."""
    return low + int(rng.random() * (high - low + 1))


def person(rng: random.Random) -> dict[str, str]:
    """Draw a person. Forms: full name; first, last; he, him, his (the person's pronouns)."""
    forms = speaker(rng)
    first, last = forms[""], _named(rng, "SURNAME_STARTS", "SURNAME_ENDS")
    return {**forms, "": f"{first} {last}", "first": first, "last": last}


def speaker(rng: random.Random) -> dict[str, str]:
    """Draw a speaker. Forms: first name; he, him, his."""
    woman = rng.random() < 0.5
    if rng.random() < 0.6:
        first = _named(rng, "WOMEN" if woman else "MEN")
    else:
        first = _named(rng, "NAME_STARTS", "NAME_ENDS_WOMEN" if woman else "NAME_ENDS_MEN")
    he, him, his = ("=she", "=her", "=her") if woman else ("=he", "=him", "=his")
    return {"": first, "he": he, "him": him, "his": his}


def town(rng: random.Random) -> str:
    """Draw a town such as Oakbury; one in four has a word before it, such as Upper Oakbury."""
    name = _named(rng, "PLACE_STARTS", "PLACE_ENDS")
    return f"{_named(rng, 'PLACE_WORDS')} {name}" if rng.random() < 0.25 else name


def street(rng: random.Random) -> str:
    """Draw a street such as Castle Lane; one in three has the name of a place."""
    lists = ("PLACE_STARTS", "PLACE_ENDS") if rng.random() < 0.33 else ("STREET_STARTS",)
    return f"{_named(rng, *lists)} {_named(rng, 'STREET_ENDS')}"


def company(rng: random.Random, *kinds: str) -> str:
    """Draw a company's name; ``kinds`` are the words that may follow its stem, such as "Foods"."""
    return f"{_named(rng, 'STEM_STARTS', 'STEM_ENDS')} {choose(rng, kinds)}"


def product(rng: random.Random, low: int = 2, high: int = 90) -> str:
    """Draw a product's name: an invented word and a number."""
    return f"{_named(rng, 'STEM_STARTS', 'STEM_ENDS')} {_between(rng, low, high)}"


def number(rng: random.Random, low: int, high: int, *, step: int = 1) -> str:
    """Draw a count, written in words below ten and with a comma from a thousand."""
    value = low + step * _between(rng, 0, (high - low) // step)
    return COUNT_WORDS[value] if 0 < value < 10 else f"{value:,}"


def figure(rng: random.Random, low: int, high: int, *, tenths: bool = False) -> str:
    """Draw a measured value, always in digits; with ``tenths``, with one decimal place."""
    value = _between(rng, low, high)
    return f"{value}.{_between(rng, 1, 9)}" if tenths else f"{value:,}"


def year(rng: random.Random, low: int, high: int) -> str:
    """Draw a year."""
    return str(_between(rng, low, high))


def clock(
    rng: random.Random, first: int = 6, last: int = 22, *, minutes: Sequence[str] = ("00", "15", "30", "45")
) -> str:
    """Draw a time of day such as 14:30."""
    return f"{_between(rng, first, last)}:{choose(rng, minutes)}"


def score(rng: random.Random, low: int, high: int) -> dict[str, str]:
    """Draw a result such as 3-1, the winner first. Forms: part, whole: the goals of one player of the winner."""
    lost = _between(rng, low, high)
    won = lost + _between(rng, 1, 3)
    parts = [
        ("the first goal", "the opening goal"),
        ("the last goal", "the final goal"),
        ("twice", "two of the goals"),
        ("three times", "three of the goals"),
    ]
    part, whole = (
        choose(rng, parts[: min(won, 3) + 1]) if won > 1 else ("the only goal", "the goal of the day")
    )
    return {"": f"{won}-{lost}", "part": part, "whole": whole}


def weekday(rng: random.Random) -> str:
    """Draw a day of the week."""
    return _named(rng, "WEEKDAYS")


def workday(rng: random.Random) -> str:
    """Draw a day from Monday to Friday."""
    return choose(rng, NAMES["WEEKDAYS"][:5])


def date(rng: random.Random) -> str:
    """Draw a day and month such as 14 March."""
    return f"{_between(rng, 1, 28)} {month(rng)}"


def month(rng: random.Random) -> str:
    """Draw a month."""
    return _named(rng, "MONTHS")
