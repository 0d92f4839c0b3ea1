"""Writes to a temporary name, syncs, adds checksums, renames, and never overwrites files it did not create.

Checkpoints have their own writer, `storage/checkpoint_folder.py`.

    kind          | written by          | a kill leaves                        | damage is found by
    --------------|---------------------|--------------------------------------|-----------------------------------
    a file        | `write_file`        | the old text or the new one          | -
    a folder      | `write_folder`      | the old folder or the new one        | `check_seal`: SEAL lists every file

Temporary names end in eight random hexadecimal digits. Files get the mode of the umask, whatever library wrote them
(safetensors makes its files private to their owner).

The seal detects accidents: reading a folder checks a fast checksum (xxh3); SHA-256 is kept for the record.
"""

import errno
import hashlib
import json
import mmap
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import xxhash

from precis.storage.locks import locked_place
from precis_text.bounded_io import MAX_BYTES, parse_json
from precis_text.errors import UserError

SEAL = "seal.json"
_FORMAT = 1
_CHUNK = 1 << 20
_LARGE = 1 << 22
_OF_RUST = re.compile(r"\(os error (\d+)\)")
_TEMPORARY = re.compile(r".+\.tmp-[0-9a-f]{8}", re.DOTALL)


class DamagedError(Exception):
    """The error of a sealed folder that has changed. The message names the file and the reason."""


def write_folder(folder: Path, write: Callable[[Path], object], *, declared: Collection[str] = ()) -> None:
    """Let `write` fill a new folder, seal it, and replace `folder` with it.

    Args:
        declared: names in an unsealed folder that this writer may have created.

    Raises:
        UserError: if `folder` contains something that precis did not write.
        HeldError: if another process is writing it.
        OSError: if it cannot be written; the old folder is still there.
    """
    with locked_place(folder, doing="writing"):
        _put_back(folder)
        refuse_foreign(folder, declared=declared)
        remove_leftovers(folder)
        _write_folder(folder, write)


def _write_folder(folder: Path, write: Callable[[Path], object]) -> None:
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


def _put_back(path: Path) -> None:
    """Restore the newest complete folder if a writer ended after it moved the old one away."""
    if path.exists() or path.is_symlink() or not path.parent.is_dir():
        return
    whole = []
    for leftover in _leftovers(path):
        with suppress(DamagedError, OSError):
            check_seal(leftover)
            whole.append(leftover)
    if whole:
        max(whole, key=lambda folder: (folder / SEAL).stat().st_mtime_ns).rename(path)
        sync_directory(path.parent)


