"""Reads files from untrusted sources: within limits, only from regular files, and without losing data.

A pipe without a writer blocks, a device may never end, and a link may name any file of the reader's machine.
This module parses JSON as follows:

    Python's parser                                 | this module
    ------------------------------------------------|----------------------------------
    keeps the last value of a duplicate key         | refuses it
    fails on 100,000 `[` with a RecursionError      | refuses more than `MAX_DEPTH`
    fails on 5,000-digit integers with a ValueError | refuses them in plain words
    uses 20 times the text's memory for small values| refuses more than `MAX_VALUES`
    accepts NaN and Infinity                        | refuses them unless the caller allows them
"""

import difflib
import json
import os
import re
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, NoReturn

from precis_text.errors import UserError

MIB = 1 << 20
ADDRESS = re.compile(r"(?:https?|ftp):/", re.IGNORECASE)  # a `Path` has one slash of two
MAX_DEPTH = 100
_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels"
MAX_VALUES = 4_000_000
MAX_BYTES = 64 * MIB
_DEEPEST = 3  # levels of a model's folder that are checked
_MOST_NAMES = 10_000  # in a model's folder
_KINDS = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class JsonError(ValueError):
    """The error of a text that `parse_json` refuses. The message gives the reason in one line, without the place."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, without ever blocking.

    Raises:
        UserError: if the file does not exist, is not readable, or is a folder, a pipe, a socket or a device.
    """
    found = stat_or_none(path)
    if found is None:
        raise UserError(f"{path}: no such file{suggest(path)}")
    _refuse(path, found.st_mode)  # opening a device can have side effects
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        _refuse(path, os.fstat(descriptor).st_mode)  # it may have changed in between
    except UserError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, *, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises:
        UserError: as `open_regular`, or if the file is larger.
    """
    try:
        with open_regular(path) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > limit:
        raise UserError(f"{path}: is larger than {size(limit)}, the limit for this kind of file")
    return content


def stat_or_none(path: Path) -> os.stat_result | None:
    """Return the status of a path, following links; None if it does not exist.

    Raises:
        UserError: if the status is not available: a parent folder denies access, or links form a loop.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL byte in the name
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def is_folder(path: Path) -> bool:
    """Return whether this is a folder. Unlike `Path.is_dir`, raise `UserError` if the status is not available."""
    found = stat_or_none(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def unreadable(path: Path, error: OSError) -> UserError:
    """Return the one-line error of a file that the system cannot read."""
    return UserError(f"{path}: cannot be read: {error.strerror or error}")


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder.

    Raises:
        UserError: if the folder cannot be read; `Path.glob` would treat it as empty.
    """
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error


def suggest(missing: str | Path) -> str:
    """Return the end of a "no such file" message: the closest name that exists, or what to do with an address."""
    if ADDRESS.match(str(missing)):
        return "; this is an address, and precis reads files only: download it first, then name the file"
    if Path(missing).is_symlink():
        return "; it is a link that leads nowhere"
    near = _nearest(Path(missing))
    return f"; did you mean {near}?" if near else ""


def _nearest(path: Path) -> Path | None:
    """Return the existing path closest to a missing one, whose folders may have wrong names too."""
    folder = path.parent if path.parent.is_dir() else _nearest(path.parent)
    if folder is None or path.name in ("", ".."):
        return None
    try:
        names = [name for name in names_in(folder) if name[0] != "." or path.name[0] == "."]
    except UserError:
        return None
    stems = {name: Path(name).stem.lower() for name in names}
    # Stems decide, since the same ending makes any two short names similar
    close = difflib.get_close_matches(path.stem.lower(), stems.values(), n=5, cutoff=0.7)
    alike = difflib.get_close_matches(path.name, [name for name in names if stems[name] in close], cutoff=0)
    return folder / alike[0] if alike else None


def size(count: int) -> str:
    """Format a number of bytes for people, in MiB from 1 MiB up."""
    return f"{count // MIB:,} MiB" if count >= MIB else f"{count:,} bytes"


def _refuse(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
    raise UserError(f"{path}: is {kind}, not a regular file; write its text to a file first")


def check_inside(folder: Path) -> None:
    """Refuse a folder that contains a link to a place outside it, or anything but folders and regular files.

    The cache of the Hugging Face hub may contain them: its `snapshots/COMMIT/NAME` links to `blobs/DIGEST` of the same
    repository.

    Raises:
        UserError: if the folder contains one, or more than `_MOST_NAMES` names; the message starts with the path.
    """
    root = folder.resolve()
    roots = (root, root.parent.parent / "blobs") if root.parent.name == "snapshots" else (root,)
    seen = 0
    level = [folder]
    for _ in range(_DEEPEST):
        deeper: list[Path] = []
        for place in level:
            for name in names_in(place):
                path = place / name
                seen += 1
                if seen > _MOST_NAMES:
                    raise UserError(
                        f"{folder}: contains more than {_MOST_NAMES:,} names; give the model's own folder"
                    )
                if _is_folder_inside(path, roots):
                    deeper.append(path)
        level = deeper


def is_plain_name(name: object) -> bool:
    """Return whether this is a bare file name: not a path, and not a parent folder."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "\0" not in name
        and PurePosixPath(name).name == name
        and PureWindowsPath(name).name == name
    )


