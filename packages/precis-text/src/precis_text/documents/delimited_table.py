"""A table of values (.csv, .tsv) read as one document: each row as a line of cells between bars."""

from __future__ import annotations

import csv
import io
import re

from precis_text.documents.character_sets import decode
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_SEPARATOR = re.compile(r"\Asep=(.)[^\n]*\n", re.IGNORECASE)  # Excel's first line
_MOST_FIELD = 8 << 20  # bytes


def read(content: bytes) -> Passages:
    """Read a table; the character that parts its columns is the one that is most even in the first lines.

    Raises:
        UserError: a quotation mark is not closed, or a field is too large.
    """
    writer = Writer()
    text = decode(content, "", writer).replace("\r\n", "\n").replace("\r", "\n")
    said = _SEPARATOR.match(text)
    text = text[said.end() :] if said else text
    csv.field_size_limit(_MOST_FIELD)
    try:
        rows = [
            *csv.reader(
                io.StringIO(text, newline=""),
                delimiter=said.group(1) if said else _delimiter(text),
                strict=True,
            )
        ]
    except csv.Error as error:
        raise UserError(f"is damaged: {error}; save it again, or turn it into plain text") from None
    lines = (" | ".join(" ".join(cell.split()) for cell in row).rstrip(" |") for row in rows)
    writer.add("\n".join(line for line in lines if line.strip()))
    return writer.finished()


def _delimiter(text: str) -> str:
    lines = [line for line in text[:20_000].split("\n")[:20] if line.strip()]
    counts = {mark: min((line.count(mark) for line in lines), default=0) for mark in ("\t", ";", ",", "|")}
    return max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else ","
