"""Reads documents to summarize from files, folders, rows and standard input, each with its name and place."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from precis.data.pairs.pair import BadRowError, Columns, MissingColumnError, pair_of
from precis.data.rows.row_files import known_endings, read_rows
from precis.messages import Notify, silent
from precis_text.bounded_io import ADDRESS, is_folder, names_in, read_bounded, size, stat_or_none, suggest
from precis_text.documents.file_kinds import ENDINGS, MANY
from precis_text.documents.passages import NOWHERE, Passages
from precis_text.documents.reader import MOST_BYTES, read_contents
from precis_text.errors import RunError, UserError
from precis_text.row import Row, SkippedRows, plain, pluralize
from precis_text.text_files import document_files, remedy_for, unread_names
from precis_text.words import length_in_words

STANDARD_INPUT = "-"
CONTINUE = "--keep-going continues with the others"
_TABLES = (".csv", ".tsv")
_SAMPLE, _SENTENCE = 50, 8  # rows that show what a table holds; words of a cell that is a text


@dataclass(frozen=True)
class Document:
    """A text and its name.

    Attributes:
        name: the file, or file and row.
        text: empty if there is a problem.
        id: the id of the row, if it has one.
        row: the other columns of the row.
        problem: why it cannot be read.
        passages: pages, headings and times, if the format has any, and the parts of the file that were skipped.
    """

    name: str
    text: str
    id: str | None = None
    row: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    passages: Passages = NOWHERE


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading documents.

    Attributes:
        column: the column with the document; if None, "document".
        units: the column that lists the document's units.
        recursive: read nested folders too.
        skip_bad: skip and count unusable rows.
        keep_going: yield a `Document` with a problem for unreadable input, and continue; in a folder always so.
        whole_tables: read each .csv and .tsv file as one document.
        about: whether the user asks a question, which one table answers as a whole.
    """

    column: str | None = None
    units: str | None = None
    recursive: bool = False
    skip_bad: bool = False
    keep_going: bool = False
    whole_tables: bool = False
    about: bool = False

    @property
    def columns(self) -> Columns:
        return replace(Columns(document=self.column) if self.column else Columns(), units=self.units)


def read_documents(
    files: Sequence[str], how: Reading = Reading(), *, notify: Notify = silent
) -> Iterator[Document]:
    """Yield the documents of `files`, one by one.

    An unreadable or empty file of a folder is yielded with its problem, and the others follow.
    A file of rows (see `precis.data.rows.row_files`) has a document per row, a folder one per text and per file of
    `precis_text.documents.file_kinds`. A mailbox and a digest have one per mail. Any other file is one document; "-" is
    the standard input. A missing file is reported before any file is read.

    Args:
        notify: receives a message about skipped input.

    Raises:
        UserError: a file is missing, cannot be opened or contains no text, or a row is unusable (see `Reading`).
    """
    for file in files:
        if file != STANDARD_INPUT and stat_or_none(Path(file)) is None:
            raise UserError(f"{file}: {_missing(file)}")
    return (document for file in files for document in _read(file, how, notify, is_alone=len(files) == 1))


def _missing(file: str) -> str:
    """Say what to do about a file that does not exist."""
    if ADDRESS.match(file):
        run = f"curl -sL {shlex.quote(file)} | precis summarize -"
        return f"is an address, and precis reads files only; download it first, or run: {run}"
    return f"no such file{suggest(file)}"


def holds_many(file: str, how: Reading = Reading()) -> bool:
    """Return whether a file may contain several documents: a folder, a mailbox, or rows."""
    if file == STANDARD_INPUT:
        return False
    return os.path.isdir(file) or _has_rows(file, how) or file.lower().endswith(MANY)  # noqa: PTH112


def _has_rows(file: str, how: Reading, notify: Notify = silent) -> bool:
    is_table, note = _table(file, how)
    if note:
        notify(note)
    return file.lower().endswith(tuple(known_endings())) and not is_table


