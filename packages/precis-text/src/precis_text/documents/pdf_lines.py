"""The lines of a PDF page with their places, sizes and weights, by PDFium.

PDFium gives letters in the order of the file, and ends a line where the next letter is elsewhere. A hyphen that
splits a word at the end of a line has its own mark.

A line from right to left is mirrored: it starts at its right end, and its places are negative.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from precis_text.documents.passages import clean

_PARTED = (0x02, 0xFFFE)  # PDFium's marks of a hyphen at the end of a line; no line break follows
_HYPHENS = "-\u00ad\u2010"
# Names of bold fonts, including TeX's. The weight in a file is a guess from the stem width, and often wrong.
_BOLD = re.compile(rb"bold|black|heavy|demi|medi$|^(?:[A-Z]{6}\+)?(?:CM|EC|SF)B(?:X|\d)", re.IGNORECASE)
_MOST_NAME = 128  # bytes of a font's name
_OWN = range(0xE000, 0xF900)  # private characters of one font
_UNKNOWN = 0xFFFD
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_MARKS_OF_WORDS = ".,;:!?'\"()-%/&€$–—’“”"
_JUMP = 0.9  # of the letter size: more than a raised number is raised
_PROBES = 20  # pairs of letters that show how wide they stand apart
_SAME_GAP, _LEAST_GAP = 1.35, 0.05  # times the usual gap, and of the letter size
_FEWEST_SPACED = 4  # spaces in a line of letters that stand apart
WIDE_GAP = 2.0  # times the letter size: such a space stands between cells, not words
# A narrower one may do so, which is as many times as wide as another one of its line
_NARROW_GAP, _WIDER = 0.58, 1.6
_MOST_IN_A_WORD, _FEWEST_SMALL, _FEWEST_OF_WORDS = 12, 0.6, 0.9  # of text in words


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text.

    Attributes:
        text: without white space around it, and without the hyphen of a word that is split at its end.
        page: counted from 0.
        left, right: its start and end, in points along the reading direction.
        base: the baseline of its letters, in points; more is further up for the reader.
        size: the size of its letters, in points.
        direction: the reading direction, in degrees; 0 is to the right on a page that is not rotated.
        is_bold: whether all of it is bold.
        first_word: width of its first word, in points.
        parted: the hyphen that splits a word at its end; "" if there is none.
        cells: its parts, if wide spaces divide it.
        parts: the same, if spaces divide it that are wider than those of words, so that they may be cells.
        is_row: whether it is a row of a table or of a form, which no other line continues.
    """

    text: str
    page: int = 0
    left: float = 0.0
    right: float = 0.0
    base: float = 0.0
    size: float = 10.0
    direction: int = 0
    is_bold: bool = False
    first_word: float = 0.0
    parted: str = ""
    cells: tuple[Line, ...] = ()
    parts: tuple[Line, ...] = ()
    is_row: bool = False


@dataclass(frozen=True)
class PageText:
    """The text of a page.

    Attributes:
        lines: in the order of the file.
        letters: the number of characters that are not white space.
        unreadable: the number of them that the font does not map to a letter.
    """

    lines: list[Line]
    letters: int
    unreadable: int


def page_text(page: Any, number: int) -> PageText:
    """Return the text of a page of `pypdfium2.PdfDocument`; `number` counts from 0."""
    text_page = page.get_textpage()
    try:
        letters = _Letters(text_page)
        lines = [
            letters.line(part, parted if part[-1] == run[-1] else "", number)
            for run, parted in letters.runs()
            for part in letters.at_one_height(run)
        ]
        return PageText(lines, *letters.readable())
    finally:
        text_page.close()


