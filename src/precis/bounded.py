"""Files of others are read with a bound, and only where they are regular files: neither pipes nor devices nor sockets.

A pipe without a writer never answers, and a device may never end. Links are followed to what they name.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from precis.errors import UserError

MIB = 1 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: Path) -> BinaryIO:
    """The file, open for reading from its beginning; it never waits.

    Raises:
        UserError: there is no such file, it may not be read, or it is a folder, a pipe, a socket or a device.
    """
    found = look_at(path)
    if found is None:
        raise UserError(f"{path}: no such file")
    _refuse(path, found.st_mode)  # opening a device may already do something
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        _refuse(path, os.fstat(descriptor).st_mode)  # it may have changed in between
    except UserError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, *, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises:
        UserError: as `open_regular`, or the file is larger.
    """
    try:
        with open_regular(path) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > limit:
        raise UserError(f"{path}: is larger than {size(limit)}, the most that is read of such a file")
    return content


def look_at(path: Path) -> os.stat_result | None:
    """What is there, links followed; None where nothing is.

    Raises:
        UserError: the system does not say: a folder on the way may not be entered, links run in a circle.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL byte in the name
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; unlike `Path.is_dir`, what the system does not say is a `UserError`."""
    found = look_at(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def unreadable(path: Path, error: OSError) -> UserError:
    """What the system says of a file that it does not give, in one line."""
    return UserError(f"{path}: cannot be read: {error.strerror or error}")


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; unlike `Path.glob`, a folder that may not be read is not an empty one.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error


def size(count: int) -> str:
    """A number of bytes, in MiB where it has any."""
    return f"{count // MIB:,} MiB" if count >= MIB else f"{count:,} bytes"


def _refuse(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
    raise UserError(f"{path}: is {kind}, not a regular file; write its text to a file first")
