"""The folders that a command may write to and read from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from precis.storage.atomic import is_temporary, remove_temporary_files
from precis.storage.locks import LOCK_FILE, is_marked, locked
from precis_text.bounded_io import stat_or_none, suggest
from precis_text.errors import UserError


def folder_to_be(out: str | Path) -> Path:
    """Return the folder `out`, which need not exist; raise `UserError` if it is a file, or inside one."""
    folder = Path(out)
    first = next((place for place in (folder, *folder.parents) if place.exists()), None)
    if first is not None and not first.is_dir():
        raise UserError(f"{first}: is a file; name a folder with --out")
    return folder


def claim_folder(out: str | Path, *, is_ours: Callable[[Path], bool] = is_marked) -> Path:
    """Return the folder `out`, which is empty, missing, or written by precis.

    Args:
        is_ours: whether precis wrote a folder; by default, whether it was locked (`lock.locked`).

    Raises:
        UserError: it contains files that precis did not write.
    """
    folder = folder_to_be(out)
    if folder.is_dir() and not (is_marked(folder) or is_ours(folder)):
        foreign = sorted(p.name for p in folder.iterdir() if p.name != LOCK_FILE and not is_temporary(p.name))
        if foreign:
            more = f" and {len(foreign) - 1} more" if foreign[1:] else ""
            raise UserError(
                f"{folder}: contains {foreign[0]}{more}, which precis did not write; name an empty folder with --out"
            )
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink():
            raise UserError(
                f"{path}: is a link, and precis does not write through links; replace it with its target"
            )
    return folder


@contextmanager
def writing_to(out: str | Path, *, doing: str, is_ours: Callable[[Path], bool] = is_marked) -> Iterator[Path]:
    """Yield the folder `out`, created if missing and locked by this process while the body runs.

    Raises:
        UserError: it contains files that precis did not write, or another process writes to it.
    """
    folder = claim_folder(out, is_ours=is_ours)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, doing=doing):
        remove_temporary_files(folder)
        yield folder


def existing_folder(place: str | Path) -> Path:
    """Return the folder `place`; raise `UserError` if it is a file, or missing."""
    folder = Path(place)
    if not folder.is_dir():
        missing = f"no such folder{suggest(folder)}"
        raise UserError(f"{folder}: {'is a file; name a folder' if folder.exists() else missing}")
    return folder


def existing_file(place: str | Path, what: str = "") -> None:
    """Raise `UserError` if a file is missing, with advice such as "give a file of predictions"."""
    if stat_or_none(Path(place)) is None:
        raise UserError(f"{place}: no such file{what and '; '}{what}{suggest(place)}")
