"""Rows of Parquet files. A value is converted on demand, so an unreadable column that nobody needs stops nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from precis.data.rows.lines import MAX_LINE, refuse_growth
from precis.data.rows.row import SAVE_AS_UTF8, Row, Unreadable, named
from precis.errors import UserError
from precis.untrusted import MIB, open_regular, size

_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 16 * MIB  # decompressed, of one batch of rows
_MAX_FOOTER = 16 * MIB
_MAX_COLUMNS = 10_000
_FREE_ROWS = 50_000


def read_parquet(path: Path) -> Iterator[Row]:
    """The rows of a Parquet file.

    Raises:
        UserError: the file cannot be read, is damaged, names a column twice, or grows too much when it is decompressed.
    """
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
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path}: damaged or not Parquet, after row {number}: {reason}") from error


def _look_at_footer(path: Path, stream: BinaryIO) -> int:
    """Return the file's size and refuse a large footer, which can swell a hundredfold when it is parsed."""
    total = stream.seek(0, 2)
    if total >= 12:
        stream.seek(-8, 2)
        length = int.from_bytes(stream.read(4), "little")
        if stream.read(4) == b"PAR1" and length > _MAX_FOOTER:
            raise UserError(f"{path}: its footer is larger than {size(_MAX_FOOTER)}, the most that is read")
    stream.seek(0)
    return total


def _batches(path: Path, stream: BinaryIO, *, total: int) -> Iterator[Any]:
    import pyarrow.parquet as parquet

    # Columns are read piece by piece (buffer_size), not a whole row group at once.
    with parquet.ParquetFile(stream, buffer_size=MIB, pre_buffer=False) as file:
        columns = file.schema_arrow.names
        twice = [name for name, times in Counter(columns).items() if times > 1]
        if twice:
            raise UserError(f"{path}: names column {named(twice[:1])} twice")
        if len(columns) > _MAX_COLUMNS:
            raise UserError(f"{path}: has {len(columns):,} columns; at most {_MAX_COLUMNS:,} are read")
        if file.metadata.num_rows > max(_FREE_ROWS, total):
            told = f"{file.metadata.num_rows:,} rows in {size(total)}"
            raise UserError(f"{path}: has {told}, more than one for each byte: this is no text")
        for group in range(file.num_row_groups):
            rows = _rows_at_once(path, file.metadata.row_group(group), group, total=total)
            yield from file.iter_batches(batch_size=rows, row_groups=[group], use_threads=False)


def _rows_at_once(path: Path, group: Any, number: int, *, total: int) -> int:
    """Rows in a batch of bounded size. The sizes that a row group states must be possible.

    Single columns are not checked: pyarrow aborts the process if the footer's record of a column is damaged.
    """
    refuse_growth(path, read=total, given=group.total_byte_size, place=f"row group {number + 1}")
    average = group.total_byte_size // max(1, group.num_rows)
    if average > MAX_LINE:
        most = f"larger than {size(MAX_LINE)}, the most that is read"
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
        except Exception as error:  # dates beyond the year 9999, time zones nobody knows, ...
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            return Unreadable(f"holds a value that cannot be read ({reason})")

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.schema.names)

    def __len__(self) -> int:
        return len(self._batch.schema.names)
