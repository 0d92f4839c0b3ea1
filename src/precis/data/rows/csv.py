"""Rows of CSV and TSV files, quoted as spreadsheets and pandas quote them.

A .csv file whose header has semicolons or tabs where commas should be (as spreadsheets write it in many countries) is
read by them: no other reading of such a header gives more than one column.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from precis.data.rows.lines import MAX_LINE, numbered_lines
from precis.data.rows.row import Row, named
from precis.errors import UserError
from precis.untrusted import MAX_VALUES, size

_MAX_FIELDS = 100_000
_OTHERS = (";", "\t")
_MAX_LINES = 1_000_000
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


def read_csv(path: Path) -> Iterator[Row]:
    """The rows of a .csv file; its first line names the columns.

    Raises:
        UserError: the file cannot be read or has no usable header, or a record is larger than a line may be.
    """
    return _read(path, ",")


def read_tsv(path: Path) -> Iterator[Row]:
    """The rows of a .tsv file, with tabs between the fields.

    Raises:
        UserError: as `read_csv`.
    """
    return _read(path, "\t")


class _Lines:
    """Lines for csv's reader, which knows no bound of a record over many lines or with many fields."""

    def __init__(self, path: Path, lines: Iterator[tuple[int, bytes]]) -> None:
        self._path = path
        self._lines = lines
        self._taken = self._separators = self._first = 0  # of the record that is being read
        self.separator = b","
        self.number = 0  # of the line that was read last

    def begin(self) -> int:
        """A record begins with the next line, whose number this is."""
        self._taken = self._separators = 0
        self._first = self.number + 1
        return self.number + 1

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self.number = number
            self._taken += len(line)
            self._separators += line.count(self.separator)
            too_many = self._separators > MAX_VALUES or number - self._first > _MAX_LINES
            if self._taken > MAX_LINE or too_many:
                bound = f"{size(MAX_LINE)}, {_MAX_LINES:,} lines or {MAX_VALUES:,} fields"
                raise UserError(
                    f"{self._path}: line {number}: the record that began at line {self._first or 1} has more than "
                    f"{bound}, the most that is read; perhaps a quotation mark is never closed"
                )
            # A stray byte must not end the reading: it is kept as a lone surrogate, which `invalid_text` reports.
            yield line.decode(errors="surrogateescape")


def _read(path: Path, separator: str) -> Iterator[Row]:
    lines = _Lines(path, numbered_lines(path))
    stream = iter(lines)
    first = next(stream, None)
    if first is None:
        return
    separator = _separator(first, separator)
    lines.separator = separator.encode()
    reader = csv.reader(_again(first, stream), delimiter=separator, strict=True)
    header = _next_record(reader)
    if header is None:
        return
    if isinstance(header, str):
        raise UserError(f"{path}: line 1: the header cannot be read: {header}")
    if len(header) > _MAX_FIELDS:
        raise UserError(
            f"{path}: line 1: the header names {len(header):,} columns; at most {_MAX_FIELDS:,} are read"
        )
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise UserError(f"{path}: line 1: the header names column {named(twice[:1])} twice")
    while True:
        place = f"line {lines.begin()}"
        record = _next_record(reader)
        if record is None:
            return
        if isinstance(record, str):
            yield Row(place, problem=f"invalid CSV ({record})")
        elif record and len(record) != len(header):
            fields = f"{len(record):,} fields where the header has {len(header):,}"
            problem = f"{fields} ({_NAMES[separator]} without quotes?)"
            yield Row(place, problem=problem)
        elif record:
            yield Row(place, dict(zip(header, record, strict=True)))


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _separator(header: str, usual: str) -> str:
    """The usual one, or the other that the header has instead of it."""
    if usual == "," and "," not in header:
        return next((other for other in _OTHERS if other in header), usual)
    return usual


def _next_record(reader: Iterator[list[str]]) -> list[str] | str | None:
    """The next record, what is wrong with it, or None at the end."""
    # One setting for the whole process: given back after each record.
    limit = csv.field_size_limit(MAX_LINE)
    try:
        return next(reader, None)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return "a quotation mark is opened here and never closed"
        return str(error)
    finally:
        csv.field_size_limit(limit)
