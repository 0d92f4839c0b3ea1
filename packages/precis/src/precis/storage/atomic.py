"""Writes files to a temporary name, syncs and renames them, and never overwrites what it did not create.

A kill leaves the old file or the new one. Folders are sealed and renamed in the same way (`storage/seal.py`),
and files that grow line by line are journals (`storage/journal.py`).

Temporary names end in eight random hexadecimal digits.
"""

import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from precis_text.errors import UserError

_OF_RUST = re.compile(r"\(os error (\d+)\)")
_TEMPORARY = re.compile(r".+\.tmp-[0-9a-f]{8}", re.DOTALL)


def write_file(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: a reader, or a kill, sees the old content or the new one.

    Raises:
        OSError: if it cannot be written; the old file is still there.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Replace a file by a JSON value, indented and in its own order; see `write_file`."""
    write_file(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


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


def to_json(value: Any) -> str:
    """Format JSON for run folders: sorted, indented, with a final newline."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_whole(path: Path, file: BinaryIO, data: bytes) -> None:
    """Write to the unbuffered file (`appending`) of a path, or fail if a full disk takes only part of the data.

    Raises:
        OSError: if not all of it could be written; a part of it may be there.
    """
    with naming(path):
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def appending(path: Path) -> BinaryIO:
    """Open an unbuffered file for appending and reading, and create it if needed; do not follow links.

    Raises:
        UserError: if `path` is a link, a folder, or not a regular file.
        OSError: if it cannot be opened.
    """
    refuse_link(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return cast("BinaryIO", os.fdopen(os.open(path, flags, 0o666), "a+b", buffering=0))


def refuse_link(path: Path) -> None:
    """Raise `UserError` if a path exists and is not a regular file, such as a link or a folder."""
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
    for leftover in leftovers(path):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def leftovers(path: Path) -> list[Path]:
    """Return the temporary files and folders next to `path`."""
    if not path.parent.is_dir():
        return []
    start = f"{path.name}.tmp-"
    return [one for one in path.parent.iterdir() if one.name.startswith(start) and is_temporary(one.name)]


def unfinished_names(folder: Path) -> set[str]:
    """Return the names for which writers in a folder made temporary files or folders that still exist."""
    return {path.name.rpartition(".tmp-")[0] for path in folder.iterdir() if is_temporary(path.name)}


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
