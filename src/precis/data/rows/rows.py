"""Raw rows of JSON-lines, CSV, TSV and Parquet files, one at a time, each naming its place in the file.

A row that cannot be read does not end the stream: it comes as a `Row` with a `problem`, so that the caller
decides whether to stop or to skip it. What cannot be passed over (a damaged archive, a file without a
readable header, a line longer than memory should hold) raises `UserError`.

CSV and TSV are read as spreadsheets and pandas quote them. A .csv file whose header has semicolons or tabs where
commas should be (as spreadsheets write it in many countries) is read by them: no other reading of such a header gives
more than one column.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from precis.data.rows.lines import COMPRESSIONS, MAX_LINE, numbered_lines
from precis.data.rows.parquet import read_parquet
from precis.data.rows.row import (
    SAVE_AS_UTF8,
    Row,
    kind_of,
    named,
)
from precis.errors import UserError
from precis.untrusted import MAX_VALUES, JsonError, is_folder, look_at, parse_json, size

_MAX_FIELDS = 100_000
_OTHERS = (";", "\t")
_MAX_LINES = 1_000_000
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a .jsonl, .json, .csv, .tsv (each also .gz or .xz) or .parquet file.

    Raises:
        UserError: the file is missing, no regular file, of another kind, or damaged as a whole.
    """
    if look_at(path) is None:
        raise UserError(f"{path}: no such file")
    if is_folder(path):
        raise UserError(f"{path}: is a folder, not a file of rows")
    return _FORMATS[_format(path)](path)


def _format(path: Path) -> str:
    name = path.name.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    compressed = name != path.name.lower()
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending) and not (compressed and kind == "parquet"):
            return kind
    raise UserError(f"{path}: unknown kind of file; known endings: {', '.join(known_endings())}")


def known_endings() -> list[str]:
    """Every ending that `read_rows` takes, compressed ones included."""
    plain = [ending for ending, kind in _ENDINGS.items() if kind != "parquet"]
    return [*(ending + more for ending in plain for more in ("", *COMPRESSIONS)), ".parquet"]


def _read_jsonl(path: Path) -> Iterator[Row]:
    for number, line in numbered_lines(path, skip_blank=True):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            values = parse_json(line.decode(), constants=True)
        except UnicodeDecodeError as error:
            where = f"byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line"
            yield Row(place, problem=f"invalid UTF-8 ({where}); {SAVE_AS_UTF8}")
            continue
        except JsonError as error:
            if number == 1 and line.lstrip().startswith(b"["):
                raise UserError(_one_array(path)) from error
            lines = (
                "; an object over several lines? `jq -c .` writes one a line" if line.strip() == b"{" else ""
            )
            yield Row(place, problem=f"invalid JSON ({error}{lines})")
            continue
        if isinstance(values, dict):
            yield Row(place, values)
        elif number == 1 and isinstance(values, list):
            raise UserError(_one_array(path))
        else:
            what = "an array" if isinstance(values, list) else kind_of(values)
            yield Row(place, problem=f"not a JSON object but {what}")


def _one_array(path: Path) -> str:
    return f"{path}: is a JSON array; write one object a line (for instance with `jq -c '.[]'`)"


def read_csv(path: Path) -> Iterator[Row]:
    """The rows of a .csv file; its first line names the columns.

    Raises:
        UserError: the file cannot be read or has no usable header, or a record is larger than a line may be.
    """
    return _read(path, ",")


def read_tsv(path: Path) -> Iterator[Row]:
    """The rows of a .tsv file, with tabs between the fields.

    Raises:
        UserError: the same as in `read_csv`.
    """
    return _read(path, "\t")


class _Lines:
    """Lines for csv's reader, within bounds: a record of many lines or fields would otherwise fill the memory."""

    def __init__(self, path: Path, lines: Iterator[tuple[int, bytes]]) -> None:
        self._path = path
        self._lines = lines
        self._taken = self._separators = self._first = 0  # bytes, separators and first line of this record
        self.separator = b","
        self.number = 0  # the line that was read last

    def begin(self) -> int:
        """Start counting a record at the next line, and return that line's number."""
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
    reader = csv.reader(chain([first], stream), delimiter=separator, strict=True)
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


def _separator(header: str, usual: str) -> str:
    """The usual separator, or another one if the header has that instead."""
    if usual == "," and "," not in header:
        return next((other for other in _OTHERS if other in header), usual)
    return usual


def _next_record(reader: Iterator[list[str]]) -> list[str] | str | None:
    """The next record, what is wrong with it, or None at the end."""
    # The limit is the whole process's, so it is restored after each record.
    limit = csv.field_size_limit(MAX_LINE)
    try:
        return next(reader, None)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return "a quotation mark is opened here and never closed"
        return str(error)
    finally:
        csv.field_size_limit(limit)


_FORMATS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "jsonl": _read_jsonl,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
}
_ENDINGS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
