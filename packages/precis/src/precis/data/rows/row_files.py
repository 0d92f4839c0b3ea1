"""Raw rows of JSON, CSV, TSV, Parquet and parallel files, one at a time, each with its place in the file.

A row that cannot be read does not end the stream: it becomes a `Row` with a `problem`, so that the caller
decides whether to stop or to skip it. Damage that cannot be skipped (a damaged archive, a file without a
readable header, a line too long for memory) raises `UserError`.

CSV and TSV follow the quoting of spreadsheets and pandas. If the header of a .csv file has semicolons or tabs, not
commas, as in many countries, the file is split at those: any other reading gives one column. Excel's first line
`sep=;` names the separator. A .json file may be one array of objects, which is read as a whole. A Parquet value is
converted on demand, so an unreadable column matters only if it is needed.

Parallel files have a text in each line: train.source and train.target for BART, PEGASUS and old scripts of
transformers, train.src and train.tgt for fairseq and OpenNMT. `precis summarize` does not need the summaries.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from precis_text.bounded_io import (
    MAX_BYTES,
    MAX_VALUES,
    MIB,
    JsonError,
    is_folder,
    open_regular,
    parse_json,
    size,
    stat_or_none,
    suggest,
)
from precis_text.errors import UserError, first_line
from precis_text.row import SAVE_AS_UTF8, Row, Unreadable, kind_of, list_names, pluralize
from precis_text.text_lines import COMPRESSIONS, MAX_LINE, numbered_lines, refuse_growth

_MAX_FIELDS = 100_000
_MAX_LINES = 1_000_000  # of a CSV record
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_EXCEL = re.compile(r"\ufeff?\"?sep=(?P<separator>[^\w\s\"]|\t)\"?\r?\n?", re.IGNORECASE)
_ROWS_AT_ONCE = 256  # of Parquet
_BYTES_AT_ONCE = 16 * MIB  # decompressed, of one batch of rows
_MAX_FOOTER = 16 * MIB
_MAX_COLUMNS = 10_000
_FREE_ROWS = 50_000
SIDES = {".source": ".target", ".src": ".tgt"}
"""The extension of documents -> that of their summaries."""


def read_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a .jsonl, .json, .csv, .tsv, .source or .src (each also .gz or .xz) or .parquet file.

    Raises:
        UserError: the file is missing, is not a regular file, is of another kind, or is damaged as a whole.
    """
    if stat_or_none(path) is None:
        raise UserError(f"{path}: no such file{suggest(path)}")
    if is_folder(path):
        raise UserError(f"{path}: is a folder, not a file of rows")
    name = path.name.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    kind = next((ending for ending in _READERS if name.endswith(ending)), None)
    if kind is None or (kind == _PARQUET and name != path.name.lower()):
        raise UserError(f"{path}: unknown file extension; known ones: {', '.join(known_endings())}")
    return _READERS[kind](path)


def known_endings() -> list[str]:
    """List every file extension that `read_rows` accepts, compressed ones included."""
    lines = [ending for ending in _READERS if ending != _PARQUET]
    return [*(ending + more for ending in lines for more in ("", *COMPRESSIONS)), _PARQUET]


def _read_jsonl(path: Path) -> Iterator[Row]:
    for number, line in numbered_lines(path, skip_blank=True):
        if not line.strip():
            continue
        if number == 1 and line.lstrip().startswith(b"["):
            yield from _read_array(path)
            return
        place = f"line {number}"
        try:
            values = parse_json(line.decode(), constants=True)
        except UnicodeDecodeError as error:
            where = f"byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line"
            yield Row(place, problem=f"invalid UTF-8 ({where}); {SAVE_AS_UTF8}")
            continue
        except JsonError as error:
            is_begun = line.strip() == b"{"
            hint = "; an object over several lines? `jq -c .` writes one per line" if is_begun else ""
            yield Row(place, problem=f"invalid JSON ({str(error).replace('line 1 column', 'column')}{hint})")
            continue
        yield _object_row(place, values)


