"""Convert a row of any source to a pair of document and summary, by a mapping of its columns."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from precis_text.bounded_io import JsonError, parse_json
from precis_text.config import Settings
from precis_text.control_characters import mark_units
from precis_text.errors import UserError
from precis_text.row import Row, Unreadable, invalid_text, kind_of, list_names

# Column names of well-known data sets. Messages suggest them; they are never read by default.
_USUAL = {
    "document": ["article", "dialogue", "text", "source", "body", "content", "input", "report", "transcript"],
    "summary": [
        "highlights", "abstract", "summary", "headline", "target", "title", "label", "output", "tldr",
    ],
    "units": ["units"],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Columns(Settings):
    """The columns of a source, by role.

    Attributes:
        document: a text, or a list of texts if `join` is given.
        summary: a text or a list of texts. The first of a list is the summary and all are references; if `summary_join`
            is given, the list holds the sentences of the summary.
        references: a list of texts, all references of the row; ignored if the source lacks this column.
        id: name of the row; ignored if the source lacks this column.
        speakers: a list with the speaker of each part of a document that is a list; "NAME: " is put before the parts.
            If None, speakers are not named.
        repeated: rows of one document follow each other, each with another reference. Outside of train they are one
            pair (`merge_repeated`).
        summary_join: separator between the parts of a summary that is a list; if None, the list holds references.
        text: the field with the text of a summary or reference that is an object; if None, objects are refused.
        join: separator between the parts of a document that is a list; if None, lists are refused.
        within: separator between the entries of a part that is a list too, such as a triple.
        units: the document's annotated units in order, a list of texts, or of lists that start with one. They are
            marked in the document (`precis_text.control_characters`). If None, the document is not marked.
    """

    document: str = "document"
    summary: str = "summary"
    references: str | None = "summaries"
    id: str | None = "id"
    join: str | None = None
    within: str = " | "
    units: str | None = None
    speakers: str | None = None
    repeated: bool = False
    summary_join: str | None = None
    text: str | None = None

    def fit(self, row: Row) -> bool:
        """Check whether the row has the columns of document and summary, or of document and references."""
        return self.document in row.values and not {self.summary, self.references}.isdisjoint(row.values)


@dataclass(frozen=True, slots=True)
class Pair:
    """One document with its summary.

    Examples:
        >>> Pair("Ann sings in the hall. Bob listens to her.", "Ann sings.").all_references
        ('Ann sings.',)
    """

    document: str
    summary: str
    references: tuple[str, ...] = ()
    id: str = ""

    @property
    def all_references(self) -> tuple[str, ...]:
        """The references if the row has several, otherwise only the summary."""
        return self.references or (self.summary,)


class BadRowError(ValueError):
    """The error for a row that cannot be used; its message states the reason."""


class MissingColumnError(BadRowError):
    """The error for a row that lacks a required column."""


class EmptyDocumentError(BadRowError):
    """The error for a document that is empty or white space."""


def pair_of(row: Row, columns: Columns, *, need_summary: bool) -> Pair:
    """Convert a row to a pair.

    The summary comes from the summary column, or is the first reference if that column is missing or empty.

    Raises:
        BadRowError: the row could not be read, a column is missing or of the wrong type, or a text is empty.
    """
    document = document_of(row, columns)
    written = _written(_summaries(row, columns), columns.summary)
    references = _references(row, columns) or (written if len(written) > 1 else ())
    summary = next(iter((*written, *references)), "")
    if need_summary and not summary:
        if columns.references not in row.values:
            _value(row, columns.summary, "summary")
        raise BadRowError(f"the summary (column {columns.summary!r}) is empty")
    return Pair(document, summary, references, _id(row, columns))


def _summaries(row: Row, columns: Columns) -> list[Any]:
    value, between = row.values.get(columns.summary), columns.summary_join
    if not isinstance(value, list):
        return [value]
    texts = [_named_text(each, columns.text) for each in value]
    return texts if between is None else [between.join(_texts(texts, columns.summary))]


def _named_text(value: Any, name: str | None) -> Any:
    """Return the text in the field `name` of an object, or the value unchanged."""
    return value[name] if isinstance(value, Mapping) and name is not None and name in value else value


def document_of(row: Row, columns: Columns) -> str:
    """Return the document of a row, with its units marked.

    Raises:
        BadRowError: the row could not be read, a column is missing or of the wrong type, or the document is empty.
    """
    if row.problem:
        raise BadRowError(row.problem)
    document = _marked(_document(row, columns), row, columns)
    if not document.strip():
        raise EmptyDocumentError(f"the document (column {columns.document!r}) is empty")
    return document


def _id(row: Row, columns: Columns) -> str:
    value = row.values.get(columns.id) if columns.id else None
    if value is None:
        return ""
    if isinstance(value, str | Unreadable):
        return _text(value, str(columns.id))
    if isinstance(value, list | tuple | Mapping | bytes):
        raise BadRowError(f"column {columns.id!r} must hold a name or a number, not {kind_of(value)}")
    return str(value)


def _document(row: Row, columns: Columns) -> str:
    column, between = columns.document, columns.join
    value = _value(row, column, "document")
    if not isinstance(value, list) or between is None:
        return _text(value, column)
    joined = [columns.within.join(_texts(part, column)) if isinstance(part, list) else part for part in value]
    parts = _texts(joined, column)
    return between.join(parts if columns.speakers is None else _spoken(parts, row, columns.speakers))


def _spoken(parts: Sequence[str], row: Row, column: str) -> list[str]:
    """Put the speaker's name before each part; a blank name is left out."""
    names = row.values.get(column)
    if not isinstance(names, list) or len(names) != len(parts):
        raise BadRowError(
            f"column {column!r} must hold a list of speakers, one for each of {len(parts):,} parts"
        )
    spoken = zip(_texts(names, column), parts, strict=True)
    return [f"{name.strip()}: {part}" if name.strip() else part for name, part in spoken]


