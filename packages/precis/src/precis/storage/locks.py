"""Locks that let one process at a time write to a folder, and mark the folder as ours."""

import errno
import os
import re
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from precis_text.errors import UserError

LOCK_FILE = "lock"
_OURS = re.compile(rb"[0-9]{1,10} [^\s]{1,255} *\n")  # process and host, as long as the longest before it
_HELD: set[Path] = set()  # by this process
_TAKEN = (errno.EACCES, errno.EAGAIN)  # POSIX allows either


class HeldError(UserError):
    """The error of a folder that another process holds."""


@contextmanager
def locked(folder: Path, *, doing: str = "training in") -> Iterator[None]:
    """Hold a folder while the body runs. The system releases it when the process ends, for whatever reason.

    If this process already holds it, the outer lock stays in force until its own end. The file `lock` stays and marks
    the folder as ours (`is_marked`).

    Args:
        doing: the holder's activity, for the error in another process.

    Raises:
        HeldError: if another process holds it.
        UserError: if the file system does not support locks, or something else has the name `lock`.
    """
    with _held(folder.resolve() / LOCK_FILE, folder, doing):
        yield


@contextmanager
def locked_place(place: Path, *, doing: str) -> Iterator[None]:
    """Hold a path while the body writes it, with a file `PLACE.lock` next to it that is removed afterwards.

    Raises:
        HeldError: if another process holds it.
        UserError: if the file system does not support locks, or something else has that name.
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
                with suppress(OSError):  # the next holder would reuse it
                    file.unlink()


def is_marked(folder: Path) -> bool:
    """Return whether `locked` has held a folder, in this process or an earlier one."""
    file = folder / LOCK_FILE
    try:
        return stat.S_ISREG(file.lstat().st_mode) and bool(_OURS.fullmatch(file.read_bytes()[:300]))
    except OSError:
        return False


def remove_left_lock(place: Path) -> None:
    """Remove the file next to a path by which `locked_place` held it, if a kill left it and no process holds it."""
    if os.path.lexists(place.with_name(f"{place.name}.lock")):
        with suppress(UserError), locked_place(place, doing="writing"):
            pass


@contextmanager
def _held(file: Path, place: Path, doing: str) -> Iterator[None]:
    if file in _HELD:  # closing a second lock's file would release the first lock
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
    """Open and lock the file, and write this process's id into it."""
    while True:
        descriptor = _open(file)
        try:
            found = os.read(descriptor, 300)
            _lock(descriptor, place, doing, holder=found)
            if found and not _OURS.fullmatch(found):
                raise UserError(
                    f"{file}: was not written by precis and has the name of its lock file; move it away"
                )
            if is_file_of(file, descriptor):  # the last holder may have removed it after we opened it
                os.lseek(descriptor, 0, os.SEEK_SET)
                holder = f"{os.getpid()} {socket.gethostname()}".encode()
                # All at once, over the last holder's: an empty file would not mark the folder as ours after a kill
                os.write(descriptor, holder.ljust(len(found) - 1) + b"\n")
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(file: Path) -> int:
    """Open a regular file of exactly that name, or create it; never truncate it, since it may be a user's file."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(file, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            kind = "link" if error.errno == errno.ELOOP else "folder"
            raise UserError(f"{file}: is a {kind}, but a lock must be a file; move it away") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{file}: is not a regular file, but a lock must be one; move it away")
    return descriptor


def _lock(descriptor: int, place: Path, doing: str, *, holder: bytes) -> None:
    if sys.platform == "win32":  # no POSIX locks: the user must avoid two writers
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
        who = f" ({number} on {host})" if _OURS.fullmatch(holder) else ""
        raise HeldError(
            f"another process is {doing} {place}{who}; wait for it, stop it, or use another --out"
        ) from None


def is_file_of(path: Path, descriptor: int) -> bool:
    """Return whether an open file still has this name: it was neither deleted, renamed nor replaced.

    Raises:
        OSError: if the path cannot be examined.
    """
    try:
        there = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