def write_file(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: a reader, or a kill, sees the old content or the new one.

    Raises:
        OSError: if it cannot be written; the old file is still there.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that replaces `path` if the body succeeds, and is removed otherwise.

    Raises:
        UserError: if `path` is a folder, or a link, which would itself be replaced instead of its target.
        OSError: if it cannot be written; the old file is still there.
    """
    refuse_link(path)
    temporary = temporary_name(path)
    with naming(path):
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_directory(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path to an OSError of the body, which neither a write nor a library in Rust does.

    Raises:
        OSError: with the path, if the body raised one or the exception that tokenizers raises instead.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    except Exception as error:
        number = _OF_RUST.search(str(error)) if type(error) is Exception else None
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def write_whole(path: Path, file: BinaryIO, data: bytes) -> None:
    """Write to the unbuffered file (`appending`) of a path, or fail if a full disk takes only part of the data.

    Raises:
        OSError: if not all of it could be written; a part of it may be there.
    """
    with naming(path):
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def appending(path: Path) -> BinaryIO:
    """Open an unbuffered file for appending, and create it if needed; do not follow links.

    Raises:
        UserError: if `path` is a link, a folder, or not a regular file.
        OSError: if it cannot be opened.
    """
    refuse_link(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return cast("BinaryIO", os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0))


def refuse_link(path: Path) -> None:
    """Refuse a path that exists and is not a regular file.

    Raises:
        UserError: if `path` is a link, a folder, or something else that is not a file.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise UserError(f"{path}: is a link, and precis does not write through links; name the target file")
    if stat.S_ISDIR(mode):
        raise UserError(f"{path}: is a folder; name a file, or move the folder away")
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: is not a regular file; name another")


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
        ours |= _sealed_names(folder)
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if foreign:
        more = f" and {len(foreign) - 1} more" if foreign[1:] else ""
        raise UserError(
            f"{folder}: contains {foreign[0]}{more}, which this command did not write and would delete; move it "
            "away, or name another folder"
        )


def has_seal(folder: Path) -> bool:
    """Return whether a folder was sealed. `check_seal` checks whether it is still complete."""
    return os.path.lexists(folder / SEAL)


def check_seal(folder: Path, *, thorough: bool = False) -> None:
    """Check the size and content of every sealed file.

    Args:
        thorough: compare SHA-256 too, not only the fast checksum.

    Raises:
        DamagedError: if a file is missing or has changed; the message names the first one and the reason.
        OSError: if a file could not be read (an I/O error, no permission), which does not prove damage.
    """
    for name, entry in _entries(folder).items():
        path = folder / name
        if not is_there(path):
            raise DamagedError(f"{name} is missing")
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise DamagedError(f"{name} has {size} bytes instead of {entry['bytes']}")
        fast, slow = _digests(path, slow=thorough)
        if fast != entry["xxh3"] or (thorough and slow != entry["sha256"]):
            raise DamagedError(f"{name} has changed since it was written")


def unsealed_names(folder: Path) -> list[str]:
    """Return the names that were added to a sealed folder after sealing, without hidden ones.

    Raises:
        DamagedError: if the seal is missing or damaged.
    """
    ours = _sealed_names(folder)
    return sorted(p.name for p in folder.iterdir() if p.name not in ours and not p.name.startswith("."))


def sealed_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, as recorded in the seal.

    Raises:
        DamagedError: if the seal is missing or damaged.
    """
    return {name: entry["sha256"] for name, entry in _entries(folder).items()}


def is_there(file: Path) -> bool:
    """Return whether this is a file. Unlike `Path.is_file`, raise the OSErrors that leave the answer open."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def temporary_name(path: Path) -> Path:
    """Return an unused name next to `path`."""
    return path.with_name(f"{path.name}.tmp-{secrets.token_hex(4)}")


def is_temporary(name: str) -> bool:
    """Return whether `temporary_name` made this name."""
    return bool(_TEMPORARY.fullmatch(name))


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files and folders that killed writers of `path` left next to it."""
    for leftover in _leftovers(path):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _leftovers(path: Path) -> list[Path]:
    """Return the temporary files and folders next to `path`."""
    if not path.parent.is_dir():
        return []
    start = f"{path.name}.tmp-"
    return [one for one in path.parent.iterdir() if one.name.startswith(start) and is_temporary(one.name)]


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files that killed writers left in a folder that this process holds."""
    for path in folder.iterdir():
        if is_temporary(path.name) and path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Flush a folder's entries to the disk."""
    if os.name == "nt":  # Windows cannot open a directory
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def seal(folder: Path) -> None:
    """Flush a folder to the disk, with a file that lists its content."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        _give_usual_mode(path)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        fast, slow = _digests(path, slow=True)
        name = path.relative_to(folder).as_posix()
        files[name] = {"bytes": path.stat().st_size, "xxh3": fast, "sha256": slow}
    write_file(folder / SEAL, _seal_text(files))


def _seal_text(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the canonical text of a seal, in which any changed bit is found."""
    own = xxhash.xxh3_128(json.dumps(files, sort_keys=True).encode()).hexdigest()
    record = {"format": _FORMAT, "files": files, "xxh3": own}
    return json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a seal by file name.

    Raises:
        DamagedError: if the seal is missing or damaged.
    """
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
    if content != _seal_text(entries).encode():
        raise DamagedError(f"{SEAL} is damaged")
    for name in entries:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedError(f"{SEAL} names {name}, which is outside the folder")
    return entries


def _sealed_names(folder: Path) -> set[str]:
    """Return the top-level names of the folder that its seal lists."""
    return {SEAL, *(Path(name).parts[0] for name in _entries(folder))}


def _digests(path: Path, *, slow: bool) -> tuple[str, str]:
    """Return the fast checksum and, if `slow`, SHA-256. Without SHA-256 a large file is mapped, not copied."""
    if not slow and path.stat().st_size >= _LARGE:
        with (
            suppress(ValueError, OSError),  # some file systems cannot map files
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return xxhash.xxh3_128(content).hexdigest(), ""
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
