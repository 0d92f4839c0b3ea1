"""Journals: append-only files of JSON records, from which an interrupted command resumes.

    {"format": "precis-predictions-1", "made_by": {"model": ...}, "seal": "..."}
    {"id": "doc-1", "prediction": "...", "seal": "..."}

The first line records how the others are made: work resumes only with the same values. Each line ends with a seal, a
digest of its bytes and of the seal before it, so that a line that was changed, removed or inserted is found.

    event                      | result
    ---------------------------|---------------------------------------------------------------------------
    a kill                     | every appended line is there; a torn last one is removed on opening
    a power loss               | the same if the format is `durable`, which syncs each line to the disk
    a full disk                | `append` fails, and the next one removes what was written of the line
    a second process           | it is refused
    another program replaces,  | `append` stops; records whose file lost its name are copied to a new file
    deletes or changes the file| next to it
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, final

import xxhash

from precis.storage.atomic import appending, refuse_link, sync_directory, write_whole
from precis.storage.locks import is_file_of, locked_place
from precis.storage.settings_change import refuse_change
from precis_text.bounded_io import JsonError, open_regular, parse_json, size, stat_or_none
from precis_text.errors import RunError, UserError
from precis_text.text_lines import MAX_LINE, numbered_lines

_FORMAT, _MADE_BY, _SEAL = "format", "made_by", "seal"
_ENDING = re.compile(rb', "seal": "([0-9a-f]{32})"\}\n')
_ENDING_BYTES = 46


class LongRecordError(UserError):
    """The error of a record that is longer than the longest line that is read."""


@dataclass(frozen=True, kw_only=True)
class JournalFormat:
    """A kind of journal.

    Attributes:
        name: what the first line names, such as "precis-predictions-1".
        remedy: advice for a file that cannot be resumed, the end of every error.
        durable: whether each line is synced to the disk before `append` returns.
        wrapping: levels and values that a record adds around a value that was within the limits of JSON.
    """

    name: str
    remedy: str
    durable: bool = False
    wrapping: int = 0

    @property
    def beginning(self) -> bytes:
        """The bytes that every file of this format starts with."""
        return json.dumps({_FORMAT: self.name})[:-1].encode()


@final
class Journal(AbstractContextManager["Journal"]):
    """An open journal, the only writer of its file. It is not thread-safe.

    with Journal(path, FORMAT, made_by={"beams": 4}, replay=check) as journal:
        journal.append({"id": "doc-1"})

    Args:
        made_by: JSON-ready values that determine the records; they must equal those of an existing file.
        replay: called with the line number and each existing record, in order; it may raise UserError.
        place: the path that is locked; by default the file's.
        doing: the activity, for the error in a second process.

    Attributes:
        count: records in the file.

    Raises:
        UserError: the file is not a journal of this format, has changed, was started with other values, or is a link.
        HeldError: another process holds it.
    """

    def __init__(
        self,
        path: Path,
        kind: JournalFormat,
        *,
        made_by: Mapping[str, Any],
        replay: Callable[[int, dict[str, Any]], object] = lambda _number, _record: None,
        place: Path | None = None,
        doing: str = "writing",
    ) -> None:
        self.path, self._kind = path, kind
        self._made_by = json.loads(json.dumps(dict(made_by)))
        self._is_torn = False
        self._lost = ""  # the reason why nothing can be appended any more
        refuse_link(path)
        with ExitStack() as stack:
            stack.enter_context(locked_place(place or path, doing=doing))
            self._lines = self._resume(replay)
            self._file: BinaryIO = stack.enter_context(appending(path))
            self._start()
            self._stack = stack.pop_all()

    @property
    def count(self) -> int:
        """Records in the file."""
        return self._lines.count

    def _resume(self, replay: Callable[[int, dict[str, Any]], object]) -> "_Lines":
        lines = _Lines(self.path, self._kind)
        if stat_or_none(self.path) is None:
            return lines
        try:
            for number, record in lines.read():
                if number > 1:
                    replay(number, record)
                    continue
                refuse_change(self.path, record[_MADE_BY], self._made_by, remedy=self._kind.remedy)
        except UserError as error:
            raise _with_remedy(error, self._kind) from None
        return lines

    def _start(self) -> None:
        """Remove a torn last line, and write the first line of a new file."""
        found = os.fstat(self._file.fileno()).st_size
        if found != self._lines.end + self._lines.torn:
            raise UserError(f"{self.path}: another program is changing it; stop that, and repeat the command")
        os.ftruncate(self._file.fileno(), self._lines.end)
        if self._lines.end == 0:
            self._write({_FORMAT: self._kind.name, _MADE_BY: self._made_by})
            if self._kind.durable:
                sync_directory(self.path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record, which must not be empty or have an entry "seal".

        Raises:
            LongRecordError: the record is longer than the longest line that is read.
            OSError: it could not be written, for example because the disk is full; nothing was appended.
            RunError: another program has replaced, deleted or changed the file.
        """
        self.check()
        self._write(record)
        self._lines.count += 1

    def _write(self, record: Mapping[str, Any]) -> None:
        body = json.dumps(record, ensure_ascii=False).encode()[:-1]
        seal = _digest(self._lines.seal, body)
        line = body + f', "{_SEAL}": "{seal}"}}\n'.encode()
        if len(line) > MAX_LINE:
            raise LongRecordError(
                f"{self.path}: a record is larger than {size(MAX_LINE)}, the limit of a line"
            )
        if self._is_torn:
            os.ftruncate(self._file.fileno(), self._lines.end)
        self._is_torn = True
        write_whole(self.path, self._file, line)
        if self._kind.durable:
            os.fsync(self._file.fileno())
        self._is_torn = False
        self._lines.seal, self._lines.end = seal, self._lines.end + len(line)

    def check(self) -> None:
        """Check that the file still has its name and contains what this journal wrote.

        Raises:
            RunError: it does not. The records of a replaced or deleted file are copied to a new file, which the message
                names.
        """
        if not self._lost and not is_file_of(self.path, self._file.fileno()):
            self._lost = f"{self.path}: was replaced or deleted by another program; {self._keep()}"
        found = os.fstat(self._file.fileno()).st_size
        if not self._lost and found != self._lines.end and not (self._is_torn and found > self._lines.end):
            self._lost = (
                f"{self.path}: was changed by another program and has {found:,} bytes instead of "
                f"{self._lines.end:,}; {self._kind.remedy}"
            )
        if self._lost:
            raise RunError(self._lost)

    def _keep(self) -> str:
        """Copy the records to a new file next to the journal; return what to do with it."""
        kept = self.path.with_name(f"{self.path.name}.kept-{secrets.token_hex(4)}")
        try:
            with kept.open("xb") as copy:
                self._file.seek(0)
                shutil.copyfileobj(self._file, copy)
                copy.truncate(self._lines.end)
                copy.flush()
                os.fsync(copy.fileno())
        except OSError as error:
            kept.unlink(missing_ok=True)
            return f"its {self.count:,} records could not be kept ({error.strerror})"
        return f"its {self.count:,} records are in {kept.name}: rename that to {self.path.name} and repeat the command"

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records, each checked.

        Raises:
            RunError: another program has replaced, deleted or changed the file.
            UserError: a line has changed since it was written.
        """
        self.check()
        lines = _Lines(self.path, self._kind)
        try:
            yield from (record for number, record in lines.read() if number > 1)
        except UserError as error:
            raise _with_remedy(error, self._kind) from None
        if lines.seal != self._lines.seal:
            raise RunError(f"{self.path}: was changed by another program; {self._kind.remedy}")

    def remove(self) -> None:
        """Close the journal and delete its file.

        Raises:
            RunError: another program has replaced, deleted or changed the file; it is not deleted.
        """
        self.check()
        self.path.unlink()
        sync_directory(self.path.parent)
        self.close()

    def close(self) -> None:
        """Close the file and let other processes write it."""
        self._stack.close()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and not self._file.closed:
                self.check()
        finally:
            self.close()


def read_journal(
    path: Path, kind: JournalFormat, *, made_by: Mapping[str, Any] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and record of a journal, which another process may be writing; omit a torn last line.

    Args:
        made_by: JSON values that must equal those of the first line; if None, they are not checked.

    Raises:
        UserError: it is a link or not a journal of this format, was started with other values, or a line has changed;
            the message names the line.
    """
    refuse_link(path)
    for number, record in _Lines(path, kind).read():
        if number > 1:
            yield number, record
        elif made_by is not None:
            refuse_change(path, record[_MADE_BY], made_by, remedy=kind.remedy)


