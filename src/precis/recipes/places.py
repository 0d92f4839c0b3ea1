"""Where a command may write, and where it reads."""

from __future__ import annotations

from pathlib import Path

from precis.errors import UserError


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


def folder_there(place: str | Path) -> Path:
    """The folder `place`.

    Raises:
        UserError: it is a file, or not there.
    """
    folder = Path(place)
    if not folder.is_dir():
        raise UserError(f"{folder}: {'is a file; name a folder' if folder.exists() else 'no such folder'}")
    return folder