def _marked(document: str, row: Row, columns: Columns) -> str:
    if columns.units is None:
        return document
    value = _value(row, columns.units, "units")
    if not isinstance(value, list) or not value:
        raise BadRowError(f"column {columns.units!r} must hold a list of the document's units")
    units = _texts([unit[0] if isinstance(unit, list) and unit else unit for unit in value], columns.units)
    try:
        return mark_units(document, units)
    except UserError as error:
        raise BadRowError(f"column {columns.units!r}: {error}") from None


def _references(row: Row, columns: Columns) -> tuple[str, ...]:
    """Return all references that are not blank; a CSV field holds them as a JSON array."""
    value = row.values.get(columns.references) if columns.references else None
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except JsonError as error:
            raise BadRowError(
                f"column {columns.references!r} must hold a list of texts (JSON: {error})"
            ) from None
    if isinstance(value, Unreadable):
        _text(value, str(columns.references))
    if not isinstance(value, list):
        raise BadRowError(f"column {columns.references!r} must hold a list of texts")
    return _written(value, str(columns.references))


def _value(row: Row, column: str, role: str) -> Any:
    if column in row.values:
        return row.values[column]
    option = f"--{role}-column"
    near = _likely_column(column, role, row.values)
    said = f"did you mean {near!r}? Use {option} {shlex.quote(near)}"
    hint = said if near else f"name one with {option} NAME"
    if any(len(name.split()) > 9 for name in row.values):  # a text, so that the file has no names
        hint = "the first row must name the columns, as in document,summary"
    raise MissingColumnError(
        f"no column {column!r} for the {role}; the columns are {list_names(row.values)}; {hint}"
    )


def _likely_column(column: str, role: str, columns: Iterable[str]) -> str:
    """Return the column that is probably meant: the same name in other case, or a well-known one; "" if none is."""
    plain = {name.strip().casefold(): name for name in reversed(list(columns))}
    wanted = (column.strip().casefold(), *_USUAL.get(role, ()))
    return next((plain[name] for name in wanted if name in plain), "")


def _texts(values: list[Any], column: str) -> tuple[str, ...]:
    return tuple(_text(value, column) for value in values)


def _written(values: list[Any], column: str) -> tuple[str, ...]:
    """Return the texts that are not blank: no summary can score against a blank reference."""
    return tuple(text for text in _texts(values, column) if text.strip())


def _text(value: Any, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, Unreadable):
        raise BadRowError(f"column {column!r}: {value.why}")
    if not isinstance(value, str):
        raise BadRowError(f"column {column!r} must hold text, not {kind_of(value)}")
    problem = invalid_text(value)
    if problem:
        raise BadRowError(f"column {column!r}: {problem}")
    return value