def _read_array(path: Path) -> Iterator[Row]:
    """Yield the objects of a file that is one JSON array."""
    parts, taken = [], 0
    for _, line in numbered_lines(path):
        parts.append(line)
        taken += len(line)
        if taken > MAX_BYTES:
            remedy = "write one object per line (for instance with `jq -c '.[]'`)"
            raise UserError(f"{path}: is a JSON array of more than {size(MAX_BYTES)}, the limit; {remedy}")
    try:
        values = parse_json(b"".join(parts), constants=True)
    except JsonError as error:
        raise UserError(f"{path}: is not valid JSON: {error}") from None
    for number, value in enumerate(values, start=1):
        yield _object_row(f"item {number}", value)


def _object_row(place: str, values: Any) -> Row:
    if isinstance(values, dict):
        return Row(place, values)
    what = "an array" if isinstance(values, list) else kind_of(values)
    return Row(place, problem=f"not a JSON object but {what}")


class _Lines:
    """Lines for csv's reader, with limits: a record of many lines or fields would otherwise fill the memory."""

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
                    f"{self._path}: line {number}: the record that starts at line {self._first or 1} exceeds the "
                    f"limit of {bound}; perhaps a quotation mark is never closed"
                )
            # A stray byte must not end the reading: it is kept as a lone surrogate, which `invalid_text` reports.
            yield line.decode(errors="surrogateescape")


def _read_separated(path: Path, *, separator: str) -> Iterator[Row]:
    lines = _Lines(path, numbered_lines(path))
    stream = iter(lines)
    first = next(stream, None)
    named_by_excel = _EXCEL.fullmatch(first) if first is not None else None
    if named_by_excel:
        separator, first = named_by_excel["separator"], next(stream, None)
    if first is None:
        return
    if not named_by_excel and separator == "," and "," not in first:
        separator = next((other for other in _SEPARATORS if other in first), separator)
    lines.separator = separator.encode()
    reader = csv.reader(chain([first], stream), delimiter=separator, strict=True)
    header = _next_record(reader)
    if header is None:
        return
    if isinstance(header, str):
        raise UserError(f"{path}: line 1: the header cannot be read: {header}")
    if len(header) > _MAX_FIELDS:
        raise UserError(
            f"{path}: line 1: the header names {len(header):,} columns; the limit is {_MAX_FIELDS:,}"
        )
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise UserError(f"{path}: line 1: the header names column {list_names(twice[:1])} twice")
    while True:
        place = f"line {lines.begin()}"
        record = _next_record(reader)
        if record is None:
            return
        if isinstance(record, str):
            yield Row(place, problem=f"invalid CSV ({record})")
        elif record and len(record) != len(header):
            fields = f"{pluralize(len(record), 'field')} where the header has {len(header):,}"
            problem = f"{fields} ({_SEPARATORS.get(separator, repr(separator))} without quotes?)"
            yield Row(place, problem=problem)
        elif record:
            yield Row(place, dict(zip(header, record, strict=True)))


def _next_record(reader: Iterator[list[str]]) -> list[str] | str | None:
    """Return the next record, the problem with it, or None at the end."""
    # The limit applies to the whole process, so it is restored after each record.
    limit = csv.field_size_limit(MAX_LINE)
    try:
        return next(reader, None)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return "a quotation mark is opened here and never closed"
        return str(error)
    finally:
        csv.field_size_limit(limit)


def _read_parquet(path: Path) -> Iterator[Row]:
    number = 0
    try:
        with open_regular(path) as stream:
            total = _look_at_footer(path, stream)
            given = 0
            for batch in _batches(path, stream, total=total):
                given += batch.nbytes
                refuse_growth(path, read=total, given=given, place=f"row {number + 1}")
                for index in range(batch.num_rows):
                    number += 1
                    yield Row(f"row {number}", _Values(batch, index))
    except (UserError, GeneratorExit):
        raise
    except Exception as error:  # the library passes on whatever its parsers raise
        raise UserError(f"{path}: damaged or not Parquet, after row {number}: {first_line(error)}") from error


def _look_at_footer(path: Path, stream: BinaryIO) -> int:
    """Return the file's size and refuse a large footer, which can grow a hundredfold when parsed."""
    total = stream.seek(0, 2)
    if total >= 12:
        stream.seek(-8, 2)
        length = int.from_bytes(stream.read(4), "little")
        if stream.read(4) == b"PAR1" and length > _MAX_FOOTER:
            raise UserError(f"{path}: its footer is larger than the limit of {size(_MAX_FOOTER)}")
    stream.seek(0)
    return total