def _table(file: str, how: Reading) -> tuple[bool, str]:
    """Return whether a file is one table instead of a document per row, and a note if no option says so."""
    if not file.lower().endswith(_TABLES):
        return False, ""
    if how.whole_tables or how.column or how.units:
        return how.whole_tables, ""
    try:
        rows = [row.values for row in islice(read_rows(Path(file)), _SAMPLE) if not row.problem]
    except UserError:  # reading the rows reports it
        rows = []
    names = rows[0] if rows else {}
    texts, column = {name for name in names if _is_text([row[name] for row in rows])}, how.columns.document
    if not names or column in (texts if how.about else names):
        read = f"each row is read as a document (column {column!r}); --whole-tables reads one table"
        return False, f"{file}: {read}" if names and how.about else ""
    if texts and not how.about:
        return False, ""  # perhaps with the document under another name
    why = "for --about" if how.about else "as no column holds sentences"
    return True, f"{file}: read as one table, {why}; --document-column NAME reads each row as a document"


def _is_text(cells: Sequence[str]) -> bool:
    """Return whether half of the cells of a column that are not empty have the length of a sentence."""
    lengths = [length_in_words(cell) for cell in cells if cell.strip()]
    return bool(lengths) and 2 * sum(length >= _SENTENCE for length in lengths) >= len(lengths)


def _read(file: str, how: Reading, notify: Notify, *, is_alone: bool) -> Iterator[Document]:
    if file == STANDARD_INPUT:
        yield from _documents("standard input", _standard_input, how, is_alone=is_alone)
    elif is_folder(Path(file)):
        yield from _read_folder(Path(file), how, notify)
    elif not _has_rows(file, how, notify):
        yield from _documents(file, lambda: _read_file(Path(file)), how, is_alone=is_alone)
    else:
        yield from _readable_rows(Path(file), how, notify, is_alone=is_alone)


def _documents(
    name: str, read: Callable[[], list[Passages]], how: Reading, *, is_alone: bool
) -> Iterator[Document]:
    """Yield the documents of a file, each with its title if there are several.

    Raises:
        UserError: it cannot be read, and the run does not keep going; the advice depends on `is_alone`.
    """
    try:
        found = read()
    except UserError as error:
        if not how.keep_going and is_alone:
            raise
        if not how.keep_going:
            raise UserError(f"{error}; {CONTINUE}") from None
        yield Document(name, "", problem=str(error).removeprefix(f"{name}: "))
        return
    for passages in found:
        title = f": {passages.title}" if passages.title else ""
        yield Document(f"{name}{title}", passages.text, passages=passages)


def _readable_rows(path: Path, how: Reading, notify: Notify, *, is_alone: bool) -> Iterator[Document]:
    """Yield the documents of a file of rows; if it is unreadable, a run that keeps going ends only without others."""
    try:
        yield from _read_rows(path, how, notify)
    except UserError as error:
        if not how.keep_going or is_alone:
            raise
        yield Document(str(path), "", problem=str(error).removeprefix(f"{path}: "))


def _read_rows(path: Path, how: Reading, notify: Notify) -> Iterator[Document]:
    columns, skipped, used = how.columns, SkippedRows(), 0
    is_empty, is_table = True, path.name.lower().endswith(_TABLES)
    whole = "; --whole-tables reads the file as one document" if is_table else ""
    for row in read_rows(path):
        is_empty = False
        place = f"{path}: {row.place}"
        try:
            pair = pair_of(row, columns, need_summary=False)
        except BadRowError as error:
            if isinstance(error, MissingColumnError) and not used:
                raise UserError(f"{place}: {error}{whole}") from None
            if how.skip_bad:
                skipped.skip(f"{place}: {error}")
            elif how.keep_going:
                yield Document(place, "", problem=str(error), row=_other_columns(row, columns))
            else:
                remedy = "correct the row, skip such rows with --skip-bad, or continue with --keep-going"
                raise UserError(f"{place}: {error}; {remedy}{whole}") from None
            continue
        used += 1
        name = f"{path}: {pair.id or row.place}"
        yield Document(name, pair.document, id=pair.id or None, row=_other_columns(row, columns))
    if is_empty:
        raise UserError(f"{path}: is empty, it contains no rows")
    if skipped.skipped_count:
        notify(f"{path}: {pluralize(skipped.skipped_count, 'row')} skipped (first: {skipped.skipped[0]})")


