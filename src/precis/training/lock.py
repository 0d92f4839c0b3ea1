"""One process at a time writes to a run folder."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from precis.errors import UserError

LOCK_FILE = "lock"
_HELD: set[Path] = set()  # by this process
_TAKEN = (errno.EACCES, errno.EAGAIN)  # POSIX leaves to the system which of the two


class HeldError(UserError):
    """Another process holds the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run folder while the body runs. The system lets go of it when the process ends, however it
    ends.

    It may be held already by this process: then the outer hold goes on to its own end.

    Raises:
        HeldError: another process holds it.
        UserError: the file system knows no locks.
    """
    if sys.platform == "win32":  # there is no POSIX lock; two writers are then up to the user
        yield
        return
    import fcntl

    place = folder.resolve()
    if place in _HELD:  # a second lock would end the first when its file is closed
        yield
        return
    with (folder / LOCK_FILE).open("w") as file:
        try:
            # A record lock, unlike flock, is not inherited by forked workers that may outlive the run.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise UserError(
                    f"{folder}: cannot be locked ({error.strerror}); use a folder on another disk"
                ) from error
            raise HeldError(
                f"another process is training in {folder}; wait for it, stop it, or use another --out"
            ) from None
        file.write(f"{os.getpid()}\n")
        file.flush()
        _HELD.add(place)
        try:
            yield
        finally:
            _HELD.discard(place)
