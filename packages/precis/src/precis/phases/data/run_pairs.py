"""The pairs of a run as a user names them, their sources, and reading them: a task, a folder or single files."""

from __future__ import annotations

import hashlib
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from precis.data.pairs.dataset_adapters import split_scheme, splits_cut
from precis.data.pairs.pair import Columns, Pair
from precis.data.pairs.pair_reader import ReadReport, available_splits, splits_on_hub
from precis.data.pairs.pair_reader import read_pairs as stream_pairs
from precis.data.rows.hub import PREFIX
from precis.data.tasks.tasks import TASKS, Part, resolve, task
from precis.phases.output_folders import existing_file
from precis_text.config import Settings
from precis_text.control_characters import main_part
from precis_text.errors import UserError
from precis_text.row import pluralize

_LOOKED_THROUGH = 200_000  # training pairs
_TEST_FILE = "TEST_FILE"  # for the user to fill in


@dataclass(frozen=True, kw_only=True)
class PairSources(Settings):
    """The sets of a training run; if `dev` is None, a part of the training pairs is held out for validation."""

    train: Part
    dev: Part | None = None
    task: str = ""
    skip_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class NamedPairs:
    """The place and the format of pairs; each field is the option of that name.

    Attributes:
        task: a task of the table; its columns and splits are used.
        data: a file of pairs, a folder with train, dev and test files, or `hub:owner/name`; with a task, the folder
            of its files.
        dev: a file of validation pairs, instead of the source's own dev split.
        document_column, summary_column, units_column: columns to read instead of the source's own.
        skip_bad: skip and count rows that cannot be used.
    """

    task: str | None = None
    data: str | None = None
    dev: str | None = None
    document_column: str | None = None
    summary_column: str | None = None
    units_column: str | None = None
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if self.document_column is not None and self.document_column == self.summary_column:
            raise UserError(
                f"--document-column and --summary-column are both {self.document_column!r}; name two different columns"
            )

    def sources(self) -> PairSources:
        """Find the training and validation sets; without a folder in `data`, a task's pairs come from the hub.

        Raises:
            UserError: neither task nor data is given, the task is unknown, or training pairs are missing.
        """
        place = self._place()
        splits = splits_of(place.source)
        if splits is not None and "train" not in splits:
            what = "split" if place.source.startswith(PREFIX) else "file"
            raise UserError(
                f"{place.source}: has {', '.join(splits)} but no train {what}; name one with --data"
            )
        validation = None
        if splits is not None and "dev" in splits:
            validation = replace(place, split="dev")
        if self.dev is not None:
            existing_file(self.dev)
            scheme, _ = split_scheme(place.source)
            apart = replace(place.columns, repeated=False)
            validation = replace(
                place, source=scheme + self.dev, split=None, columns=apart, empty_documents=0
            )
        train = replace(place, split="train" if splits is not None else None)
        return PairSources(train=train, dev=validation, task=self.task or "", skip_bad=self.skip_bad)

    def check(self) -> None:
        """Read the first of local training pairs, to refuse wrong input before libraries are imported.

        Units are not read: a plan may refuse their option.

        Raises:
            UserError: neither task nor data is given, or the pairs do not exist or lack a column.
        """
        if not _reads_hub(self.task, self.data):
            read_first(replace(self, units_column=None).sources().train, skip_bad=self.skip_bad)

    def check_part(self, split: str | None = None) -> None:
        """Read the first pair of the set that `part` names, if it is local; errors are those of `check`."""
        if not _reads_hub(self.task, self.data):
            read_first(self.part(split), skip_bad=self.skip_bad)

    def part(self, split: str | None = None) -> Part:
        """Find one set of pairs; by default the test split.

        Raises:
            UserError: neither task nor data is given, or the task is unknown.
        """
        place = self._place()
        if split is None and not place.source.startswith(PREFIX) and splits_of(place.source) is None:
            return place
        return replace(place, split=split or "test")

    def _place(self) -> Part:
        """Return the pairs without a split."""
        if self.task is not None:
            place = resolve(task(self.task), self.data)
        elif self.data is not None:
            place = Part(source=self.data)
        else:
            raise UserError("no pairs: name them with --task NAME, or --data with a file or folder")
        columns = self.columns(place.columns)
        return place if columns == place.columns else replace(place, columns=columns, also=())

    def columns(self, usual: Columns) -> Columns:
        """Return the usual columns with those that are named replaced."""
        return replace(
            usual,
            document=self.document_column or usual.document,
            summary=self.summary_column or usual.summary,
            units=self.units_column or usual.units,
        )

    @property
    def typed(self) -> str:
        """The options, as words of a command line."""
        return self._with_data(self.data)

    def to_test(self, source: str) -> str:
        """Return options of `precis evaluate`: the test split if the source has one, else a placeholder for a file.

        Args:
            source: the source of the pairs, as in `precis.data.tasks.tasks.Part`.

        Raises:
            UserError: the hub does not return its splits.
        """
        if "test" in (splits_of(source) or ()):
            return f"{self.typed} --split test"
        return self._with_data(_TEST_FILE)

    def _with_data(self, data: str | None) -> str:
        values = {
            "--task": self.task, "--data": data, "--document-column": self.document_column,
            "--summary-column": self.summary_column, "--units-column": self.units_column,
        }  # fmt: skip
        words = [f"{option} {shlex.quote(value)}" for option, value in values.items() if value is not None]
        return " ".join([*words, *(["--skip-bad"] if self.skip_bad else [])])