def _batches(path: Path, stream: BinaryIO, *, total: int) -> Iterator[Any]:
    import pyarrow.parquet as parquet

    # Columns are read piece by piece (buffer_size), not a whole row group at once.
    with parquet.ParquetFile(stream, buffer_size=MIB, pre_buffer=False) as file:
        columns = file.schema_arrow.names
        twice = [name for name, times in Counter(columns).items() if times > 1]
        if twice:
            raise UserError(f"{path}: names column {list_names(twice[:1])} twice")
        if len(columns) > _MAX_COLUMNS:
            raise UserError(f"{path}: has {len(columns):,} columns; the limit is {_MAX_COLUMNS:,}")
        if file.metadata.num_rows > max(_FREE_ROWS, total):
            told = f"{file.metadata.num_rows:,} rows in {size(total)}"
            raise UserError(f"{path}: has {told}, more than one per byte: this is not text")
        for group in range(file.num_row_groups):
            rows = _rows_at_once(path, file.metadata.row_group(group), group, total=total)
            yield from file.iter_batches(batch_size=rows, row_groups=[group], use_threads=False)


def _rows_at_once(path: Path, group: Any, number: int, *, total: int) -> int:
    """Return the rows per batch of bounded size; check that the sizes that a row group states are possible.

    Single columns are not checked: pyarrow aborts the process if the footer's record of a column is damaged.
    """
    refuse_growth(path, read=total, given=group.total_byte_size, place=f"row group {number + 1}")
    average = group.total_byte_size // max(1, group.num_rows)
    if average > MAX_LINE:
        most = f"larger than the limit of {size(MAX_LINE)}"
        raise UserError(f"{path}: row group {number + 1}: its rows are {most}")
    return max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(1, average)))


class _Values(Mapping[str, Any]):
    """A mapping from column names to the values of one row."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Any, index: int) -> None:
        self._batch, self._index = batch, index

    def __getitem__(self, name: str) -> Any:
        position = self._batch.schema.get_field_index(name)
        if position < 0:
            raise KeyError(name)
        try:
            return self._batch.column(position)[self._index].as_py()
        except UnicodeDecodeError as error:
            return Unreadable(f"invalid UTF-8 ({error.reason} at byte {error.start + 1}); {SAVE_AS_UTF8}")
        except Exception as error:  # dates beyond the year 9999, unknown time zones, ...
            return Unreadable(f"contains a value that cannot be read ({first_line(error)})")

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.schema.names)

    def __len__(self) -> int:
        return len(self._batch.schema.names)


def target_of(path: Path) -> Path | None:
    """Return the file with the summaries of a file of documents, compressed or not; None if there is none."""
    name = path.name
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    stem, dot, ending = name.rpartition(".")
    target = SIDES.get((dot + ending).lower())
    if target is None:
        return None
    candidates = (path.with_name(stem + target + more) for more in ("", *COMPRESSIONS))
    return next((one for one in candidates if stat_or_none(one) is not None), None)


def _read_parallel(path: Path) -> Iterator[Row]:
    """Yield a row for each line of a file of documents and the line of its summary."""
    target = target_of(path)
    documents = numbered_lines(path)
    if target is None:
        for number, line in documents:
            yield _row(number, {"document": line})
        return
    for number, (document, summary) in enumerate(zip_longest(documents, numbered_lines(target)), start=1):
        if document is None or summary is None:
            longer, shorter = (target, path) if document is None else (path, target)
            raise UserError(
                f"{longer}: line {number} lacks its partner: {shorter.name} has {number - 1:,} lines; "
                "take both from one data set"
            )
        yield _row(number, {"document": document[1], "summary": summary[1]})


def _row(number: int, lines: dict[str, bytes]) -> Row:
    values: dict[str, str] = {}
    for column, line in lines.items():
        try:
            values[column] = line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            where = f"the {column} has byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line"
            return Row(f"line {number}", problem=f"invalid UTF-8 ({where}); {SAVE_AS_UTF8}")
    return Row(f"line {number}", values)


_PARQUET = ".parquet"
_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _read_jsonl, ".json": _read_jsonl, ".csv": partial(_read_separated, separator=","),
    ".tsv": partial(_read_separated, separator="\t"), **dict.fromkeys(SIDES, _read_parallel),
    _PARQUET: _read_parquet,
}  # fmt: skip
