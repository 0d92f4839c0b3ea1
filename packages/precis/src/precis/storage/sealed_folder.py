"""Writes sealed folders: filled under a temporary name, sealed, flushed to the disk, and renamed.

A kill at any moment leaves the old folder or the new one. After a kill between the two renames neither has the name;
`finish_or_remove` then gives it to the newest complete folder.

    writer               | for                                 | files of others in the folder
    ---------------------|-------------------------------------|---------------------------------------
    `write_folder`       | a place that a user names           | refused; another process is kept out
    `replace_folder`     | a checkpoint, below a held run      | the caller decides
"""

import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from precis.storage.atomic import leftovers, naming, remove_leftovers, sync_directory, temporary_name
from precis.storage.locks import locked_place
from precis.storage.seal import SEAL, DamagedError, check_seal, seal, sealed_names
from precis_text.errors import UserError


def write_folder(folder: Path, write: Callable[[Path], object], *, declared: Collection[str] = ()) -> None:
    """Let `write` fill a new folder, seal it, and replace `folder` with it.

    Args:
        declared: names that the writer may have added to a sealed folder later.

    Raises:
        UserError: if `folder` contains something that precis did not write.
        HeldError: if another process is writing it.
        OSError: if it cannot be written; the old folder is still there.
    """
    with locked_place(folder, doing="writing"):
        _put_back(folder)
        refuse_foreign(folder, declared=declared)
        remove_leftovers(folder)
        replace_folder(folder, write)


def replace_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a new folder, seal it, and give it the name of `folder`; then remove an old one.

    The caller keeps other processes away and decides whether the old folder may be removed.

    Raises:
        OSError: if it cannot be written; the old folder is still there.
    """
    new = temporary_name(folder)
    new.mkdir(parents=True)
    try:
        with naming(folder):
            write(new)
            seal(new)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    old = temporary_name(folder) if folder.exists() else None
    try:
        if old is not None:
            folder.rename(old)  # not deleted in place: a kill would leave half of it under its name
        new.rename(folder)
        sync_directory(folder.parent)
    finally:
        _put_back(folder)  # an interruption between the two renames
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Delete a folder if it exists; a kill leaves it whole or under a temporary name, never half of it."""
    if folder.exists():
        doomed = folder.rename(temporary_name(folder))
        shutil.rmtree(doomed)


def finish_or_remove(path: Path) -> None:
    """Finish or remove what killed writers of `path` left next to it.

    A sealed folder that lacks only its final name gets it, since the kill may have come between moving the old folder
    away and moving the new one in. All other temporary files and folders of `path` are deleted.

    Raises:
        OSError: if a folder cannot be read, so that its state is unknown; nothing is deleted.
    """
    _put_back(path)
    remove_leftovers(path)


def _put_back(path: Path) -> None:
    """Restore the newest complete folder if a writer ended after it moved the old one away."""
    if path.exists() or path.is_symlink() or not path.parent.is_dir():
        return
    whole = []
    for leftover in leftovers(path):
        with suppress(DamagedError):
            check_seal(leftover)
            whole.append(leftover)
    if whole:
        max(whole, key=lambda folder: (folder / SEAL).stat().st_mtime_ns).rename(path)
        sync_directory(path.parent)


def refuse_foreign(folder: Path, *, declared: Collection[str] = ()) -> None:
    """Refuse to replace a folder that contains files of others.

    Raises:
        UserError: if it is a file or a link, or contains a name that neither its seal nor `declared` lists.
    """
    if folder.is_symlink():
        raise UserError(f"{folder}: is a link, which would be replaced; name the target folder")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder}: is a file; name a folder")
    ours = set(declared)
    with suppress(DamagedError):  # a folder without a seal
        ours |= sealed_names(folder)
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if foreign:
        more = f" and {len(foreign) - 1} more" if foreign[1:] else ""
        raise UserError(
            f"{folder}: contains {foreign[0]}{more}, which this command did not write and would delete; move it "
            "away, or name another folder"
        )
