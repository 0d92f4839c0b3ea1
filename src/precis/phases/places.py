"""Where a command may write, and where it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from precis.errors import UserError
from precis.files import is_temporary, remove_temporary_files
from precis.lock import LOCK_FILE, is_marked, locked


def folder_to_be(out: str | Path) -> Path:
    """The folder `out`, which may not be there yet; refused before there is anything to write if it can be none.

    Raises:
        UserError: it is a file, or lies in one.
    """
    folder = Path(out)
    first = next((place for place in (folder, *folder.parents) if place.exists()), None)
    if first is not None and not first.is_dir():
        raise UserError(f"{first}: is a file; --out names a folder")
    return folder


def own_folder(out: str | Path, *, is_ours: Callable[[Path], bool] = is_marked) -> Path:
    """The folder `out`, which is empty, not there yet, or was written to by precis before.

    Args:
        is_ours: whether a folder was; by default, whether it was held (`lock.locked`).

    Raises:
        UserError: it holds what somebody else put there.
    """
    folder = folder_to_be(out)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink():
            raise UserError(
                f"{path}: is a link, and precis does not write through links; replace it by what it points to"
            )
    if folder.is_dir() and not (is_marked(folder) or is_ours(folder)):
        foreign = sorted(p.name for p in folder.iterdir() if p.name != LOCK_FILE and not is_temporary(p.name))
        if foreign:
            more = f" and {len(foreign) - 1} more" if foreign[1:] else ""
            raise UserError(
                f"{folder}: holds {foreign[0]}{more}, which precis did not write; name an empty folder with --out"
            )
    return folder


@contextmanager
def writing_to(out: str | Path, *, doing: str, is_ours: Callable[[Path], bool] = is_marked) -> Iterator[Path]:
    """The folder `out`, made if there is none and held by this process while the body runs.

    Raises:
        UserError: it holds what somebody else put there, or another process writes to it.
    """
    folder = own_folder(out, is_ours=is_ours)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, doing=doing):
        remove_temporary_files(folder)
        yield folder


def folder_there(place: str | Path) -> Path:
    """The folder `place`.

    Raises:
        UserError: it is a file, or not there.
    """
    folder = Path(place)
    if not folder.is_dir():
        raise UserError(f"{folder}: {'is a file; name a folder' if folder.exists() else 'no such folder'}")
    return folder
