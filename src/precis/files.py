"""Writes everything aside, synced, sealed and renamed, and never over what somebody else put there.

Checkpoints are not written here; see `training/sealed.py`.

    kind          | written by          | a kill leaves                        | found later
    --------------|---------------------|--------------------------------------|-----------------------------------
    a file        | `write_file`        | the old text or the new one          | -
    a folder      | `write_folder`      | the old folder or the new one        | `check_seal`: SEAL has every file

Temporary names end in eight random letters. Files get the mode that the umask gives to new ones, whatever library wrote
them (those of safetensors would be private to their owner).

The seal finds accidents: a fast digest (xxh3) is checked when a folder is read, SHA-256 is kept for the record.
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

from precis.errors import UserError
from precis.lock import locked_place
from precis.untrusted import MAX_BYTES, parse_json

SEAL = "seal.json"
_FORMAT = 1
_CHUNK = 1 << 20
_LARGE = 1 << 22
_OF_RUST = re.compile(r"\(os error (\d+)\)")
_TEMPORARY = re.compile(r".+\.tmp-[0-9a-f]{8}", re.DOTALL)


class DamagedError(Exception):
    """A sealed folder is not what was written. The message names the file and the reason."""


def write_folder(folder: Path, write: Callable[[Path], object], *, declared: Collection[str] = ()) -> None:
    """Let `write` fill a new folder, seal it, and put it in the place of `folder`.

    Args:
        declared: names in an unsealed folder that this writer may have put there.

    Raises:
        UserError: if `folder` holds something that precis did not write.
        HeldError: if another process is writing it.
        OSError: if it cannot be written; what was in the place is still there.
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
            folder.rename(old)  # not deleted in its place: a kill would leave half of it under its name
        new.rename(folder)
        sync_directory(folder.parent)
    finally:
        _put_back(folder)  # an interruption between the two renames
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _put_back(path: Path) -> None:
    """Give a sealed folder its name, if a writer ended after it had moved the old one away; the newest whole one."""
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
    """Replace a file so that a reader, or a kill, sees the old content or the new one.

    Raises:
        OSError: if it cannot be written; the old file is still there.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a new file that takes the place of `path` if the body ends well, and is removed otherwise.

    Raises:
        UserError: if `path` is a link, which would be replaced and not what it points to, or a folder.
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
    """Name the path in an OSError of the body, which neither a write nor a library in Rust does.

    Raises:
        OSError: if the body raised one, or what tokenizers raises in its place; with the path.
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
    """Write to the unbuffered file (`appending`) of a path. On a full disk it may take only a part.

    Raises:
        OSError: if it could not be written whole; a part of it may be there.
    """
    with naming(path):
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def appending(path: Path) -> BinaryIO:
    """Open an unbuffered file for writing at its end, and create it if needed; links are not followed.

    Raises:
        UserError: if `path` is a link, a folder, or no ordinary file.
        OSError: if it cannot be opened.
    """
    refuse_link(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return cast("BinaryIO", os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0))


def refuse_link(path: Path) -> None:
    """Refuse a path that is something else than an ordinary file.

    Raises:
        UserError: if `path` is a link, a folder, or something else that is not a file.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise UserError(f"{path}: is a link, and precis does not write through links; name the file itself")
    if stat.S_ISDIR(mode):
        raise UserError(f"{path}: is a folder; name a file, or move the folder away")
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: is no ordinary file; name another")


def refuse_foreign(folder: Path, *, declared: Collection[str] = ()) -> None:
    """Refuse to replace a folder that is not wholly ours.

    Raises:
        UserError: if it is a file or a link, or holds a name that its seal does not have and `declared` neither.
    """
    if folder.is_symlink():
        raise UserError(f"{folder}: is a link, which would be replaced; name the folder itself")
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
            f"{folder}: holds {foreign[0]}{more}, which was not written by this command and would be lost; move it "
            "away, or name another folder"
        )


def has_seal(folder: Path) -> bool:
    """Whether a folder was sealed. `check_seal` tells whether it is still whole."""
    return os.path.lexists(folder / SEAL)


def check_seal(folder: Path, *, thorough: bool = False) -> None:
    """Check that every sealed file is there with its size and its content.

    Args:
        thorough: compare SHA-256 too, not the fast digest alone.

    Raises:
        DamagedError: if one is not; the message names the first such file and the reason.
        OSError: if the system could not say (an I/O error, no permission), which is no proof of damage.
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
    """Return the names in a sealed folder that were not there when it was sealed, without hidden ones.

    Raises:
        DamagedError: if the seal cannot be read as one.
    """
    ours = _sealed_names(folder)
    return sorted(p.name for p in folder.iterdir() if p.name not in ours and not p.name.startswith("."))


def sealed_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, as the seal says.

    Raises:
        DamagedError: if the seal cannot be read as one.
    """
    return {name: entry["sha256"] for name, entry in _entries(folder).items()}


def is_there(file: Path) -> bool:
    """Whether this is a file. Unlike `Path.is_file`, it raises the OSErrors that leave this open."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def temporary_name(path: Path) -> Path:
    """Return an unused name beside `path`."""
    return path.with_name(f"{path.name}.tmp-{secrets.token_hex(4)}")


def is_temporary(name: str) -> bool:
    """Whether a name is one of `temporary_name`."""
    return bool(_TEMPORARY.fullmatch(name))


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` left beside it under temporary names."""
    for leftover in _leftovers(path):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _leftovers(path: Path) -> list[Path]:
    """What lies beside `path` under its temporary names."""
    if not path.parent.is_dir():
        return []
    start = f"{path.name}.tmp-"
    return [one for one in path.parent.iterdir() if one.name.startswith(start) and is_temporary(one.name)]


def remove_temporary_files(folder: Path) -> None:
    """Remove what killed writers of files left in a folder that this process holds."""
    for path in folder.iterdir():
        if is_temporary(path.name) and path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Write a folder's names through to the disk."""
    if os.name == "nt":  # Windows cannot open a directory
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def seal(folder: Path) -> None:
    """Write a folder through to the disk, with a file that lists its content."""
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
    """Return the one spelling of a seal, so that a bit that changed in it is found too."""
    own = xxhash.xxh3_128(json.dumps(files, sort_keys=True).encode()).hexdigest()
    record = {"format": _FORMAT, "files": files, "xxh3": own}
    return json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a seal by file name.

    Raises:
        DamagedError: if the seal cannot be read as one.
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
        raise DamagedError(f"{SEAL} is of format {form}, which this version of precis cannot read")
    if content != _seal_text(entries).encode():
        raise DamagedError(f"{SEAL} is damaged")
    for name in entries:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedError(f"{SEAL} names {name}, which lies outside of the folder")
    return entries


def _sealed_names(folder: Path) -> set[str]:
    """Names directly in the folder that its seal has."""
    return {SEAL, *(Path(name).parts[0] for name in _entries(folder))}


def _digests(path: Path, *, slow: bool) -> tuple[str, str]:
    """Return the fast digest and, if asked for, SHA-256. Alone, the fast one maps a large file, without a copy."""
    if not slow and path.stat().st_size >= _LARGE:
        with (
            suppress(ValueError, OSError),  # not every file system can
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
    """Give a file the mode that new files have here."""
    if os.name == "nt":
        return
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(0o666 & ~umask)