def _is_folder_inside(path: Path, roots: tuple[Path, ...]) -> bool:
    try:
        if path.is_symlink():
            target = Path(os.path.realpath(path, strict=True))
            if not any(target.is_relative_to(root) for root in roots):
                raise UserError(
                    f"{path}: is a link to a place outside the folder; replace it with the file itself"
                )
        mode = path.stat().st_mode
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        return not path.is_symlink()
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: is neither a folder nor a regular file; remove it from the model's folder")
    return False


def parse_json(text: str | bytes, *, constants: bool = False, wrapping: int = 0) -> Any:
    """Return the value of a JSON text.

    Args:
        constants: allow NaN and Infinity, which Python writes and JSON does not have.
        wrapping: levels and values that precis itself added around a value that was within the limits.

    Raises:
        JsonError: if the text is not UTF-8 or not JSON, is nested deeper than `MAX_DEPTH`, has a duplicate key in one
            object, an integer of more than 4,300 digits, or more than `MAX_VALUES` values.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise JsonError(f"is not UTF-8 at byte {error.start + 1}") from None
    openings = text.count("[") + text.count("{")
    if openings + text.count(",") > MAX_VALUES + wrapping:
        raise JsonError(f"has more than {MAX_VALUES:,} values")
    decoder = _LENIENT if constants else _STRICT
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise JsonError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        around = text[: error.pos].rstrip()[-1:] + text[error.pos : error.pos + 1]
        is_comma = around in (",}", ",]") or text[error.pos :].strip() == ","
        raise JsonError(f"{error}{'; remove the comma there' if is_comma else ''}") from None
    except JsonError:
        raise
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise JsonError(str(error)) from None
        raise JsonError("has an integer of more than 4,300 digits") from None
    if openings > MAX_DEPTH and _is_deep(value, MAX_DEPTH + wrapping):
        raise JsonError(_TOO_DEEP)
    return value


def read_json(path: Path, *, limit: int = MAX_BYTES) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        UserError: if the file is missing, not regular, not readable or larger than `limit` bytes, or is not one JSON
            object that `parse_json` accepts; the message starts with the path.
    """
    try:
        value = parse_json(read_bounded(path, limit=limit).removeprefix(b"\xef\xbb\xbf"))
    except JsonError as error:
        raise UserError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: is not a JSON object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                shown = name if len(name) <= 40 else name[:40] + "..."
                raise JsonError(f"has the key {shown!r} twice")
            seen.add(name)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"contains {name}, which is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise JsonError(f"contains {digits[:40]}, which is too large")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object)


def _is_deep(value: Any, most: int) -> bool:
    """Return whether lists and objects are nested deeper than `most` levels, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
