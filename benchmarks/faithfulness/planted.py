"""How many planted errors are marked, and how many summaries without one.

    python -m benchmarks.faithfulness.planted --data DIR [--sets NAME ...] [--documents 50] [--seed 0] [--split train]

DIR holds sets of pairs as JSON lines (.jsonl, .jsonl.gz, .jsonl.xz), a folder each with a train or dev file. Rows have
`document` and `summary`, or `summaries`. From each set, `--documents` pairs are drawn with the seed, and one error is
planted in each summary, the kinds in turn:

    name        a name of the summary becomes one of another document
    number      a number of the summary becomes another one
    negation    "not" goes in behind an auxiliary verb, or comes out

A planted error counts as marked if its sentence has a mark that the summary did not have. What plants is simple on
purpose and shares no code with what marks.

"Clean" are the same summaries as people wrote them. They may hold names, numbers and negations that the document does
not have; each mark counts as an error here, so this column is an upper bound. "Extracts" are three sentences of the
document. "Within the document" plants names and numbers that stand elsewhere in the document, which marks do not find.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from precis.data.text.units import extraction_units
from precis.evaluation.faithfulness.marks import KINDS, Mark, MarkKind, SourceText

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
_WORDS = 60  # of a summary whose errors are looked for; longer ones are cut to their first sentences


@dataclass(frozen=True)
class Pair:
    """A document and a summary that somebody wrote."""

    document: str
    summary: str


@dataclass(frozen=True)
class Planted:
    """A summary with an error in the characters from `start` to `end`."""

    text: str
    start: int
    end: int


def read_pairs(folder: Path, *, seed: int, split: str = "train") -> list[Pair]:
    """The first 3,000 pairs of a set, shuffled."""
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
    """Its first sentences."""
    units = extraction_units(summary)
    words, end = 0, 0
    for unit in units:
        words += len(unit.text.split())
        if end and words > _WORDS:
            break
        end = unit.stop
    return summary[:end]


Plant = Callable[..., Planted | None]
"""Puts one error into a summary; None where it has no place for it."""


def plant_name(pair: Pair, others: Sequence[Pair], rng: random.Random, *, inside: bool) -> Planted | None:
    """Another name in place of one."""
    places = [m for m in _NAME.finditer(pair.summary) if not _MONTHS.fullmatch(m.group())]
    found = [pair] if inside else others
    names = {name for other in found[:50] for name in _NAME.findall(other.document)}
    absent = {name for name in names if inside or name.lower() not in pair.document.lower()}
    kept = sorted(name for name in absent if name not in pair.summary and not _MONTHS.fullmatch(name))
    return _replaced(pair.summary, rng.choice(places), rng.choice(kept)) if places and kept else None


def plant_number(pair: Pair, others: Sequence[Pair], rng: random.Random, *, inside: bool) -> Planted | None:
    """Another number in place of one."""
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
    """A negation more or less."""
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


def is_marked(pair: Pair, source: SourceText, planted: Planted) -> bool:
    """Whether a mark that the clean summary lacks lies in the sentence of an error."""
    before = {(mark.kind, mark.text) for mark in source.support(pair.summary).marks}
    units = [u for u in extraction_units(planted.text) if u.start <= planted.start <= u.stop]
    return any(
        (mark.kind, mark.text) not in before and any(u.start <= mark.start < u.stop for u in units)
        for mark in source.support(planted.text).marks
    )


@dataclass(frozen=True)
class Case:
    """A pair and its summary with one planted error."""

    pair: Pair
    source: SourceText
    kind: MarkKind
    planted: Planted


def cases(pairs: Sequence[Pair], *, count: int, rng: random.Random, inside: bool) -> list[Case]:
    """So many documents with one error each: the kinds in turn, each in the next document that has a place for it."""
    left, found = list(pairs), []
    kinds = [kind for kind in PLANT if not (inside and kind == "negation")]
    for kind in itertools.islice(itertools.cycle(kinds), count):
        for pair in left:
            planted = PLANT[kind](pair, pairs, rng, inside=inside)
            if planted is not None:
                found.append(Case(pair, SourceText(pair.document), kind, planted))
                left.remove(pair)
                break
    return found


def measure(pairs: Sequence[Pair], *, count: int, seed: int, show: bool) -> Iterator[tuple[str, int, int]]:
    """What was tried, how often something was marked, how often it was tried."""
    rng = random.Random(seed)
    chosen = cases(pairs, count=count, rng=rng, inside=False)
    found = [is_marked(case.pair, case.source, case.planted) for case in chosen]
    yield "planted", sum(found), len(found)
    for kind in KINDS:
        of_kind = [marked for case, marked in zip(chosen, found, strict=True) if case.kind == kind]
        yield f"planted {kind}", sum(of_kind), len(of_kind)
    clean = [case.source.support(case.pair.summary).marks for case in chosen]
    yield "clean", sum(map(bool, clean)), len(clean)
    for kind in KINDS:
        yield f"clean, by a {kind}", sum(any(m.kind == kind for m in c) for c in clean), len(clean)
    extracts = [case.source.support(extract(case.pair.document, rng)).marks for case in chosen]
    yield "extracts", sum(map(bool, extracts)), len(extracts)
    swapped = cases(pairs, count=count, rng=rng, inside=True)
    yield "within the document", sum(is_marked(c.pair, c.source, c.planted) for c in swapped), len(swapped)
    if show:
        _show([case.pair for case in chosen], clean)
        for case, marked in zip(chosen, found, strict=True):
            if not marked:
                print(f"   missed {case.kind}: {case.planted.text!r}", file=sys.stderr)


def extract(document: str, rng: random.Random) -> str:
    """Three sentences of a document."""
    units = extraction_units(document)
    return "\n".join(
        unit.text for unit in sorted(rng.sample(units, min(3, len(units))), key=lambda u: u.start)
    )


def _show(pairs: Sequence[Pair], clean: Sequence[Sequence[Mark]]) -> None:
    for pair, found in zip(pairs, clean, strict=True):
        for mark in found:
            around = pair.summary[max(0, mark.start - 80) : mark.end + 60]
            print(f"   {mark.kind} {mark.text!r} {mark.reason}: ...{around!r}", file=sys.stderr)


def main() -> int:
    """Print the table."""
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
    heads: list[str] = []
    for name in asked.sets:
        pairs = read_pairs(asked.data / name, seed=asked.seed, split=asked.split)
        row = list(measure(pairs, count=asked.documents, seed=asked.seed, show=asked.show))
        if not heads:
            heads = ["set", *(what for what, *_ in row)]
            print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
        cells = [Path(name).name, *(f"{marked}/{tried}" for _, marked, tried in row)]
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
