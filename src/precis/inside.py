"""The files of a folder from somebody else: regular ones, which lie in it.

A link may name any file of the reader's machine, and a pipe never answers. One layout has links for a reason: the cache
of the Hugging Face hub, where `snapshots/COMMIT/NAME` names `blobs/DIGEST` of the same repository.
"""

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from precis.bounded import unreadable
from precis.errors import UserError

_DEEPEST = 3  # levels of folders in a model's folder that are looked at
_MOST = 10_000  # names in it


def check_inside(folder: Path) -> None:
    """Refuse a folder with a link that leads out of it, or with anything but folders and regular files.

    Raises:
        UserError: there is such a name, or more than `_MOST` of them; the message begins with its path.
    """
    root = folder.resolve()
    roots = (root, root.parent.parent / "blobs") if root.parent.name == "snapshots" else (root,)
    seen = 0
    level = [folder]
    for _ in range(_DEEPEST):
        deeper: list[Path] = []
        for place in level:
            for path in _listed(place):
                seen += 1
                if seen > _MOST:
                    raise UserError(f"{folder}: holds more than {_MOST:,} names; give the model's own folder")
                if _is_folder_inside(path, roots):
                    deeper.append(path)
        level = deeper


def is_plain_name(name: object) -> bool:
    """Whether this names a file in a folder itself: neither a path nor a step upwards."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "\0" not in name
        and PurePosixPath(name).name == name
        and PureWindowsPath(name).name == name
    )


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error


def _is_folder_inside(path: Path, roots: tuple[Path, ...]) -> bool:
    try:
        if path.is_symlink():
            target = Path(os.path.realpath(path, strict=True))
            if not any(target.is_relative_to(root) for root in roots):
                raise UserError(
                    f"{path}: is a link that leads out of the folder; put the file itself in its place"
                )
        mode = path.stat().st_mode
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        return not path.is_symlink()
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: is neither a folder nor a regular file; remove it from the model's folder")
    return False
