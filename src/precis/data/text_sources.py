"""Unlabelled text from many files, one document at a time: text files, JSON lines, CSV and Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from precis.data.rows import SkippedRows, invalid_text, known_endings, read_rows
from precis.data.texts import NotTextError, decode_text
from precis.data.unit_marks import unmarked
from precis.errors import UserError

_TEXT = ".txt"
_SUMMARY = ".summary.txt"
_NAMED = "name one with --document-column"


@dataclass
class TextReport(SkippedRows):
    """What was passed over: bad rows, the first 20 with place and reason, and documents that were empty."""

    empty: int = 0


def text_files(sources: Iterable[str | Path]) -> list[Path]:
    """The files that the sources mean, in the order given; those of a folder or a pattern (``books/*.txt``) sorted.

    Raises:
        UserError: a source does not exist, is of an unknown kind, or a folder holds nothing readable.
    """
    endings = (_TEXT, *known_endings())
    files: list[Path] = []
    for path in (path for source in sources for path in _matching(source)):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and p.name.lower().endswith(endings))
            inside = [p for p in inside if not p.name.endswith(_SUMMARY)]
            if not inside:
                raise UserError(f"{path}: holds no readable file; known endings: {', '.join(endings)}")
            files += inside
        elif path.name.lower().endswith(endings):
            files.append(path)
        else:
            raise UserError(f"{path}: unknown kind of file; known endings: {', '.join(endings)}")
    times = Counter(path.absolute() for path in files)
    twice = [path for path in files if times[path.absolute()] > 1]
    if twice:
        raise UserError(f"{twice[0]}: is named twice; name every file once")
    return files


def _matching(source: str | Path) -> list[Path]:
    """The path itself, or what a pattern fits that the shell left as it is."""
    path = Path(source)
    if path.exists() or not has_magic(str(source)):
        return [path]
    root = Path(path.anchor)
    found = sorted(root.glob(str(path.relative_to(root))))
    if not found:
        raise UserError(f"{source}: no file fits this pattern")
    return found


def read_texts(
    files: Sequence[Path], *, column: str = "text", skip_bad: bool = False, report: TextReport | None = None
) -> Iterator[str]:
    """The documents of all files: a text file is one, every row of the others is one.

    Raises:
        UserError: a row cannot be read or lacks the column (with `skip_bad` it is passed over and reported).
    """
    report = report if report is not None else TextReport()
    for path in files:
        for place, text, problem in _documents(path, column):
            if problem and not skip_bad:
                remedy = "" if _NAMED in problem else "; mend it, or pass over such rows with --skip-bad"
                raise UserError(f"{place}: {problem}{remedy}")
            if problem:
                report.skip(f"{place}: {problem}")
            elif not text.strip():
                report.empty += 1
            else:
                yield unmarked(text)


def _documents(path: Path, column: str) -> Iterator[tuple[str, str, str]]:
    """(place, text, problem) of each document of a file."""
    if path.name.lower().endswith(_TEXT):
        try:
            yield str(path), decode_text(path.read_bytes()), ""
        except NotTextError as error:
            yield str(path), "", str(error)
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
        return
    for row in read_rows(path):
        place = f"{path}: {row.place}"
        value = row.values.get(column)
        if row.problem:
            yield place, "", row.problem
        elif column not in row.values:
            known = ", ".join(map(repr, row.values)) or "none"
            yield (
                place,
                "",
                f"there is no column {column!r} (columns: {known}); {_NAMED}",
            )
        elif not isinstance(value, str):
            yield place, "", f"column {column!r} holds no text"
        else:
            yield place, value, invalid_text(value)
