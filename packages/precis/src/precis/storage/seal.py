"""Sealed folders: written under a temporary name and renamed; `seal.json` lists every file, so that damage is found.

Models, adapters, packs, studies of judging and checkpoints are sealed. A kill at any moment leaves the old folder or
the new one. After a kill between the two renames neither has the name; `finish_or_remove` then gives it to the newest
complete folder.

    function         | does                                | used for
    -----------------|-------------------------------------|------------------------------------------------------
    `write_folder`   | refuses files of others, locks      | a place that a user names
    `replace_folder` | leaves that to the caller           | a checkpoint, below a held run
    `check_seal`     | compares sizes and a fast checksum  | folders that are loaded
    ... thorough     | compares SHA-256 too                | checkpoints, studies, `precis data check`
    `check_sealed`   | finds added files too               | models, adapters and packs, which may lack a seal

The seal detects accidents, not attacks: a program that can change a file can also write a new seal.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import xxhash

from precis.storage.atomic import (
    is_there,
    leftovers,
    naming,
    remove_leftovers,
    sync_directory,
    temporary_name,
    to_json,
    write_file,
)
from precis.storage.locks import locked_place
from precis_text.bounded_io import MAX_BYTES, parse_json
from precis_text.errors import UserError

_logger = logging.getLogger("precis.storage.seal")
SEAL = "seal.json"
_FORMAT = 1
_CHUNK = 1 << 20
_READ = (".json", ".safetensors", ".jinja", ".model", ".bin")
_READ_NAMES = ("vocab.txt", "merges.txt")


class DamagedError(Exception):
    """The error of a sealed folder that has changed. The message names the file and the reason."""


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


def seal(folder: Path) -> None:
    """Flush a folder to the disk, with a file that lists its content; raise `OSError` if that fails."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            sync_directory(path)
            continue
        _give_usual_mode(path)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        fast, slow = _digests(path, slow=True)
        name = path.relative_to(folder).as_posix()
        files[name] = {"bytes": path.stat().st_size, "xxh3": fast, "sha256": slow}
    write_file(folder / SEAL, seal_text(files))


def has_seal(folder: Path) -> bool:
    """Return whether a folder was sealed. `check_seal` checks whether it is still complete."""
    return os.path.lexists(folder / SEAL)


def check_seal(folder: Path, *, thorough: bool = False) -> frozenset[str]:
    """Return the sealed names, after a check of the size and content of every file.

    Args:
        thorough: compare SHA-256 too, not only the fast checksum.

    Raises:
        DamagedError: if a file is missing or has changed; the message names the first one and the reason.
        OSError: if a file could not be read (an I/O error, no permission), which does not prove damage.
    """
    entries = _entries(folder)
    for name, entry in entries.items():
        path = folder / name
        if not is_there(path):
            raise DamagedError(f"{name} is missing")
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise DamagedError(f"{name} has {size} bytes instead of {entry['bytes']}")
        fast, slow = _digests(path, slow=thorough)
        if fast != entry["xxh3"] or (thorough and slow != entry["sha256"]):
            raise DamagedError(f"{name} has changed since it was written")
    return frozenset(entries)


def check_sealed(folder: Path, *, remedy: str = "copy or create the folder again") -> None:
    """Refuse a folder that has changed since it was sealed; accept a folder without a seal.

    Added files lead to a warning, and to an error if transformers would read them.

    Args:
        remedy: the advice of the error.

    Raises:
        UserError: if it has changed; the message names the folder first, then the file.
    """
    if not has_seal(folder):
        return
    try:
        check_seal(folder)
        later = unsealed_names(folder)
    except DamagedError as damage:
        raise UserError(
            f"{folder}: {damage}; {remedy}. If you changed it on purpose, remove {SEAL}"
        ) from None
    read = [name for name in later if name.endswith(_READ) or name in _READ_NAMES]
    if read:
        raise UserError(
            f"{folder}: {read[0]} was added after sealing; remove it or, if it belongs there, remove {SEAL}"
        )
    if later:
        _logger.warning("%s: %s was added after sealing and is ignored", folder, ", ".join(later))


@contextmanager
def checking_sealed(folder: Path) -> Iterator[None]:
    """Run `check_sealed` in a thread while the block reads the folder, since checksums use only one core.

    Use nothing that the block made before the block ends. If the block fails and the folder has changed, the error is
    about the change, which explains the failure.

    Raises:
        UserError: as `check_sealed`.
    """
    if not has_seal(folder):
        yield
        return
    with ThreadPoolExecutor(max_workers=1) as threads:
        check = threads.submit(check_sealed, folder)
        try:
            yield
        finally:
            check.result()


def unsealed_names(folder: Path) -> list[str]:
    """Return the names that were added to a sealed folder after sealing, without hidden ones.

    Raises:
        DamagedError: if the seal is missing or damaged.
    """
    ours = sealed_names(folder)
    return sorted(p.name for p in folder.iterdir() if p.name not in ours and not p.name.startswith("."))


def sealed_names(folder: Path) -> set[str]:
    """Return the top-level names of the folder that its seal lists, and the seal's own.

    Raises:
        DamagedError: if the seal is missing or damaged.
    """
    return {SEAL, *(Path(name).parts[0] for name in _entries(folder))}


def sealed_digests(folder: Path) -> dict[str, str]:
    """Return the recorded SHA-256 of each file; raise `DamagedError` if the seal is missing or damaged."""
    return {name: entry["sha256"] for name, entry in _entries(folder).items()}


def seal_text(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the canonical text of a seal, in which any changed bit is found.

    Args:
        files: relative path -> its size in `bytes`, and its `xxh3` and `sha256` in hexadecimal digits.
    """
    own = xxhash.xxh3_128(json.dumps(files, sort_keys=True).encode()).hexdigest()
    return to_json({"format": _FORMAT, "files": files, "xxh3": own})


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a seal by file name; raise `DamagedError` if the seal is missing or damaged."""
    try:
        if not is_there(folder / SEAL):
            raise DamagedError(f"{SEAL} is missing")
        with (folder / SEAL).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        record = parse_json(content)
        form, files = record["format"], record["files"]
        entries = {
            str(name): {"bytes": int(e["bytes"]), "xxh3": str(e["xxh3"]), "sha256": str(e["sha256"])}
            for name, e in files.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedError(f"{SEAL} is damaged") from None
    if form != _FORMAT:
        raise DamagedError(f"{SEAL} has format {form}, which this version of precis cannot read")
    if content != seal_text(entries).encode():
        raise DamagedError(f"{SEAL} is damaged")
    for name in entries:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedError(f"{SEAL} names {name!r}, which is outside the folder")
    return entries


def _digests(path: Path, *, slow: bool) -> tuple[str, str]:
    """Return the fast checksum and, if `slow`, SHA-256. A mapping would end the process if the file is truncated."""
    fast, sha = xxhash.xxh3_128(), hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            fast.update(chunk)
            if slow:
                sha.update(chunk)
    return fast.hexdigest(), sha.hexdigest()


def _give_usual_mode(path: Path) -> None:
    """Give a file the mode of new files."""
    if os.name == "nt":
        return
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(0o666 & ~umask)
