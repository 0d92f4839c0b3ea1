"""A row of any source, the values it may contain, and the words for names and values in messages."""

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from precis_text.errors import UserError

_TOLD = 20  # most messages kept about skipped rows
_SHOWN = 12  # columns named in a message
_LONG = 40  # characters of a name in a message


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its place ("line 3"), and either its values or the problem with it.

    A value has a JSON type, has another type of Parquet or the hub (date, decimal, bytes), or is `Unreadable`.
    """

    place: str
    values: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that cannot be read. Its row is unusable only if its column is needed."""

    why: str


@dataclass
class SkippedRows:
    """The number of skipped rows, and the problems of the first 20 of them.

    `unread` holds the first 20 names in a folder that were not read, and `unread_count` counts all of them.
    """

    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0
    unread: list[str] = field(default_factory=list)
    unread_count: int = 0

    def skip(self, message: str) -> None:
        """Count a skipped row, and keep the message if it is among the first 20."""
        self.skipped_count += 1
        if len(self.skipped) < _TOLD:
            self.skipped.append(message)

    def leave_unread(self, names: Iterable[str]) -> None:
        """Count names in a folder that are not read."""
        for name in names:
            self.unread_count += 1
            if len(self.unread) < _TOLD:
                self.unread.append(name)

    def told_unread(self) -> str:
        """Return a message that names unread files; empty if there are none."""
        if not self.unread_count:
            return ""
        named = ", ".join(self.unread[:3])
        more = f" and {self.unread_count - 3:,} more" if self.unread_count > 3 else ""
        return f"{pluralize(self.unread_count, 'file')} not read: {named}{more}"


def invalid_text(text: str) -> str:
    """Describe why a text is not valid Unicode; return an empty string if it is."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), error.start + 1
        if 0xDC80 <= code <= 0xDCFF:  # how errors="surrogateescape" marks a stray byte
            return f"invalid UTF-8 (byte 0x{code - 0xDC00:02X} at character {place}); {SAVE_AS_UTF8}"
        return f"invalid Unicode (lone surrogate U+{code:04X} at character {place})"
    return ""


def checked_documents(documents: Iterable[Any]) -> Iterator[Any]:
    """Yield documents, texts or passages; raise `UserError` with the number of one that is not valid Unicode."""
    for number, document in enumerate(documents, start=1):
        text = getattr(document, "text", document)
        if not isinstance(text, str):
            raise UserError(f"document {number} is of type {type(text).__name__}; give a str")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"document {number}: {invalid_text(text)}") from None
        yield document


SAVE_AS_UTF8 = "save the file as UTF-8, for instance with iconv -f windows-1252 -t utf-8 OLD > NEW"
SAVE_UTF16_AS_UTF8 = "save it as UTF-8, for instance with iconv -f utf-16 -t utf-8 OLD > NEW"
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # first bytes of a UTF-16 file


def kind_of(value: Any) -> str:
    """Return the name of a value's type for messages, for example "a list"."""
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return "a number"


def pluralize(count: int, what: str) -> str:
    """Format a number and its noun: "1 row", "2 rows"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def list_names(names: Iterable[str]) -> str:
    """Format column names for a message: the first 12, each truncated to 40 characters."""
    every = list(names)
    shown = [repr(name if len(name) <= _LONG else f"{name[:_LONG]}...") for name in every[:_SHOWN]]
    more = f" and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return (", ".join(shown) or "none") + more


def plain(value: Any) -> Any:
    """Convert a value to a JSON type: dates and decimals become text, other types the text of `repr`.

    Lone surrogates, which UTF-8 lacks, become JSON escapes. NaN and infinity become null.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {plain(str(name)): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, decimal.Decimal | datetime.timedelta) else plain(repr(value))


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "a string"), ((list, tuple), "a list"), (Mapping, "an object"), (bool, "a boolean"),
    (bytes, "bytes"), (type(None), "null"),
    ((datetime.date, datetime.time, datetime.timedelta), "a date or time"),
)  # fmt: skip
