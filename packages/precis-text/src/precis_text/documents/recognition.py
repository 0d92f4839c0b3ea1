"""Recognize the text of pictures by Tesseract, where it is installed.

    picture -> tesseract -> a table of words with their boxes -> lines as those of a PDF

Tesseract runs under the limits of the reading process and reads all languages that are installed for it.
"""

from __future__ import annotations

import locale
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from statistics import median
from typing import Any

from precis_text.documents.passages import clean
from precis_text.documents.pdf_lines import Line, is_right_to_left
from precis_text.errors import UserError, first_line

PROGRAM = shutil.which("tesseract")
INSTALL = "install Tesseract (apt-get install tesseract-ocr)"
_SECONDS = 120  # for one picture
MOST_SECONDS = 1800.0  # for all pictures of a document
_MOST_LANGUAGES = 4  # each one takes more time
_NO_LANGUAGES = ("osd", "equ")
_HYPHENS = "-\u00ad\u2010"
_FEWEST_SURE = 30  # percent: words below it are specks
_LETTER = 0.75  # of the height of a line, the usual size of its letters
_SAME_SIZE = 0.35  # lines whose height differs less from the usual one are of the usual size
_DOTS = 300  # an inch; Tesseract is trained for it
_MOST_DOTS = 40_000_000  # of a picture


@cache
def languages() -> str:
    """Return the languages for Tesseract, as "eng+deu": all that are installed, or at most `_MOST_LANGUAGES`.

    If more are installed, they are only English and the language of the system.
    """
    found = _run(["--list-langs"], b"").splitlines()[1:]
    names = [name for name in map(str.strip, found) if name and name not in _NO_LANGUAGES and "/" not in name]
    if len(names) > _MOST_LANGUAGES:
        own = (locale.getlocale()[0] or "").lower()
        english = [name for name in names if name == "eng"]
        names = [*english, *(name for name in names if name[:2] == own[:2] and name != "eng")][
            :_MOST_LANGUAGES
        ]
    if not names:
        raise UserError(
            "needs a language of Tesseract, and none is installed; apt-get install tesseract-ocr-eng"
        )
    return "+".join(sorted(names, key=lambda name: name != "eng"))


def recognized(picture: bytes, page: int) -> list[Line]:
    """Return the lines of a picture in a format that Tesseract reads.

    Args:
        page: counted from 0.

    Raises:
        UserError: Tesseract fails, or takes more than `_SECONDS`.
    """
    return _lines(_run(["stdin", "stdout", "-l", languages(), "tsv"], picture), page)


def picture_of(page: Any) -> bytes:
    """Return a page of `pypdfium2.PdfDocument` as a gray picture in the format PGM."""
    width, height = page.get_size()
    dots = width * height * (_DOTS / 72) ** 2
    scale = _DOTS / 72 * min(1.0, (_MOST_DOTS / max(dots, 1.0)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        rows = memoryview(bitmap.buffer)
        solid = b"".join(
            bytes(rows[start : start + bitmap.width])
            for start in range(0, bitmap.stride * bitmap.height, bitmap.stride)
        )
        return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + solid
    finally:
        bitmap.close()


def _run(arguments: list[str], given: bytes) -> str:
    assert PROGRAM is not None
    try:
        done = subprocess.run(
            [PROGRAM, *arguments], input=given, capture_output=True, timeout=_SECONDS, check=False,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UserError(f"takes Tesseract more than {_SECONDS} seconds; use a smaller picture") from None
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip() or f"code {done.returncode}"
        raise UserError(f"is refused by Tesseract: {first_line(ValueError(told))}; save it as PNG")
    return done.stdout.decode("utf-8", "replace")


def _lines(table: str, page: int) -> list[Line]:
    """Build lines from Tesseract's table of words, one word a row."""
    rows = [row.split("\t") for row in table.splitlines()[1:]]
    words = [row for row in rows if len(row) == 12 and row[0] == "5" and _is_sure(row)]
    found = [_line([*group], page) for _, group in groupby(words, key=lambda row: row[1:5])]
    return [*_with_usual_size(found)]


def _is_sure(row: list[str]) -> bool:
    return bool(row[11].strip()) and float(row[10]) >= _FEWEST_SURE


def _line(words: list[list[str]], page: int) -> Line:
    boxes = [[int(field) for field in row[6:10]] for row in words]  # left, top, width, height
    text = clean(" ".join(row[11] for row in words))
    parted = text[-1] if len(text) > 1 and text[-1] in _HYPHENS and text[-2].isalpha() else ""
    starts, ends = [box[0] for box in boxes], [box[0] + box[2] for box in boxes]
    top, bottom = min(box[1] for box in boxes), max(box[1] + box[3] for box in boxes)
    mirrored = is_right_to_left(text)
    return Line(
        text=text.removesuffix(parted) if parted else text, page=page,
        left=-max(ends) if mirrored else min(starts), right=-min(starts) if mirrored else max(ends),
        base=-float(bottom), size=_LETTER * (bottom - top) or 1.0, first_word=float(boxes[0][2]), parted=parted,
    )  # fmt: skip


def _with_usual_size(lines: list[Line]) -> Iterator[Line]:
    """Yield the lines; the height depends on the letters in a line, so sizes near the usual one become that one."""
    usual = median(line.size for line in lines) if lines else 1.0
    for line in lines:
        yield replace(line, size=usual) if abs(line.size - usual) < _SAME_SIZE * usual else line
