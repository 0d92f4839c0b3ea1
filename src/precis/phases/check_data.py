"""What is in a set of pairs: rows that cannot be used, lengths, empty texts, duplicates, leaks between splits."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from precis.data.pairs.pair import Pair
from precis.data.pairs.sources import ReadReport, split_files
from precis.data.rows.row import counted
from precis.data.synthetic.corpus import make_pair
from precis.data.tasks.tasks import Part
from precis.data.text.marks import main_part
from precis.errors import UserError
from precis.files import is_temporary, refuse_link, remove_leftovers, replacing
from precis.lock import locked_place
from precis.phases.places import folder_to_be
from precis.phases.sources import splits_of
from precis.telling import Tell, silent

_SPLITS = ("train", "dev", "test")
_MISSING = {"nan", "null", "none", "n/a", "#n/a", "<na>", "na"}  # in lower case
_SPACE = re.compile(r"\s")
_PIECE = 100_000  # characters
_APART = 10_000_000  # corpus positions between splits: more training pairs never change the test set


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Lengths of texts in white-space words."""

    mean: float
    median: float
    percentile_95: float
    longest: int

    @classmethod
    def of(cls, words: np.ndarray) -> Lengths:
        """From the words of each text."""
        median, percentile_95 = np.percentile(words, [50, 95]).tolist()
        return cls(
            mean=float(words.mean()), median=median, percentile_95=percentile_95, longest=int(words.max())
        )


@dataclass(frozen=True, kw_only=True)
class SplitCheck:
    """One set of pairs, read to its end.

    Attributes:
        name: the split, or the file.
        report: rows, kept and skipped ones.
        references: references a pair, on average.
        repeated_documents: pairs whose document occurred before in this set.
        repeated_pairs: pairs whose document and summary did.
        longer_summaries: pairs whose summary has more words than the document.
        missing_marks: pairs whose document or summary is what programs write for a missing value: "nan", "NULL".
        digests: digests of the documents (of two parts the second), to look for them in other splits.
    """

    name: str
    report: ReadReport
    documents: Lengths
    summaries: Lengths
    references: float
    repeated_documents: int
    repeated_pairs: int
    longer_summaries: int
    missing_marks: int
    digests: frozenset[bytes] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DataCheck:
    """All sets of a source; `shared` counts the documents that two of them have in common."""

    splits: Sequence[SplitCheck]
    shared: Mapping[tuple[str, str], int]

    @property
    def bad_rows(self) -> int:
        """Rows that cannot be used, in all splits."""
        return sum(split.report.skipped_count for split in self.splits)


def check_data(whole: Part) -> DataCheck:
    """Read every row of every split of a source.

    Raises:
        UserError: the source cannot be read, or has no usable row.
    """
    names = splits_of(whole.source)
    parts = [whole] if names is None else [replace(whole, split=name) for name in names]
    splits = [_check(part) for part in parts]
    shared = {
        (a.name, b.name): len(a.digests & b.digests)
        for a, b in combinations(splits, 2)
        if a.digests & b.digests
    }
    return DataCheck(splits=splits, shared=shared)


def _check(part: Part) -> SplitCheck:
    report = ReadReport()
    words: list[tuple[int, int]] = []
    references = missing = 0
    seen: Counter[bytes] = Counter()
    digests: set[bytes] = set()
    pairs: Counter[bytes] = Counter()
    for pair in part.read(skip_bad=True, report=report):
        words.append((count_words(pair.document), count_words(pair.summary)))
        missing += any(text.strip().casefold() in _MISSING for text in (pair.document, pair.summary))
        references += len(pair.all_references)
        seen[_digest(pair.document)] += 1
        digests.add(_digest(main_part(pair.document)))
        pairs[_digest(f"{pair.document}\0{pair.summary}")] += 1
    documents, summaries = np.array(words).T
    return SplitCheck(
        name=part.split or part.source,
        report=report,
        documents=Lengths.of(documents),
        summaries=Lengths.of(summaries),
        references=references / len(documents),
        repeated_documents=seen.total() - len(seen),
        repeated_pairs=pairs.total() - len(pairs),
        longer_summaries=int((summaries > documents).sum()),
        missing_marks=missing,
        digests=frozenset(digests),
    )