USUAL_COLUMNS = NamedPairs()
"""The columns of pairs whose place is named elsewhere: each set's own."""


class ReadOptions(TypedDict, total=False):
    """The options of `precis.data.pairs.pair_reader.read_pairs` that a task sets itself."""

    columns: Columns | None
    empty_documents: int
    need_summary: bool
    stream: bool


def read_pairs(
    data: str | Path | None = None,
    *,
    task: str | None = None,
    split: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
    report: ReadReport | None = None,
    document_column: str | None = None,
    summary_column: str | None = None,
    **options: Unpack[ReadOptions],
) -> Iterator[Pair]:
    """Stream pairs of document and summary.

    Args:
        data: a file, a folder or `hub:owner/name`; with `task`, the folder of the task's files, by default the hub.
        task: a task of the table (see: precis data list), which sets the columns; its default split is test.
        split: "train", "dev" or "test"; None for a single file or a folder of texts.
        skip_bad: skip unusable rows instead of stopping at the first.
        limit: stop after this many pairs, 1 or more.
        report: filled in while reading.
        document_column, summary_column: columns to read instead of the source's own.
        options: without a task, those of `precis.data.pairs.pair_reader.read_pairs`.

    Raises:
        UserError: neither data nor a task is given, the task is unknown, the source cannot be read or lacks usable
            rows, or it contains a bad row and `skip_bad` is False. The message names the file and the line.

    Examples:
        >>> next(read_pairs("pairs", split="test")).summary
        'Ann sings.'
        >>> next(read_pairs("pairs", split="test", document_column="summary", summary_column="document")).document
        'Ann sings.'
    """
    named = NamedPairs(
        task=task, data=text_of(data), document_column=document_column, summary_column=summary_column
    )
    if task is None and data is not None:
        options["columns"] = named.columns(options.get("columns") or Columns())
        return stream_pairs(data, split=split, skip_bad=skip_bad, limit=limit, report=report, **options)
    if options:
        raise UserError(f"{' and '.join(options)}: task={task} sets this itself; omit it")
    part = named.part(split)
    return part.read(skip_bad=skip_bad, limit=limit, report=report)


def named_pairs(data: str | Path | None, options: Mapping[str, Any]) -> tuple[NamedPairs, dict[str, Any]]:
    """Split the keyword arguments of a call into the pairs that they name and the others.

    Args:
        data: the place of the pairs.
        options: all keyword arguments besides `data`.
    """
    names = {name: options[name] for name in NamedPairs.__dataclass_fields__ if name in options}
    places = {"data": text_of(data), "dev": text_of(names.get("dev"))}
    others = {name: value for name, value in options.items() if name not in names}
    return NamedPairs(**{**names, **places}), others


def text_of(place: str | Path | None) -> str | None:
    """Return a place as text; None stays None."""
    return None if place is None else str(place)


def _reads_hub(task_name: str | None, data: str | None) -> bool:
    """Return whether pairs come from the hub, which only their reader queries."""
    return task_name is not None if data is None else PREFIX in data


def read_first(part: Part, *, skip_bad: bool = False) -> None:
    """Read the first pair of a local set; raise `UserError` if the set is missing or the pair unusable."""
    if PREFIX not in part.source:
        next(part.read(skip_bad=skip_bad, limit=1), None)


def splits_of(source: str) -> list[str] | None:
    """Return the splits of a source, or None for a single set (a file, a folder of texts).

    The hub is queried, except for the data sets of known tasks, which have all three.

    Raises:
        UserError: the hub cannot be reached, or lacks that data set.
    """
    scheme, place = split_scheme(source)
    if scheme:
        own = list(available_splits(Path(place), scheme)) if Path(place).is_dir() else splits_of(place)
        return list(splits_cut(scheme, place, own)) if own else None
    if source in {PREFIX + known.hub for known in TASKS.values()}:
        return ["train", "dev", "test"]
    if source.startswith(PREFIX):
        return splits_on_hub(source)
    path = Path(source)
    return (list(available_splits(path)) or None) if path.is_dir() else None


