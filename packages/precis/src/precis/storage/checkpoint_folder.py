"""Sealed folders: complete and unchanged, or detectably damaged.

A sealed folder is written under a temporary name, gets a manifest with the size and SHA-256 of every file, is
flushed to the disk, and renamed: a kill at any moment leaves the old state or the new one. `check_seal`
later detects a missing, truncated or altered file. Rejected: trusting only the rename, which cannot detect
bytes that the disk lost or changed afterwards.
"""

import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from precis.storage.atomic import DamagedError, is_there, sync_directory, temporary_name
from precis_text.bounded_io import is_plain_name, parse_json

_logger = logging.getLogger("precis.training")
MANIFEST = "manifest.json"
_TEMPORARY = ".tmp-"


def write_sealed(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder, then seal it and rename it to `folder`.

    An existing `folder` is removed before the new one gets its name (only a damaged one is ever rewritten).
    `finish_or_remove` repairs a kill in between. If anything fails, the unfinished folder is removed
    and the error propagates.
    """
    temporary = temporary_name(folder)
    temporary.mkdir(parents=True)
    try:
        write(temporary)
        names = sorted(path.name for path in temporary.iterdir())
        (temporary / MANIFEST).write_bytes(_manifest(temporary, names))
        for name in (*names, MANIFEST):
            _sync_file(temporary / name)
        sync_directory(temporary)
        _move_foreign(folder)
        remove_sealed(folder)
        temporary.rename(folder)
        sync_directory(folder.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_seal(folder: Path) -> frozenset[str]:
    """Return the sealed names, after a check of the size and contents of every file.

    Raises:
        DamagedError: a file is missing or has changed; the message names the first one and the reason.
        OSError: a file could not be read (an I/O error, no permission), which does not prove damage.
    """
    manifest = folder / MANIFEST
    if not is_there(manifest):
        raise DamagedError(f"{MANIFEST} is missing")
    raw = manifest.read_bytes()
    try:
        files = parse_json(raw)["files"]
        expected = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedError(f"{MANIFEST} is damaged") from None
    for name, (size, digest) in expected.items():
        if not is_plain_name(name):
            raise DamagedError(f"{MANIFEST} names {name!r}, which is not a file of this folder")
        path = folder / name
        if not is_there(path):
            raise DamagedError(f"{name} is missing")
        if path.stat().st_size != size:
            raise DamagedError(f"{name} has {path.stat().st_size} bytes instead of {size}")
        if _sha256(path) != digest:
            raise DamagedError(f"{name} has changed since it was written (SHA-256 differs)")
    # The manifest has a canonical text, so even a flipped bit in its whitespace is detected.
    if raw != _manifest(folder, sorted(expected)):
        raise DamagedError(f"{MANIFEST} is damaged")
    return frozenset(expected)


def _move_foreign(path: Path) -> None:
    """Rename a foreign file or link that has the name of a sealed folder."""
    if path.is_symlink() or path.is_file():
        kept = path.with_name(f"{path.name}.moved-{secrets.token_hex(4)}")
        path.rename(kept)
        _logger.warning(
            "%s was a file or a link that precis did not write; renamed it to %s", path, kept.name
        )


def remove_sealed(folder: Path) -> None:
    """Delete a folder if it exists; a kill leaves it whole or under a temporary name, never half of it."""
    if folder.exists():
        doomed = folder.rename(temporary_name(folder))
        shutil.rmtree(doomed)


def finish_or_remove(parent: Path) -> None:
    """Finish or remove what interrupted `write_sealed` and `remove_sealed` calls left in `parent`.

    A sealed folder that lacks only its final name gets it, since the kill may have come between moving the
    old folder away and moving the new one in. All other temporary files and folders are deleted.
    """
    for temporary in sorted(parent.glob(f"*{_TEMPORARY}*")):
        if temporary.is_dir() and not temporary.is_symlink():
            target = parent / temporary.name.partition(_TEMPORARY)[0]
            if not target.exists() and _is_sealed(temporary):
                temporary.rename(target)
            else:
                shutil.rmtree(temporary)
        else:
            temporary.unlink()


def to_json(value: Any) -> str:
    """Format JSON for run folders: sorted, indented, with a final newline."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _is_sealed(folder: Path) -> bool:
    try:
        check_seal(folder)
    except DamagedError:
        return False
    return True


def _manifest(folder: Path, names: list[str]) -> bytes:
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _sha256(folder / name)} for name in names
    }
    return to_json({"files": files}).encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
