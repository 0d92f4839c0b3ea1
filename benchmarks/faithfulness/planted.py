"""Rates of marked sentences: among planted errors, and among summaries without one.

    python -m benchmarks.faithfulness.planted --data DIR [--sets NAME ...] [--documents 50] [--seed 0] [--split train]

DIR holds sets of pairs as JSON lines (.jsonl, .jsonl.gz, .jsonl.xz), a folder each with a train or dev file. Rows have
`document` and `summary`, or `summaries`. From each set, `--documents` pairs are drawn with the seed, and one error is
planted in each summary, kind by kind:

    name        a name of the summary becomes one of another document
    number      a number of the summary becomes another one
    negation    "not" goes in behind an auxiliary verb, or comes out

A planted error counts as marked if its sentence has a mark that the summary did not have. The planting is simple on
purpose, and shares no code with the marks.

"Clean" are the same summaries as people wrote them. They may hold names and numbers that the document does not have; a
mark on one is right, and counts as an error all the same. So a second table draws documents whose summary lacks these
words: each token with a digit, and each one with a capital inside a sentence, is a token of the document (`stands_in`,
a look-up without the marks' rules). There too, an error is planted in each summary.

"Extracts" are three sentences of the document. "From the document" plants names and numbers from elsewhere in it.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import lzma
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from precis_text.support.marks import KINDS, Mark, MarkKind, SourceText
from precis_text.units import extraction_units

SETS = (
    "open_pairs/usgov_posts_cc0",
    "open_pairs/openstax",
    "open_pairs/proposals",
    "scitldr",
    "open_pairs/ccby_docs",
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b(?!['’.])")
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,4}(?:,\d{3})*(?![\w.,-]*\d)(?!st|nd|rd|th)")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|will|could|should|would|does|did|must|may)\b(?! not\b)(?= [a-z])"
)
_NOT = re.compile(r" (?:not|never)(?= [a-z])")
_MONTHS = re.compile("January|February|March|April|June|July|August|September|October|November|December")
_OPEN: dict[str, Callable[..., object]] = {".gz": gzip.open, ".xz": lzma.open}
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+")
_OPENS = re.compile(r"(?:^|[.!?:;•*\"“(\[\n]|[-–—]\s)\s*$")  # what is before the first word of a sentence
_WORDS = 60  # of a summary whose errors are looked for; longer ones are cut to their first sentences


@dataclass(frozen=True)
class Pair:
    """A document and a summary that a person wrote."""

    document: str
    summary: str


@dataclass(frozen=True)
class Planted:
    """A summary with an error in the characters from `start` to `end`."""

    text: str
    start: int
    end: int


def read_pairs(folder: Path, *, seed: int, split: str = "train") -> list[Pair]:
    """Read the first 3,000 pairs of a set and shuffle them."""
    (file, *_) = sorted(path for path in folder.iterdir() if ".jsonl" in path.name and split in path.name)
    found = []
    with _OPEN.get(file.suffix, open)(file, "rt", encoding="utf-8") as lines:
        for _, line in zip(range(3000), lines, strict=False):
            row = json.loads(line)
            summary = row.get("summary") or (row.get("summaries") or [""])[0]
            shown = _beginning(str(summary))
            if row["document"].strip() and len(shown.split()) > 5:
                found.append(Pair(row["document"], shown))
    random.Random(seed).shuffle(found)
    return found


def _beginning(summary: str) -> str:
    """Return the first sentences of a summary."""
    units = extraction_units(summary)
    words, end = 0, 0
    for unit in units:
        words += len(unit.text.split())
        if end and words > _WORDS:
            break
        end = unit.stop
    return summary[:end]


Plant = Callable[..., Planted | None]
"""Puts one error into a summary; None if the summary lacks a place for it."""


def plant_name(pair: Pair, others: Sequence[Pair], rng: random.Random, *, inside: bool) -> Planted | None:
    """Replace a name by another one."""
    places = [m for m in _NAME.finditer(pair.summary) if not _MONTHS.fullmatch(m.group())]
    found = [pair] if inside else others
    names = {name for other in found[:50] for name in _NAME.findall(other.document)}
    absent = {name for name in names if inside or name.lower() not in pair.document.lower()}
    kept = sorted(name for name in absent if name not in pair.summary and not _MONTHS.fullmatch(name))
    return _replaced(pair.summary, rng.choice(places), rng.choice(kept)) if places and kept else None


def plant_number(pair: Pair, others: Sequence[Pair], rng: random.Random, *, inside: bool) -> Planted | None:
    """Replace a number by another one."""
    places = list(_NUMBER.finditer(pair.summary))
    if not places:
        return None
    place = rng.choice(places)
    if inside:
        kept = sorted(set(_NUMBER.findall(pair.document)) - set(_NUMBER.findall(pair.summary)))
        return _replaced(pair.summary, place, rng.choice(kept)) if kept else None
    digits = place.group()
    while digits == place.group():
        digits = "".join(rng.choice("123456789") if c.isdigit() else c for c in place.group())
    return _replaced(pair.summary, place, digits)


def plant_negation(pair: Pair, others: Sequence[Pair], rng: random.Random, *, inside: bool) -> Planted | None:
    """Remove a negation, or insert one."""
    if inside:
        return None
    removed, inserted = list(_NOT.finditer(pair.summary)), list(_AUXILIARY.finditer(pair.summary))
    if removed:
        return _replaced(pair.summary, rng.choice(removed), "")
    if not inserted:
        return None
    place = rng.choice(inserted)
    return _replaced(pair.summary, place, f"{place.group()} not")


PLANT: dict[MarkKind, Plant] = {"name": plant_name, "number": plant_number, "negation": plant_negation}


def _replaced(text: str, place: re.Match[str], new: str) -> Planted:
    start = place.start()
    return Planted(text[:start] + new + text[place.end() :], start, start + len(new))


def stands_in(pair: Pair) -> bool:
    """Test whether each token of a summary that may be a name or a number is a token of its document."""
    known = {token.lower() for token in _TOKEN.findall(pair.document)}
    return all(
        token.group().lower() in known
        for token in _TOKEN.finditer(pair.summary)
        if any(letter.isdigit() for letter in token.group())
        or any(letter.isupper() for letter in token.group()[1:])
        or (token.group()[0].isupper() and not _OPENS.search(pair.summary[: token.start()]))
    )


@dataclass(frozen=True)
class Case:
    """A pair and its summary with one planted error."""

    pair: Pair
    kind: MarkKind
    planted: Planted

    @cached_property
    def source(self) -> SourceText:
        """The document, prepared."""
        return SourceText(self.pair.document)

    @cached_property
    def clean(self) -> tuple[Mark, ...]:
        """The marks of the summary without the error."""
        return self.source.support(self.pair.summary).marks

    @cached_property
    def is_marked(self) -> bool:
        """Test whether the sentence of the error has a mark that the clean summary lacks."""
        before = {(mark.kind, mark.text) for mark in self.clean}
        text, place = self.planted.text, self.planted.start
        units = [unit for unit in extraction_units(text) if unit.start <= place <= unit.stop]
        return any(
            (mark.kind, mark.text) not in before
            and any(unit.start <= mark.start < unit.stop for unit in units)
            for mark in self.source.support(text).marks
        )


def cases(pairs: Sequence[Pair], *, count: int, rng: random.Random, inside: bool) -> list[Case]:
    """Plant one error in each of `count` summaries: the kinds in turn, each in the next one with a place for it."""
    left, found = list(pairs), []
    kinds = [kind for kind in PLANT if not (inside and kind == "negation")]
    for kind in itertools.islice(itertools.cycle(kinds), count):
        for pair in left:
            planted = PLANT[kind](pair, pairs, rng, inside=inside)
            if planted is not None:
                found.append(Case(pair, kind, planted))
                left.remove(pair)
                break
    return found


Row = list[tuple[str, int, int]]
"""What was tried, how often something was marked, how often it was tried."""


def measure(pairs: Sequence[Pair], *, count: int, seed: int, show: bool) -> tuple[Row, Row]:
    """Measure a set and return its rows: for all summaries, and for those within their document."""
    rng = random.Random(seed)
    chosen = cases(pairs, count=count, rng=rng, inside=False)
    extracts = [case.source.support(extract(case.pair.document, rng)).marks for case in chosen]
    swapped = cases(pairs, count=count, rng=rng, inside=True)
    within = cases([pair for pair in pairs if stands_in(pair)], count=count, rng=rng, inside=False)
    if show:
        _show(chosen)
        print("   within the document:", file=sys.stderr)
        _show(within)
    rest = [
        ("extracts", sum(map(bool, extracts)), len(extracts)),
        ("from the document", sum(case.is_marked for case in swapped), len(swapped)),
    ]
    return _planted_and_clean(chosen) + rest, _planted_and_clean(within)


def _planted_and_clean(chosen: Sequence[Case]) -> Row:
    """Count the marked planted errors, of all kinds and of each, and the marked clean summaries."""
    row = [("planted", sum(case.is_marked for case in chosen), len(chosen))]
    for kind in KINDS:
        of_kind = [case.is_marked for case in chosen if case.kind == kind]
        row.append((f"planted {kind}", sum(of_kind), len(of_kind)))
    row.append(("clean", sum(bool(case.clean) for case in chosen), len(chosen)))
    for kind in KINDS:
        marked = [any(mark.kind == kind for mark in case.clean) for case in chosen]
        row.append((f"clean, by a {kind}", sum(marked), len(chosen)))
    return row


def extract(document: str, rng: random.Random) -> str:
    """Draw three sentences of a document."""
    units = extraction_units(document)
    return "\n".join(
        unit.text for unit in sorted(rng.sample(units, min(3, len(units))), key=lambda u: u.start)
    )


def _show(chosen: Sequence[Case]) -> None:
    for case in chosen:
        for mark in case.clean:
            around = case.pair.summary[max(0, mark.start - 80) : mark.end + 60]
            print(f"   {mark.kind} {mark.text!r} {mark.reason}: ...{around!r}", file=sys.stderr)
    for case in chosen:
        if not case.is_marked:
            print(f"   missed {case.kind}: {case.planted.text!r}", file=sys.stderr)


def _print_table(rows: Mapping[str, Row]) -> None:
    heads = ["set", *(what for what, *_ in next(iter(rows.values())))]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for name, row in rows.items():
        cells = [Path(name).name, *(f"{marked}/{tried}" for _, marked, tried in row)]
        print(f"| {' | '.join(cells)} |")


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--documents", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", default="train", choices=("train", "dev"))
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    found = {}
    for name in asked.sets:
        pairs = read_pairs(asked.data / name, seed=asked.seed, split=asked.split)
        found[name] = measure(pairs, count=asked.documents, seed=asked.seed, show=asked.show)
    for part, what in enumerate(
        ("Any summaries", "Summaries whose names and numbers are within the document")
    ):
        print(f"{what}:\n")
        _print_table({name: rows[part] for name, rows in found.items()})
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