def is_journal(path: Path, kind: JournalFormat) -> bool:
    """Return whether a file starts as a journal of this format does; one that a kill left empty or torn counts."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return kind.beginning.startswith(file.read(len(kind.beginning)))


class _Lines:
    """The whole lines of a journal.

    Attributes:
        count: records read so far, without the first line.
        seal: that of the last line; the next one continues it.
        end: position behind the last whole line, in bytes.
        torn: bytes after it.
    """

    def __init__(self, path: Path, kind: JournalFormat) -> None:
        self._path, self._kind = path, kind
        self.count, self.seal, self.end, self.torn = 0, "", 0, 0

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield line number and record, without its seal; the first one is the header."""
        beginning = self._kind.beginning
        with open_regular(self._path) as file:
            if not beginning.startswith(file.read(len(beginning))):
                raise UserError(f"{self._path}, line 1: is not a {self._kind.name} file")
        for number, line in numbered_lines(self._path):
            if not line.endswith(b"\n"):
                self.torn = len(line)
                return
            record = self._checked(number, line)
            self.count, self.end = number - 1, self.end + len(line)
            yield number, record

    def _checked(self, number: int, line: bytes) -> dict[str, Any]:
        where = f"{self._path}, line {number}"
        try:
            record = parse_json(line, wrapping=self._kind.wrapping)
        except JsonError as error:
            raise UserError(f"{where}: not JSON ({error})") from None
        if not isinstance(record, dict):
            raise UserError(f"{where}: not a JSON object")
        if number == 1 and not isinstance(record.get(_MADE_BY), dict):
            raise UserError(f"{where}: is not a {self._kind.name} file")
        found = _ENDING.fullmatch(line[-_ENDING_BYTES:])
        seal = _digest(self.seal, line[:-_ENDING_BYTES])
        if found is None or found[1].decode() != seal:
            raise UserError(f"{where}: has changed since it was written, or an earlier line is missing")
        self.seal = seal
        del record[_SEAL]
        return record


def _digest(before: str, body: bytes) -> str:
    """Return the digest of a line without its ending, and of all lines before it."""
    digest = xxhash.xxh3_128(before.encode())
    digest.update(body)
    return digest.hexdigest()


def _with_remedy(error: UserError, kind: JournalFormat) -> UserError:
    text = str(error)
    return type(error)(text if text.endswith(kind.remedy) else f"{text}; {kind.remedy}")