def _digest(text: str) -> bytes:
    whole = hashlib.sha256()
    between = ""
    for words in _words(text):
        whole.update((between + " ".join(words)).encode())
        between = " "
    return whole.digest()[:12]


def count_words(text: str) -> int:
    """White-space words, counted without a list of all of them: of a long text that is twenty times its size."""
    return sum(map(len, _words(text)))


def _words(text: str) -> Iterator[list[str]]:
    """The words of a text, some thousands at a time."""
    place = 0
    while place < len(text):
        end = _SPACE.search(text, place + _PIECE)
        until = end.start() if end else len(text)
        if words := text[place:until].split():
            yield words
        place = until


def first_pairs(part: Part, count: int, *, tell: Tell = silent) -> list[Pair]:
    """The first usable pairs of a source; `tell` is told of rows before them that cannot be used.

    Raises:
        UserError: `count` is below 1, or the source cannot be read.
    """
    if count < 1:
        raise UserError(f"--rows {count}: use 1 or more")
    report = ReadReport()
    pairs = list(part.read(skip_bad=True, limit=count, report=report))
    if report.skipped_count:
        tell(f"{counted(report.skipped_count, 'row')} skipped (first: {report.skipped[0]})")
    return pairs


def write_synthetic(out: Path, counts: Mapping[str, int], *, seed: int) -> list[Path]:
    """Write pairs of the project's own corpus as OUT/train.jsonl, dev.jsonl and test.jsonl; return the files.

    The same seed gives the same pairs. The dev and test pairs do not depend on how many there are to train on.

    Raises:
        UserError: a count is negative, or `out` is a file or holds anything but pairs of this corpus.
    """
    folder_to_be(out)
    for split, count in counts.items():
        if not 0 <= count <= _APART:
            raise UserError(f"--{split} {count}: use 0 to {_APART:,}")
    rows = {}
    for position, split in enumerate(_SPLITS):
        if counts.get(split):
            first = position * _APART
            rows[out / f"{split}.jsonl"] = range(first, first + counts[split])
    with locked_place(out, doing="writing pairs to"):
        _refuse_others(out, rows, seed=seed)
        out.mkdir(parents=True, exist_ok=True)
        for file, numbers in rows.items():
            remove_leftovers(file)
            with replacing(file) as stream:
                stream.writelines(_lines(numbers, seed=seed))
    return list(rows)


def _refuse_others(out: Path, rows: Mapping[Path, range], *, seed: int) -> None:
    """Somebody's own pairs may have these names: only pairs of this corpus, more or fewer, are written over."""
    ours = {file.name for file in rows}
    if others := {file.name for file in split_files(out)} - ours:
        raise UserError(
            f"{out}: holds {', '.join(sorted(others))}, which would be read beside the new pairs; remove that "
            "first, or name another folder with --out"
        )
    for file, numbers in rows.items():
        refuse_link(file)
        if file.exists() and not _is_beginning(file, _lines(itertools.count(numbers.start), seed=seed)):
            raise UserError(
                f"{file}: is there and holds other pairs, which would be lost; move it away, or name another folder "
                "with --out"
            )
    there = out.iterdir() if out.exists() else ()
    if foreign := [p.name for p in there if p.name not in ours and not is_temporary(p.name)]:
        raise UserError(
            f"{out}: holds {min(foreign)}, which is none of these pairs; name an empty or new folder with --out"
        )


def _is_beginning(file: Path, lines: Iterable[bytes]) -> bool:
    """Whether a file holds the first of these endless lines and nothing else, the last one perhaps cut."""
    with file.open("rb") as stream:
        for line in lines:
            found = stream.readline()
            if found != line:
                return line.startswith(found) and not stream.read(1)
    return False


def _lines(numbers: Iterable[int], *, seed: int) -> Iterator[bytes]:
    for number in numbers:
        pair = make_pair(number, seed=seed)
        row = {"id": pair.id, "document": pair.document, "summary": pair.summary}
        yield (json.dumps(row, ensure_ascii=False) + "\n").encode()