class PairReader:
    """A reader of one set of pairs that counts rows and computes a digest."""

    def __init__(self, part: Part, *, skip_bad: bool = False) -> None:
        self.part, self.skip_bad = part, skip_bad
        self.report = ReadReport()
        self._digest = hashlib.sha256()

    def __iter__(self) -> Iterator[Pair]:
        self.report = ReadReport()
        self._digest = hashlib.sha256()
        for pair in self.part.read(skip_bad=self.skip_bad, report=self.report):
            # A row with one reference keeps its digest from before there were several, so that old runs can resume.
            others = () if pair.all_references == (pair.summary,) else pair.references
            for text in (pair.document, pair.summary, *others):
                self._digest.update(f"{len(text)} {text}".encode())
            yield pair

    def count_as_skipped(self, message: str) -> None:
        """Count a pair as skipped that was counted as read."""
        self.report.kept -= 1
        self.report.skip(f"{self.part}: {message}")

    @property
    def digest(self) -> str:
        """The digest of documents, summaries and references in the last complete reading: 16 hexadecimal digits."""
        return self._digest.hexdigest()[:16]

    def describe_rows(self) -> str:
        """Return a sentence about what was read and what was not."""
        unread = self.report.told_unread()
        return f"{pluralize(self.report.kept, 'pair')} from {self.part}{self.told_skipped()}" + (
            unread and f"; {unread}"
        )

    def told_skipped(self) -> str:
        """Return the end of a sentence: the number of skipped rows and the first reason; empty if there are none."""
        skipped = self.report.skipped_count
        return f", {skipped:,} skipped (first: {self.report.skipped[0]})" if skipped else ""


def percent(part: int, whole: int) -> str:
    """Format a share with one decimal; a tiny share gets more, so that it never appears as 0%."""
    share = 100 * part / whole
    return f"{share:.1f}%" if share >= 0.1 else f"{share:.1g}%"


def sample(pairs: Iterable[Pair], count: int, *, seed: int) -> list[Pair]:
    """Draw `count` pairs without replacement, in their old order; raise `UserError` if there are fewer."""
    everything = list(pairs)
    if not 1 <= count <= len(everything):
        raise UserError(
            f"--examples {count}: the training set has {pluralize(len(everything), 'pair')}; use 1 to that number"
        )
    chosen = np.sort(np.random.default_rng(seed).choice(len(everything), size=count, replace=False))
    return [everything[int(row)] for row in chosen]


def hold_out(pairs: Iterable[Pair], *, seed: int, one_in: int = 20) -> tuple[list[Pair], list[Pair]]:
    """Split off a part of the pairs, at most 500, at random for validation or test: (training, the others).

    Pairs with the same document, or the same passage with another answer, stay on the same side.

    Args:
        one_in: 20 splits off a twentieth of the documents, 5 a fifth.

    Raises:
        UserError: there are fewer than two documents.
    """
    everything = list(pairs)
    documents = list(dict.fromkeys(main_part(pair.document) for pair in everything))
    if len(documents) < 2:
        raise UserError("one document cannot be split into training and validation; give a --dev file")
    count = min(500, max(1, len(documents) // one_in))
    order = np.random.default_rng([seed, 1]).permutation(len(documents))
    held = {documents[int(row)] for row in order[:count]}
    sides: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in everything:
        sides[main_part(pair.document) in held].append(pair)
    return sides


def examples_in_share(sources: PairSources, share: float, *, seed: int) -> int:
    """Count the training pairs in a share of them, at least one; pairs held out for validation do not count.

    Args:
        share: in (0, 1].
        seed: the run's seed, which determines the held-out pairs.

    Raises:
        UserError: the share is out of range, or the pairs cannot be read.
    """
    if not 0.0 < share <= 1.0:
        raise UserError(f"--share {share:g}: use a share of the training pairs above 0 and at most 1")
    reader = PairReader(sources.train, skip_bad=sources.skip_bad)
    count = sum(1 for _ in reader) if sources.dev is not None else len(hold_out(reader, seed=seed)[0])
    return max(1, round(share * count))


class Leaks:
    """A detector of validation documents among the training pairs: scores on them reward memorizing.

    White space does not matter. If a document has two parts, the second is compared.
    """

    def __init__(self, dev: Sequence[Pair]) -> None:
        self._dev = [_fingerprint(pair) for pair in dev]
        self._looked_for = set(self._dev)
        self._found: set[bytes] = set()

    def watch(self, train: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the training pairs unchanged."""
        for pair in train:
            if (print_of := _fingerprint(pair)) in self._looked_for:
                self._found.add(print_of)
            yield pair

    @property
    def count(self) -> int:
        """The number of validation pairs whose document was among the training pairs so far."""
        return sum(one in self._found for one in self._dev)


def _fingerprint(pair: Pair) -> bytes:
    return hashlib.blake2b(" ".join(main_part(pair.document).split()).encode(), digest_size=12).digest()


def count_trained_on(settings: Mapping[str, Any], pairs: Sequence[Pair]) -> int:
    """Count the pairs whose document is in the training files that a run's settings name, if these can still be read.

    At most `_LOOKED_THROUGH` pairs of each file are read; the hub is not asked.
    """
    try:
        sources = (
            [settings["sources"]] if "sources" in settings else [each["sources"] for each in settings["sets"]]
        )
        parts = [PairSources.from_dict(each).train for each in sources]
        leaks = Leaks(pairs)
        for part in parts:
            if PREFIX not in part.source:
                deque(leaks.watch(part.read(skip_bad=True, limit=_LOOKED_THROUGH)), maxlen=0)
    except (OSError, UserError, KeyError, TypeError, ValueError):
        return 0
    return leaks.count