def _other_columns(row: Row, columns: Columns) -> dict[str, Any]:
    ours = (columns.document, columns.id)
    return {plain(name): plain(value) for name, value in row.values.items() if name not in ours}


def _read_folder(folder: Path, how: Reading, notify: Notify) -> Iterator[Document]:
    texts, unread = documents_in(folder, recursive=how.recursive)
    left = told_unread(unread)
    if not texts:
        inside = "" if how.recursive else "; --recursive reads nested folders, name files of rows one by one"
        raise UserError(f"{folder}: no document in this folder{left and f' ({left})'}{inside}")
    if left:
        notify(f"{folder}: {left}")
    for path in texts:
        yield from _of_folder(path, how)


def told_unread(names: Sequence[str]) -> str:
    """Return a message that names unread files, with the remedy for one of them; "" if there are none."""
    left = SkippedRows()
    left.leave_unread(names)
    return f"{left.told_unread()}{remedy_for(names)}"


def _of_folder(path: Path, how: Reading) -> Iterator[Document]:
    """Yield the documents of one file of a folder; an unreadable or empty one has a problem, and the others follow."""
    going_on = replace(how, keep_going=True)
    for document in _documents(str(path), lambda: _read_file(path), going_on, is_alone=False):
        is_empty = not document.problem and not document.text.strip()
        yield replace(document, problem="the document is empty") if is_empty else document


def documents_in(folder: Path, *, recursive: bool) -> tuple[list[Path], list[str]]:
    """Return the texts of a folder in order, and the names of other files. Links to folders are not followed."""
    inner = [
        folder / name
        for name in (names_in(folder) if recursive else ())
        if not name.startswith(".") and not (folder / name).is_symlink() and is_folder(folder / name)
    ]
    others = [folder / name for name in names_in(folder) if name.lower().endswith(ENDINGS) and name[0] != "."]
    texts = sorted([*document_files(folder), *others])
    unread = unread_names(folder, [*texts, *inner])
    for place in inner:
        more, left = documents_in(place, recursive=True)
        texts += more
        unread += [f"{place.name}/{name}" for name in left]
    return texts, unread


def _read_file(path: Path) -> list[Passages]:
    return _passages(read_bounded(path, limit=MOST_BYTES), str(path), ending=path.name)


def _standard_input() -> list[Passages]:
    if sys.stdin is None:
        raise UserError("standard input is closed; name a file, or pipe a document in")
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UserError(f"standard input: is larger than {size(MOST_BYTES)}, the limit for one document")
    return _passages(content, "standard input")


def _passages(content: bytes, name: str, *, ending: str = "") -> list[Passages]:
    try:
        return read_contents(content, name=ending)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None


def has_more(documents: Iterator[Document]) -> bool:
    """Check whether there is another document, which may be one that cannot be read."""
    try:
        return next(documents, None) is not None
    except (UserError, RunError):
        return True


def with_first(documents: Iterator[Document], *, keep_going: bool = True) -> Iterator[Document]:
    """Read the first document now, to find a wrong file or column before loading a model; return all documents.

    Args:
        keep_going: if False, refuse a first document that is empty.

    Raises:
        UserError: the first document cannot be read, or is empty.
    """
    first = list(islice(documents, 1))
    if not keep_going and first and not first[0].problem and not first[0].text.strip():
        advice = f"; {CONTINUE}" if has_more(documents) else ""
        raise UserError(f"{first[0].name}: the document is empty{advice}")
    return chain(first, documents)
