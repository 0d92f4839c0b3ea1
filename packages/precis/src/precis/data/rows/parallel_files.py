"""Rows of two files with a text in each line: documents in one, their summaries in the other.

    train.source  train.target      as BART, PEGASUS and the old summarization scripts of transformers read
    train.src     train.tgt         as fairseq and OpenNMT read

Both files may be compressed. The summaries may be missing, since `precis summarize` needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from precis_text.bounded_io import stat_or_none
from precis_text.errors import UserError
from precis_text.row import SAVE_AS_UTF8, Row
from precis_text.text_lines import COMPRESSIONS, numbered_lines

SIDES = {".source": ".target", ".src": ".tgt"}
"""The extension of documents -> that of their summaries."""


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


def read_parallel(path: Path) -> Iterator[Row]:
    """Yield a row for each line of a file of documents and the line of its summary.

    Raises:
        UserError: one file has more lines, or cannot be read.
    """
    target = target_of(path)
    documents = numbered_lines(path)
    if target is None:
        for number, line in documents:
            yield _row(number, {"document": line})
        return
    for number, pair in enumerate(zip_longest(documents, numbered_lines(target)), start=1):
        document, summary = pair
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