class _Letters:
    """The letters of a page by their index in PDFium's list."""

    def __init__(self, text_page: Any) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium, self._raw = pdfium, text_page.raw
        count = text_page.count_chars()
        self.signs = [pdfium.FPDFText_GetUnicode(self._raw, number) for number in range(count)]

    def readable(self) -> tuple[int, int]:
        """Count the characters that are not white space, and those of them that the font does not identify.

        Some programs name an encoding of letters where a font should list them. PDFium reports each letter as
        unidentified, although it is right. Such letters count as identified if they form words.
        """
        shown = [number for number, sign in enumerate(self.signs) if not chr(sign).isspace()]
        lost = {n for n in shown if self.signs[n] in _OWN or self.signs[n] in (0, _UNKNOWN)}
        guessed = {n for n in shown if self._pdfium.FPDFText_HasUnicodeMapError(self._raw, n) == 1} - lost
        if guessed and _forms_words("".join(self._with_spaces(guessed))):
            guessed = set()
        return len(shown), len(lost) + len(guessed)

    def _with_spaces(self, numbers: set[int]) -> Iterator[str]:
        """Yield these characters, and the white space next to them."""
        for number, sign in enumerate(self.signs):
            if number in numbers or (chr(sign).isspace() and numbers & {number - 1, number + 1}):
                yield chr(sign)

    def runs(self) -> Iterator[tuple[list[int], str]]:
        """Yield the letters of each non-blank line, without white space around them, and the hyphen that ends it."""
        line: list[int] = []
        for number, sign in enumerate([*self.signs, 0x0A]):
            if sign not in (0x0A, 0x0D, *_PARTED):
                line.append(number)
                continue
            parted = "-" if sign in _PARTED else ""
            while line and chr(self.signs[line[-1]]).isspace():
                line.pop()
            if len(line) > 1 and chr(self.signs[line[-1]]) in _HYPHENS and not parted:
                parted = chr(self.signs[line.pop()])
            while line and chr(self.signs[line[0]]).isspace():
                line.pop(0)
            if line:
                yield line, parted
            line = []

    def at_one_height(self, letters: list[int]) -> Iterator[list[int]]:
        """Divide letters where the baseline jumps, which ends no line of PDFium around a single letter."""
        part: list[int] = []
        size, direction = self._shape(letters[0])
        for before, number in zip([letters[0], *letters], letters, strict=False):
            if (
                chr(self.signs[before]).isspace()
                and part
                and abs(self._base(number, direction) - self._base(part[0], direction)) > _JUMP * size
            ):
                while part and chr(self.signs[part[-1]]).isspace():
                    part.pop()
                if part:
                    yield part
                part, (size, direction) = [], self._shape(number)
            part.append(number)
        yield part

    def line(self, letters: list[int], parted: str, page: int) -> Line:
        """Build the line of these letters."""
        shapes = [self._shape(number) for number in (letters[0], letters[len(letters) // 2], letters[-1])]
        size, direction = median(size for size, _ in shapes) or 1.0, shapes[0][1]
        letters = self._without_false_spaces(letters, direction, size)
        whole = self._part(letters, parted, page, size=size, direction=direction)
        divided = [self._cells(letters, direction, gap, size=size) for gap in (_NARROW_GAP, WIDE_GAP)]
        if len(divided[0]) == 1:
            return whole
        parts, cells = (
            tuple(
                self._part(cell, parted if cell is pieces[-1] else "", page, size=size, direction=direction)
                for cell in pieces
            )
            for pieces in divided
        )
        return with_cells(whole, cells, parts) if cells[1:] else replace(whole, parts=parts)

    def _without_false_spaces(self, letters: list[int], direction: int, size: float) -> list[int]:
        """Leave out spaces that PDFium assumes between letters that are as close as others of the line."""
        assumed = [
            (number, self._gap(before, after, direction))
            for before, number, after in zip(letters, letters[1:], letters[2:], strict=False)
            if self.signs[number] == 0x20 and self._pdfium.FPDFText_IsGenerated(self._raw, number)
        ]
        if not assumed:
            return letters
        pairs = [pair for pair in pairwise(letters) if not any(chr(self.signs[n]).isspace() for n in pair)]
        step = max(1, len(pairs) // _PROBES)
        gaps = [self._gap(*pair, direction) for pair in pairs[::step]]
        if len(assumed) >= _FEWEST_SPACED and len(pairs) < len(assumed):  # l e t t e r s
            gaps = [gap for _, gap in assumed]
        widest = _SAME_GAP * max(0.0, median(gaps)) + _LEAST_GAP * size if gaps else 0.0
        false = {number for number, gap in assumed if gap <= widest}
        return [number for number in letters if number not in false]

    def _gap(self, before: int, after: int, direction: int) -> float:
        (start, end), (following, last) = self._span(before, direction), self._span(after, direction)
        return max(following - end, start - last)

    def _part(self, letters: list[int], parted: str, page: int, *, size: float, direction: int) -> Line:
        text = clean(_decoded([self.signs[number] for number in letters])).rstrip()
        if parted and not text[-1:].isalnum():
            text, parted = text + parted, ""
        mirrored = is_right_to_left(text)
        while len(letters) > 1 and chr(self.signs[letters[-1]]).isspace():
            letters = letters[:-1]
        spaces = [k for k, number in enumerate(letters) if chr(self.signs[number]).isspace()]
        first, last = letters[: spaces[0] if spaces else None], letters[spaces[-1] + 1 if spaces else 0 :]
        left, end = self._extent(first, direction, mirrored=mirrored)
        return Line(
            text=text, page=page, left=left, right=self._extent(last, direction, mirrored=mirrored)[1],
            base=self._base(letters[0], direction), size=size, direction=direction,
            is_bold=all(self._is_bold(n) for n in (letters[0], letters[len(letters) // 2], letters[-1])),
            first_word=end - left, parted=parted,
        )  # fmt: skip

    def _cells(self, letters: list[int], direction: int, gap: float, *, size: float) -> list[list[int]]:
        """Divide the letters of a line at its wide spaces."""
        shown = [number for number in letters if not chr(self.signs[number]).isspace()]
        gaps = {
            after: self._gap(before, after, direction)
            for before, after in pairwise(shown)
            if before != after - 1
        }
        least = gap * size
        if len(gaps) > 1:
            least = max(least, min(_WIDER * min(gaps.values()), WIDE_GAP * size))
        cells: list[list[int]] = [[]]
        for number in letters:
            if gaps.get(number, -math.inf) >= least:
                while chr(self.signs[cells[-1][-1]]).isspace():
                    cells[-1].pop()
                cells.append([])
            cells[-1].append(number)
        return cells

    def _extent(self, word: list[int], direction: int, *, mirrored: bool) -> tuple[float, float]:
        """Return the start and the end of a word along the direction, mirrored for text from right to left."""
        spans = [self._span(number, direction) for number in (word[0], word[-1])]
        left, right = min(left for left, _ in spans), max(right for _, right in spans)
        return (-right, -left) if mirrored else (left, right)

    def _shape(self, number: int) -> tuple[float, int]:
        """Return the size in points and the direction in degrees of a letter."""
        matrix = self._pdfium.FS_MATRIX()
        size = self._pdfium.FPDFText_GetFontSize(self._raw, number)
        if not self._pdfium.FPDFText_GetMatrix(self._raw, number, matrix):
            return size, 0
        scale = math.hypot(matrix.c, matrix.d) or 1.0
        return size * scale, round(math.degrees(math.atan2(matrix.b, matrix.a))) % 360

    def _span(self, number: int, direction: int) -> tuple[float, float]:
        """Return the start and the end of a letter along the direction."""
        left, right, bottom, top = (ctypes.c_double() for _ in range(4))
        self._pdfium.FPDFText_GetCharBox(self._raw, number, left, right, bottom, top)
        along, _ = _axes(direction)
        corners = [x.value * along[0] + y.value * along[1] for x in (left, right) for y in (bottom, top)]
        return min(corners), max(corners)

    def _base(self, number: int, direction: int) -> float:
        x, y = ctypes.c_double(), ctypes.c_double()
        self._pdfium.FPDFText_GetCharOrigin(self._raw, number, x, y)
        _, up = _axes(direction)
        return x.value * up[0] + y.value * up[1]

    def _is_bold(self, number: int) -> bool:
        name, flags = ctypes.create_string_buffer(_MOST_NAME), ctypes.c_int()
        self._pdfium.FPDFText_GetFontInfo(self._raw, number, name, _MOST_NAME, flags)
        return _BOLD.search(name.value) is not None


def with_cells(line: Line, cells: tuple[Line, ...], parts: tuple[Line, ...] = ()) -> Line:
    """Return a line that consists of these cells."""
    return replace(
        line, text=" ".join(cell.text for cell in cells), left=cells[0].left, right=cells[-1].right,
        first_word=cells[0].first_word, is_bold=all(cell.is_bold for cell in cells), parted=cells[-1].parted,
        cells=cells, parts=parts,
    )  # fmt: skip


def is_right_to_left(text: str) -> bool:
    """Check whether most letters of a text run from right to left."""
    return 2 * len(_RIGHT_TO_LEFT.findall(text)) > sum(sign.isalpha() for sign in text)


def _forms_words(text: str) -> bool:
    """Check whether a text consists of words: mostly small letters, with spaces as frequent as between words.

    Numbers of glyphs, which a font without letters gives, are capitals, signs and control characters.
    """
    solid = "".join(text.split())
    letters = [sign for sign in solid if sign.isalpha()]
    of_words = sum(sign.isalnum() or sign in _MARKS_OF_WORDS for sign in solid)
    return (
        len(text.split()) * _MOST_IN_A_WORD >= len(solid)
        and sum(not sign.isupper() for sign in letters) >= _FEWEST_SMALL * len(letters)
        and len(letters) >= _FEWEST_SMALL * len(solid)
        and of_words >= _FEWEST_OF_WORDS * len(solid)
    )


def _axes(direction: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the unit vectors along a direction and up from it."""
    cosine, sine = math.cos(math.radians(direction)), math.sin(math.radians(direction))
    return (cosine, sine), (-sine, cosine)


def _decoded(signs: list[int]) -> str:
    """Convert characters to text; on Windows PDFium gives those beyond 16 bits in two halves."""
    text = "".join(map(chr, signs))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
