"""The documents of a batch as a Ray data source: every file that `precis summarize` reads, in small blocks.

An id is a digest of a document's file, its number in it and its text. A failure to read is a row too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as arrow
import xxhash
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from precis.data.rows.row_files import known_endings
from precis.messages import Notify
from precis.phases.use.input_documents import (
    STANDARD_INPUT,
    Document,
    Reading,
    documents_in,
    holds_many,
    read_documents,
    told_unread,
)
from precis_text.bounded_io import is_folder, stat_or_none, suggest
from precis_text.documents.passages import Passages
from precis_text.errors import UserError

_FILES = 16  # small files that one task reads
_ROWS = 32  # documents per block
SCHEMA = arrow.schema([(name, arrow.string()) for name in ("id", "digest", "document")])


def files_of(places: Sequence[str], *, recursive: bool, notify: Notify) -> list[str]:
    """Return the absolute paths of the files at these places; a folder gives its documents and row files.

    Raises:
        UserError: a place is missing, contains no readable file, or is named twice.
    """
    found: list[str] = []
    for place in places:
        path = Path(place).absolute()
        if place == STANDARD_INPUT or stat_or_none(path) is None:
            raise UserError(f"{place} does not exist; a batch reads files and folders{suggest(place)}")
        if not is_folder(path):
            found.append(str(path))
            continue
        texts, unread = documents_in(path, recursive=recursive)
        rows = [path / name for name in unread if name.lower().endswith(tuple(known_endings()))]
        if not texts and not rows:
            raise UserError(f"{place}: the folder contains no document and no row file; name another place")
        if left := told_unread([name for name in unread if path / name not in rows]):
            notify(f"{place}: {left}")
        found += map(str, sorted([*texts, *rows]))
    twice = (
        next((name for name in found if found.count(name) > 1), None)
        if len(set(found)) < len(found)
        else None
    )
    if twice is not None:
        raise UserError(f"{twice} is named twice; name each file once")
    return found


def documents_of(file: str, how: Reading) -> Iterator[tuple[str, Document]]:
    """Yield the documents of a file, each with its id; an error of the file itself ends them as a last one."""
    number = 0
    try:
        for document in read_documents([file], replace(how, keep_going=True)):
            number += 1
            yield _id(file, number, document.text or document.problem), document
    except UserError as error:
        problem = str(error).removeprefix(f"{file}: ")
        yield _id(file, number + 1, problem), Document(file, "", problem=problem)


def _id(file: str, number: int, text: str) -> str:
    return xxhash.xxh3_128(json.dumps([file, number, text]).encode()).hexdigest()


class DocumentSource(Datasource):
    """The data source that Ray reads, of the files that `files_of` returns."""

    def __init__(self, files: Sequence[str], how: Reading) -> None:
        super().__init__()
        self._files, self._how = files, how

    def estimate_inmemory_data_size(self) -> int | None:
        """Return None: the size is unknown before the files are read."""
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Return one task per row file, and one per `_FILES` other files."""
        rows = [[file] for file in self._files if holds_many(file, self._how)]
        others = [file for file in self._files if not holds_many(file, self._how)]
        groups = rows + [others[start : start + _FILES] for start in range(0, len(others), _FILES)]
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(_blocks, group, self._how), unknown, SCHEMA) for group in groups]


def _blocks(files: Sequence[str], how: Reading) -> Iterator[arrow.Table]:
    rows: list[dict[str, str]] = []
    for file in files:
        for name, document in documents_of(file, how):
            digest = xxhash.xxh3_128(document.text.encode()).hexdigest() if document.text else ""
            rows.append({"id": name, "digest": digest, "document": packed(document)})
            if len(rows) == _ROWS:
                yield arrow.Table.from_pylist(rows, SCHEMA)
                rows = []
    if rows:
        yield arrow.Table.from_pylist(rows, SCHEMA)


def packed(document: Document) -> str:
    """Return a document as one text; `unpacked` reverses it."""
    return json.dumps(
        {**asdict(replace(document, passages=Passages())), "passages": document.passages.to_dict()}
    )


def unpacked(text: str) -> Document:
    """Return the document that `packed` took."""
    fields = json.loads(text)
    return Document(**{**fields, "passages": Passages.from_dict(fields["passages"])})
