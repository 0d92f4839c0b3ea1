"""Comparisons, their order for each judge, and which summary is on the left.

Everything follows from the seed. Each system is on the left half of the time, for every judge and pair of systems (one
more or less if the number is odd). Judges who see the same items see them with opposite sides.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from precis_judge.system_summaries import JudgedDocument
from precis_text.config import Settings, nearest
from precis_text.errors import UserError
from precis_text.words import unicode_words

_FARTHEST_OF = 20  # number of documents searched for the planted summary


@dataclass(frozen=True, kw_only=True)
class Design(Settings):
    """The design of a study.

    Attributes:
        judges: their names.
        each: number of judges per item; 0 means all.
        repeats: share of a judge's items that is shown a second time, with the sides swapped.
        gold: share of a judge's items whose worse summary comes from another document.
        seed: random seed for everything that is drawn.
    """

    judges: tuple[str, ...]
    each: int = 0
    repeats: float = 0.1
    gold: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.judges:
            raise UserError("a study needs at least one judge; name one with --judge")
        for name in self.judges:
            if not name.strip() or len(name) > 60 or not name.isprintable():
                raise UserError(f"judge {name!r}: use a name of 1 to 60 printable characters")
            if self.judges.count(name) > 1:
                raise UserError(f"judge {name!r} is named twice; name each judge once")
        for name, value in (("repeats", self.repeats), ("gold", self.gold)):
            if not 0 <= value <= 0.5:
                raise UserError(f"{name} {value}: use a share of the pages from 0 to 0.5")
        if not 0 <= self.each <= len(self.judges):
            raise UserError(f"--each {self.each}: must be from 0 to {len(self.judges)}, the number of judges")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two summaries of a document, by the systems `first` and `second`.

    Attributes:
        planted: for a gold item, the document whose summary by the same system replaces the second one; else "".
    """

    document: str
    first: str
    second: str
    planted: str = ""


@dataclass(frozen=True, slots=True)
class Showing:
    """One page for a judge: an item, whether its first summary is on the left, and whether it is a repetition."""

    item: int
    first_left: bool
    repeat: bool = False


@dataclass(frozen=True, kw_only=True)
class StudyLayout:
    """All items, the pages of each judge in order, and the skipped (document, first, second) with equal summaries."""

    items: tuple[Comparison, ...]
    pages: dict[str, tuple[Showing, ...]]
    equal: tuple[tuple[str, str, str], ...]


def lay_out(documents: Sequence[JudgedDocument], design: Design, *, against: str | None) -> StudyLayout:
    """Draw the items and every judge's pages.

    Raises:
        UserError: there are fewer than two systems, `against` is unknown, or all pairs of summaries are equal.
    """
    rng = random.Random(f"precis judge {design.seed}")
    items, equal = _comparisons(documents, against)
    if not items:
        raise UserError("all summaries of each document are the same text, so nothing is left to judge")
    rng.shuffle(items)
    assigned = _assigned(len(items), design)
    share = max(len(of_judge) for of_judge in assigned)
    gold = _gold_items(documents, round(design.gold * share), rng)
    pages = {}
    for number, judge in enumerate(design.judges):
        mine = [*assigned[number], *range(len(items), len(items) + len(gold))]
        pages[judge] = _pages(mine, [*items, *gold], number, design, items_only=len(items))
    return StudyLayout(items=(*items, *gold), pages=pages, equal=tuple(equal))


def _comparisons(
    documents: Sequence[JudgedDocument], against: str | None
) -> tuple[list[Comparison], list[tuple[str, str, str]]]:
    systems = list(documents[0].summaries)
    if against is not None and against not in systems:
        hint = (
            "; add the human references with --reference"
            if against == "reference"
            else nearest(against, systems)
        )
        raise UserError(f"unknown system {against!r}{hint}")
    if len(systems) < 2:
        raise UserError(
            f"judges compare systems, but there is only one ({systems[0]}); name two files of predictions, or add the "
            "human references with --reference"
        )
    pairs = (
        list(combinations(systems, 2))
        if against is None
        else [(name, against) for name in systems if name != against]
    )
    items, equal = [], []
    for one in documents:
        for first, second in pairs:
            if " ".join(one.summaries[first].split()) == " ".join(one.summaries[second].split()):
                equal.append((one.id, first, second))
            else:
                items.append(Comparison(one.id, first, second))
    return items, equal


def _assigned(count: int, design: Design) -> list[list[int]]:
    """Return the items of each judge: each item goes to `each` judges, in turn."""
    judges = len(design.judges)
    each = design.each or judges
    return [
        [item for item in range(count) if (judge - item * each) % judges < each] for judge in range(judges)
    ]


def _gold_items(documents: Sequence[JudgedDocument], count: int, rng: random.Random) -> list[Comparison]:
    """Return items whose second summary is by the same system, from a document with few words in common."""
    if count == 0:
        return []
    if len(documents) < 2:
        raise UserError(
            "gold items take a summary of another document, but there is only one document; use --gold 0"
        )
    chosen = rng.sample(list(documents), min(count, len(documents)))
    found = []
    for one in chosen:
        system = rng.choice(list(one.summaries))
        words = set(unicode_words(one.document.lower()))
        others = rng.sample(
            [other for other in documents if other is not one], min(_FARTHEST_OF, len(documents) - 1)
        )

        def common(other: JudgedDocument, words: set[str] = words, system: str = system) -> float:
            theirs = set(unicode_words(other.summaries[system].lower()))
            return len(theirs & words) / max(len(theirs), 1)

        found.append(Comparison(one.id, system, system, planted=min(others, key=common).id))
    return found


def _pages(
    mine: Sequence[int], items: Sequence[Comparison], judge: int, design: Design, *, items_only: int
) -> tuple[Showing, ...]:
    rng = random.Random(f"precis judge {design.seed} {design.judges[judge]}")
    met: dict[tuple[str, str, bool], int] = {}
    showings = []
    for item in mine:
        pair = (items[item].first, items[item].second, bool(items[item].planted))
        start = random.Random(f"precis judge {design.seed} {pair}").randrange(2) + judge
        showings.append(Showing(item, (met.setdefault(pair, 0) + start) % 2 == 0))
        met[pair] += 1
    rng.shuffle(showings)
    real = [place for place, one in enumerate(showings) if one.item < items_only]
    early = real[: max(1, len(real) // 2)]
    again = rng.sample(early, min(round(design.repeats * len(real)), len(early)))
    pages = list(showings)
    for place in again:  # in the second half, to separate the two
        one = showings[place]
        where = rng.randint(max(len(showings) // 2 + 1, place + 1), len(pages))
        pages.insert(where, Showing(one.item, not one.first_left, repeat=True))
    return tuple(pages)
