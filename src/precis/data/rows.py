"""Raw rows of JSON-lines, CSV and Parquet files, one at a time, each naming its place in the file.

A row that cannot be read does not end the stream: it comes as a `Row` with a `problem`, so that the caller
decides whether to stop or to skip it. What cannot be passed over (a damaged archive, a file without a
readable header) raises `UserError`.
"""

import csv
import gzip
import json
import lzma
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from precis.errors import UserError

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COMPRESSIONS = (".gz", ".xz")
_TOLD = 20  # messages of skipped rows that are kept


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its place ("line 3"), and its values or what is wrong with it."""

    place: str
    values: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass
class SkippedRows:
    """How many rows were left out, and what is wrong with the first 20 of them."""

    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0

    def skip(self, message: str) -> None:
        """Count a row that is left out, and keep what is wrong with it if it is among the first."""
        self.skipped_count += 1
        if len(self.skipped) < _TOLD:
            self.skipped.append(message)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a .jsonl, .json, .csv (each also .gz or .xz) or .parquet file.

    Raises:
        UserError: the file is missing, of another kind, or damaged as a whole.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a folder, not a file of rows")
    if not path.exists():
        raise UserError(f"{path}: no such file")
    return _FORMATS[_format(path)](path)


def _format(path: Path) -> str:
    name = path.name.lower()
    for ending in _COMPRESSIONS:
        name = name.removesuffix(ending)
    compressed = name != path.name.lower()
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending) and not (compressed and kind == "parquet"):
            return kind
    raise UserError(f"{path}: unknown kind of file; known endings: {', '.join(known_endings())}")


def known_endings() -> list[str]:
    """Every ending that `read_rows` takes, compressed ones included."""
    plain = [ending for ending, kind in _ENDINGS.items() if kind != "parquet"]
    return [*(ending + more for ending in plain for more in ("", *_COMPRESSIONS)), ".parquet"]


def invalid_text(text: str) -> str:
    """What is wrong with a text as Unicode, or an empty string."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), error.start + 1
        if 0xDC80 <= code <= 0xDCFF:  # how errors="surrogateescape" marks a stray byte
            return f"invalid UTF-8 (byte 0x{code - 0xDC00:02X} at character {place})"
        return f"invalid Unicode (lone surrogate U+{code:04X} at character {place})"
    return ""


def _open(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix.lower() == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines with their line ends; a byte order mark is dropped."""
    number = 0
    try:
        with _open(path) as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    if line.startswith(_UTF16):
                        raise UserError(f"{path}: is UTF-16; convert it to UTF-8")
                    line = line.removeprefix(_BOM)
                yield number, line
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        reason = str(error).rstrip(".")
        raise UserError(
            f"{path}: truncated or damaged after line {number} ({reason}); make or download it again"
        ) from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error


def _read_jsonl(path: Path) -> Iterator[Row]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            values = json.loads(line.decode())
        except UnicodeDecodeError as error:
            problem = f"invalid UTF-8 (byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line)"
            yield Row(place, problem=problem)
            continue
        except (ValueError, RecursionError) as error:
            if number == 1 and line.lstrip().startswith(b"["):
                raise UserError(_one_array(path)) from error
            yield Row(place, problem=f"invalid JSON ({error})")
            continue
        if isinstance(values, dict):
            yield Row(place, values)
        elif number == 1 and isinstance(values, list):
            raise UserError(_one_array(path))
        else:
            yield Row(place, problem=f"not a JSON object but {_KINDS.get(type(values), 'a number')}")


_KINDS = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def _one_array(path: Path) -> str:
    return f"{path}: is a JSON array; write one object a line (for instance with `jq -c '.[]'`)"


def _read_csv(path: Path) -> Iterator[Row]:
    # A stray byte must not end the reading: it is kept as a lone surrogate, which `invalid_text` reports.
    lines = (line.decode(errors="surrogateescape") for _, line in _lines(path))
    reader = csv.reader(lines, strict=True)
    header = _next_record(reader)
    if header is None:
        return
    if isinstance(header, str):
        raise UserError(f"{path}: line 1: the header cannot be read: {header}")
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise UserError(f"{path}: line 1: the header names column {twice[0]!r} twice")
    while True:
        place = f"line {reader.line_num + 1}"
        record = _next_record(reader)
        if record is None:
            return
        if isinstance(record, str):
            yield Row(place, problem=f"invalid CSV ({record})")
        elif record and len(record) != len(header):
            problem = f"{len(record)} fields where the header has {len(header)} (a comma without quotes?)"
            yield Row(place, problem=problem)
        elif record:
            yield Row(place, dict(zip(header, record, strict=True)))


def _next_record(reader: Iterator[list[str]]) -> list[str] | str | None:
    """The next record, what is wrong with it, or None at the end."""
    # One setting for the whole process: given back after each record.
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(reader, None)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return "a quotation mark is opened here and never closed"
        return str(error)
    finally:
        csv.field_size_limit(limit)


def _read_parquet(path: Path) -> Iterator[Row]:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for values in _batch_rows(batch):
                    number += 1
                    place = f"row {number}"
                    yield Row(place, values) if isinstance(values, dict) else Row(place, problem=values)
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: damaged or not Parquet, after row {number}: {reason}") from error


def _batch_rows(batch: Any) -> Iterable[dict[str, Any] | str]:
    """Rows of one Arrow batch; a row whose text is not UTF-8 gives the reason instead."""
    for index in range(batch.num_rows):
        try:
            yield {name: batch.column(i)[index].as_py() for i, name in enumerate(batch.schema.names)}
        except UnicodeDecodeError as error:
            yield f"invalid UTF-8 ({error.reason} at byte {error.start + 1})"


_FORMATS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "jsonl": _read_jsonl,
    "csv": _read_csv,
    "parquet": _read_parquet,
}
_ENDINGS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet"}
