"""Checks a set of pairs: unusable rows, lengths, empty texts, duplicates, leaks between splits."""

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
from precis.data.pairs.pair_reader import ReadReport, split_files
from precis.data.synthetic.corpus import make_pair
from precis.data.tasks.tasks import Part
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import splits_of
from precis.phases.output_folders import folder_to_be
from precis.storage.atomic import is_temporary, refuse_link, remove_leftovers, replacing
from precis.storage.locks import locked_place
from precis_text.config import nearest
from precis_text.control_characters import main_part
from precis_text.errors import UserError
from precis_text.row import pluralize

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
        """Compute the statistics from the number of words of each text."""
        median, percentile_95 = np.percentile(words, [50, 95]).tolist()
        return cls(
            mean=float(words.mean()), median=median, percentile_95=percentile_95, longest=int(words.max())
        )


@dataclass(frozen=True, kw_only=True)
class SplitCheck:
    """The statistics of one set of pairs, read completely.

    Attributes:
        name: the split, or the file.
        report: rows, kept and skipped.
        references: mean number of references per pair.
        repeated_documents: pairs whose document occurred before in this set.
        repeated_pairs: pairs whose document and summary occurred before.
        longer_summaries: pairs whose summary has more words than the document.
        missing_marks: pairs whose document or summary is a marker of a missing value: "nan", "NULL".
        digests: digests of the documents (the second part, if there are two), to find them in other splits.
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
    """The statistics of all sets of a source; `shared` counts the documents that two sets have in common."""

    splits: Sequence[SplitCheck]
    shared: Mapping[tuple[str, str], int]

    @property
    def bad_rows(self) -> int:
        """The number of unusable rows in all splits."""
        return sum(split.report.skipped_count for split in self.splits)


def check_data(whole: Part) -> DataCheck:
    """Read every row of every split; raise `UserError` if that fails, or it lacks a usable row."""
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
        name=part.split or part.source, report=report, documents=Lengths.of(documents),
        summaries=Lengths.of(summaries), references=references / len(documents),
        repeated_documents=seen.total() - len(seen), repeated_pairs=pairs.total() - len(pairs),
        longer_summaries=int((summaries > documents).sum()), missing_marks=missing, digests=frozenset(digests),
    )  # fmt: skip


def _digest(text: str) -> bytes:
    whole = hashlib.sha256()
    between = ""
    for words in _words(text):
        whole.update((between + " ".join(words)).encode())
        between = " "
    return whole.digest()[:12]


def count_words(text: str) -> int:
    """Count white-space words in pieces: a list of all words takes twenty times the memory of a long text."""
    return sum(map(len, _words(text)))


def _words(text: str) -> Iterator[list[str]]:
    """Yield the words of a text, some thousands at a time."""
    place = 0
    while place < len(text):
        end = _SPACE.search(text, place + _PIECE)
        until = end.start() if end else len(text)
        if words := text[place:until].split():
            yield words
        place = until


def first_pairs(part: Part, count: int, *, notify: Notify = silent) -> list[Pair]:
    """Return the first usable pairs of a source; report the unusable rows before them to `notify`.

    Raises:
        UserError: `count` is below 1, or the source cannot be read.
    """
    if count < 1:
        raise UserError(f"--rows {count}: use 1 or more")
    report = ReadReport()
    pairs = list(part.read(skip_bad=True, limit=count, report=report))
    if report.skipped_count:
        notify(f"{pluralize(report.skipped_count, 'row')} skipped (first: {report.skipped[0]})")
    return pairs


def write_synthetic(out: str | Path, counts: Mapping[str, int], *, seed: int = 0) -> list[Path]:
    """Write pairs of the synthetic corpus as OUT/train.jsonl, dev.jsonl and test.jsonl; return the files.

    The same seed gives the same pairs. The dev and test pairs do not depend on the number of training pairs.

    Args:
        counts: the number of pairs of each split: train, dev, test.

    Raises:
        UserError: a split is unknown, a count is negative, or `out` is a file or holds anything but pairs of this
            corpus.

    Examples:
        >>> [file.name for file in write_synthetic("invented", {"train": 20, "test": 5})]
        ['train.jsonl', 'test.jsonl']
    """
    out = Path(out)
    folder_to_be(out)
    for split, count in counts.items():
        if split not in _SPLITS:
            raise UserError(f"unknown split {split!r}{nearest(split, _SPLITS)}")
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
    """Refuse a folder with other files; overwrite only pairs of this corpus, more or fewer of them."""
    ours = {file.name for file in rows}
    if others := {file.name for file in split_files(out)} - ours:
        raise UserError(
            f"{out}: contains {', '.join(sorted(others))}, which would be read together with the new pairs; remove "
            "that first, or name another folder with --out"
        )
    for file, numbers in rows.items():
        refuse_link(file)
        if file.exists() and not _is_beginning(file, _lines(itertools.count(numbers.start), seed=seed)):
            raise UserError(
                f"{file}: contains other pairs, which would be lost; move it away, or name another folder with --out"
            )
    there = out.iterdir() if out.exists() else ()
    if foreign := [p.name for p in there if p.name not in ours and not is_temporary(p.name)]:
        raise UserError(
            f"{out}: contains {min(foreign)}, which is not part of these pairs; name an empty or new folder with --out"
        )


def _is_beginning(file: Path, lines: Iterable[bytes]) -> bool:
    """Return whether a file contains only the first of these endless lines; the last may be incomplete."""
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
