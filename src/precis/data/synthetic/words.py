"""Names and numbers of the synthetic corpus: everything in it that a model has to copy.

Names are put together from word parts, so that the sets are large and open: a held-out text nearly always
holds names that no training text had. Any likeness to a real person, place or company is chance.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from precis.data.synthetic.grammar import Draw, Forms, Text, parse


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


WOMEN = words(
    """
    Ada Adele Agnes Alba Alma Amira Anneke Astrid Aurelia Bea Brenda Carla Celia Chiara Clara Dagny Dalia
    Dora Edith Elena Elif Elsa Esther Farah Fatima Fiona Freya Gemma Greta Hana Hedda Helen Ida Imani Ines
    Ingrid Irene Iris Jana Joan June Karin Keiko Lara Leila Lena Lidia Lotte Lucia Mara Marta Maud Maya
    Mei Mina Mira Moira Nadia Naomi Nina Nora Olga Olive Paula Petra Pia Priya Rhea Rita Rosa Ruth Sana
    Sara Selma Signe Silvia Sofia Stella Susan Tamar Tara Tess Thea Tilda Uma Vera Viola Wanda Yara Yuki
    Zoe
    """
)
MEN = words(
    """
    Aaron Abel Adam Alan Albert Amir Anders Andrei Anton Arno Arthur Axel Ben Boris Bruno Carl Cato Cedric
    Colin Cyril Dario Dennis Diego Dirk Edgar Edwin Elias Emil Enzo Eric Ewan Felix Finn Frank Fred Gavin
    George Goran Gus Hakan Hamid Hans Harry Hector Henk Hugo Ian Igor Ivan Jack Jakob Jamal Jens Joel
    Jonas Juan Karl Kenji Klaus Kofi Lars Leo Liam Luca Luis Magnus Marco Martin Mats Milan Nils Noah Oleg
    Omar Oscar Otto Pablo Pavel Per Peter Rafael Rashid Ravi Rolf Roman Samir Sean Simon Stefan Sven Tariq
    Theo Tobias Tom Umar Victor Walter Yusuf
    """
)
NAME_STARTS = words(
    """
    Ad Al Ar Bel Bren Cor Dal El Ev Fen Gal Hal Is Jor Kal Lor Mal Mar Mer Mir Nor Os Pel Ros Sel Tal Tam
    Til Ver Wil
    """
)
NAME_ENDS_WOMEN = words("ana anne ella ena ette ia ida ika ina isa issa ora")
NAME_ENDS_MEN = words("bert den dric en fred gar ian mund ric ton vin win")
SURNAME_STARTS = words(
    """
    Ack Ald Arn Bal Barn Beck Bell Berg Bran Brock Carl Clay Cor Cran Dal Den Dor Ed El Fair Fal Far Fen
    Frost Gar Gil Gran Grim Hal Ham Hart Hol Horn Ing Kel Kirk Lang Lind Lor Mal Mar Mor Nor Oak Or Os Pel
    Pres Quin Ram Red Ros Sand Sel Shel Stan Stor Sund Tal Thorn Tor Ul Van Vel Wal War Wes Wil Win Wood
    Yar Zel
    """
)
SURNAME_ENDS = words(
    """
    son man sen ley ton berg well ova ski ez ini er ard itt ness croft field gate hurst land low mark mond
    more quist rick sell shaw stein strom vik wick worth
    """
)
PLACE_STARTS = words(
    """
    Ash Bar Beck Birch Black Bran Bright Brook Cal Car Chal Cold Crow Dun Elm Fair Fern Gold Gran Green
    Hal Har Hazel Heath High Holm Kings Lang Lark Lin Long Mar Mill Mor Nor North Oak Old Otter Pen Rad
    Raven Red Rush Salt Sand Shel Silver South Stan Stone Swan Thorn Til Wal Wes West White Wil Winter
    Wolf Wood
    """
)
PLACE_ENDS = words(
    """
    bridge brook burn bury by cliff combe dale den fell field ford gate ham haven hurst lake leigh low
    mere mouth pool port ridge side stead stow ton vale well wick wood worth
    """
)
PLACE_WORDS = words("East Lake Little Lower Mount Nether New Port Upper")
STREET_STARTS = words(
    """
    Abbey Alder Bakers Barley Bell Bishop Castle Chapel Church Cooper Corn Dyers Fisher Forge Garden
    Grange Hawthorn Iron Juniper King Lantern Lime Maple Market Mason Meadow Miller Museum Nelson
    Orchard Park Pearl Poplar Potter Quarry Queen River Rose Sailor School Shepherd Spring Station Tanner
    Temple Tower Union Vine Walnut Weaver Willow
    """
)
STREET_ENDS = words("Street Road Lane Avenue Row Square Hill Way Terrace Close")
STEM_STARTS = words(
    """
    Al Aro Bel Bri Cal Cen Cor Del Dyna El Eno Fir Gal Hel Ivo Kor Lum Mer Nor Nova Ori Pol Quan Ral Sol
    Tel Tri Ul Val Ver Vi Zen
    """
)
STEM_ENDS = words(
    """
    ado ant aria aris dex dia don era eron gen ida ion lan lia lux mar met mond nex nis nova ran rel rix
    ro sa son tec tia tis tra vera vex via
    """
)
RESTAURANT_STARTS = words(
    """
    Black Blue Brass Copper Crooked Crystal Golden Green Happy Hungry Iron Little Lucky Old Painted Quiet
    Red Royal Silver Singing Sleepy Smiling Velvet White
    """
)
RESTAURANT_ENDS = words(
    """
    Anchor Barrel Bear Boat Carrot Crane Dragon Duck Elephant Fig Fork Fox Goose Kettle Lantern Lemon Moon
    Olive Onion Oven Pan Pepper Pot Rooster Spoon Star Swan Table Tiger Turtle
    """
)
TEAMS = words("Rovers United Wanderers Athletic Lions Harriers Rangers Town Eagles Sharks Comets")
WEEKDAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
COUNT_WORDS = words("none one two three four five six seven eight nine")


def choose(rng: random.Random, options: Sequence[str]) -> str:
    """One of the options; three times as fast as ``rng.choice``, which matters at this volume."""
    return options[int(rng.random() * len(options))]


def between(rng: random.Random, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return low + int(rng.random() * (high - low + 1))


def person() -> Draw:
    """Forms: full name; first, last; he, him, his (each as the person's own pronoun)."""

    def draw(rng: random.Random) -> Forms:
        first, woman = _first_name(rng)
        last = choose(rng, SURNAME_STARTS) + choose(rng, SURNAME_ENDS)
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
        return choose(rng, WOMEN if woman else MEN), woman
    return choose(rng, NAME_STARTS) + choose(rng, NAME_ENDS_WOMEN if woman else NAME_ENDS_MEN), woman


def made_of(*parts: Sequence[str] | str) -> Draw:
    """A name made of one item of each list; strings are taken as they are."""

    def draw(rng: random.Random) -> Forms:
        return {"": "".join([part if isinstance(part, str) else choose(rng, part) for part in parts])}

    return draw


def town(rng: random.Random) -> Forms:
    """A town such as Oakbury, one in four with a word before it such as Upper Oakbury."""
    name = choose(rng, PLACE_STARTS) + choose(rng, PLACE_ENDS)
    return {"": f"{choose(rng, PLACE_WORDS)} {name}" if rng.random() < 0.25 else name}


def street(rng: random.Random) -> Forms:
    """A street such as Castle Lane; one in three is named after a place."""
    place = rng.random() < 0.33
    name = choose(rng, PLACE_STARTS) + choose(rng, PLACE_ENDS) if place else choose(rng, STREET_STARTS)
    return {"": f"{name} {choose(rng, STREET_ENDS)}"}


def company(*kinds: str) -> Draw:
    """A company's name; ``kinds`` are the words that follow its stem, such as "Foods"."""
    return made_of(STEM_STARTS, STEM_ENDS, " ", kinds)


def product(low: int = 2, high: int = 90) -> Draw:
    """A product's name: a made-up word and a number."""

    def draw(rng: random.Random) -> Forms:
        return {"": f"{choose(rng, STEM_STARTS)}{choose(rng, STEM_ENDS)} {between(rng, low, high)}"}

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
    return made_of(WEEKDAYS)


def workday() -> Draw:
    """A day from Monday to Friday."""
    return made_of(WEEKDAYS[:5])


def date() -> Draw:
    """A day and month such as 14 March."""

    def draw(rng: random.Random) -> Forms:
        return {"": f"{between(rng, 1, 28)} {choose(rng, MONTHS)}"}

    return draw


def month() -> Draw:
    """A month."""
    return made_of(MONTHS)


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


PASSING: Mapping[str, Draw] = {
    "other": person(),
    "elder": person(),
    "visitor": person(),
    "other_town": town,
    "far_town": town,
    "some_street": street,
    "some_day": weekday(),
    "some_month": month(),
    "some_number": number(12, 90),
    "age": figure(19, 84),
    "past_year": year(1931, 2009),
    "late_year": year(2010, 2023),
    "some_company": company("Group", "Partners", "Holdings", "Brothers"),
    "trade": one_of(
        "baker", "bus driver", "carpenter", "dentist", "electrician", "florist", "gardener", "nurse",
        "painter", "plumber", "postman", "shop owner", "farmer", "tailor", "teacher", "waiter",
    ),
}  # fmt: skip
"""Slots for the side remarks of every report, drawn anew for each sentence."""
