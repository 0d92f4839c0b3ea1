"""Lets one process at a time write to a folder, and marks the folder as ours."""

import errno
import os
import re
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from precis.errors import UserError

LOCK_FILE = "lock"
_OURS = re.compile(rb"[0-9]{1,10}( [^\s]{1,255})?\n")  # process and host; an earlier version wrote no host
_HELD: set[Path] = set()  # by this process
_TAKEN = (errno.EACCES, errno.EAGAIN)  # POSIX leaves to the system which of the two


class HeldError(UserError):
    """Another process holds the folder."""


@contextmanager
def locked(folder: Path, *, doing: str = "training in") -> Iterator[None]:
    """Hold a folder while the body runs. The system releases it when the process ends, however it ends.

    If this process holds it already, the outer hold goes on to its own end. The file `lock` stays and marks the folder
    as ours (`is_marked`).

    Args:
        doing: what the holder does, for the error that another process gets.

    Raises:
        HeldError: if another process holds it.
        UserError: if the file system knows no locks, or something else has the name `lock`.
    """
    with _held(folder.resolve() / LOCK_FILE, folder, doing):
        yield


@contextmanager
def locked_place(place: Path, *, doing: str) -> Iterator[None]:
    """Hold a path that is about to be written, by a file `PLACE.lock` beside it that is removed afterwards.

    Raises:
        HeldError: if another process holds it.
        UserError: if the file system knows no locks, or something else has that name.
    """
    target = place.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    file = target.parent.resolve() / f"{target.name}.lock"
    is_outer = file not in _HELD
    with _held(file, place, doing):
        try:
            yield
        finally:
            if is_outer:
                with suppress(OSError):  # a next holder would take it over
                    file.unlink()


def is_marked(folder: Path) -> bool:
    """Whether a folder has been held by `locked`, in this process or an earlier one."""
    file = folder / LOCK_FILE
    try:
        return stat.S_ISREG(file.lstat().st_mode) and bool(_OURS.fullmatch(file.read_bytes()[:300]))
    except OSError:
        return False


@contextmanager
def _held(file: Path, place: Path, doing: str) -> Iterator[None]:
    if file in _HELD:  # a second lock would end the first when its file is closed
        yield
        return
    descriptor = _acquire(file, place, doing)
    _HELD.add(file)
    try:
        yield
    finally:
        _HELD.discard(file)
        os.close(descriptor)


def _acquire(file: Path, place: Path, doing: str) -> int:
    """Open and lock the file, and write this process's number into it."""
    while True:
        descriptor = _open(file)
        try:
            found = os.read(descriptor, 300)
            _lock(descriptor, place, doing, holder=found)
            if found and not _OURS.fullmatch(found):
                raise UserError(
                    f"{file}: was not written by precis and is in the way of its lock; move it away"
                )
            if _is_still(file, descriptor):  # the last holder may have removed it after we had opened it
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(file: Path) -> int:
    """Open a regular file of that very name, and create it if needed. It is never emptied: it may be somebody's."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(file, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            kind = "link" if error.errno == errno.ELOOP else "folder"
            raise UserError(f"{file}: is a {kind}, and a lock is a file; move it away") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{file}: is no ordinary file, and a lock is one; move it away")
    return descriptor


def _lock(descriptor: int, place: Path, doing: str, *, holder: bytes) -> None:
    if sys.platform == "win32":  # there are no POSIX locks; two writers are then up to the user
        return
    import fcntl

    try:
        # A record lock, unlike flock, is not inherited by forked workers that may outlive the run.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise UserError(
                f"{place}: cannot be locked ({error.strerror}); use a folder on another disk"
            ) from error
        number, _, host = holder.decode(errors="replace").strip().partition(" ")
        who = f" ({number}{f' on {host}' if host else ''})" if _OURS.fullmatch(holder) else ""
        raise HeldError(
            f"another process is {doing} {place}{who}; wait for it, stop it, or use another --out"
        ) from None


def _is_still(file: Path, descriptor: int) -> bool:
    try:
        there = file.lstat()
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
