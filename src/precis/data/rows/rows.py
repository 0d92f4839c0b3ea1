"""Raw rows of JSON-lines, CSV, TSV and Parquet files, one at a time, each naming its place in the file.

A row that cannot be read does not end the stream: it comes as a `Row` with a `problem`, so that the caller
decides whether to stop or to skip it. What cannot be passed over (a damaged archive, a file without a
readable header, a line longer than memory should hold) raises `UserError`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from precis.data.rows.csv import read_csv, read_tsv
from precis.data.rows.lines import COMPRESSIONS, numbered_lines
from precis.data.rows.parquet import read_parquet
from precis.data.rows.row import SAVE_AS_UTF8, Row, SkippedRows, Unreadable, counted, invalid_text, kind_of
from precis.errors import UserError
from precis.untrusted import JsonError, is_folder, look_at, parse_json

__all__ = [
    "Row",
    "SkippedRows",
    "Unreadable",
    "counted",
    "invalid_text",
    "known_endings",
    "read_rows",
]


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


_FORMATS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "jsonl": _read_jsonl,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
}
_ENDINGS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
