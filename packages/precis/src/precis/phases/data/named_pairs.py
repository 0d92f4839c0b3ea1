"""Pairs as a user names them: the place and the format that the options of a command, or keyword arguments, give."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from precis.data.pairs.pair import Columns, Pair
from precis.data.pairs.pair_reader import ReadReport
from precis.data.pairs.pair_reader import read_pairs as stream_pairs
from precis.data.tasks.tasks import Part
from precis.phases.data.run_pairs import ColumnNames, PairSources, find_part, find_sources, splits_of
from precis_text.errors import UserError

_TEST_FILE = "TEST_FILE"  # for the user to fill in


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

    def sources(self) -> PairSources:
        """Find the training and validation sets.

        Raises:
            UserError: neither task nor data is given, the task is unknown, or training pairs are missing.
        """
        return find_sources(
            task_name=self.task,
            data=self.data,
            dev=self.dev,
            columns=self._columns,
            skip_bad=self.skip_bad,
        )

    def part(self, split: str | None = None) -> Part:
        """Find one set of pairs; by default the test split.

        Raises:
            UserError: neither task nor data is given, or the task is unknown.
        """
        return find_part(task_name=self.task, data=self.data, split=split, columns=self._columns)

    @property
    def _columns(self) -> ColumnNames:
        return ColumnNames(
            document=self.document_column, summary=self.summary_column, units=self.units_column
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
            "--task": self.task,
            "--data": data,
            "--document-column": self.document_column,
            "--summary-column": self.summary_column,
            "--units-column": self.units_column,
        }
        words = [f"{option} {shlex.quote(value)}" for option, value in values.items() if value is not None]
        return " ".join([*words, *(["--skip-bad"] if self.skip_bad else [])])


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
        options: without a task, those of `precis.data.pairs.pair_reader.read_pairs`.

    Raises:
        UserError: neither data nor a task is given, the task is unknown, the source cannot be read or lacks usable
            rows, or it contains a bad row and `skip_bad` is False. The message names the file and the line.

    Examples:
        >>> next(read_pairs("pairs", split="test")).summary
        'Ann sings.'
    """
    if task is None and data is not None:
        return stream_pairs(data, split=split, skip_bad=skip_bad, limit=limit, report=report, **options)
    if options:
        raise UserError(f"{' and '.join(options)}: task={task} sets this itself; omit it")
    part = NamedPairs(task=task, data=text_of(data)).part(split)
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
