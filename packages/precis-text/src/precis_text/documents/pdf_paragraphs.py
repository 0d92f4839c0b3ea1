"""Lines of a PDF -> paragraphs and headings. A PDF stores the positions of letters, but not paragraphs.

A line was wrapped if the first word of the next line would not have fitted after it, in points, or in letters where
a program wraps at a number of letters. Wrapped lines are joined. A paragraph ends at a line that was not wrapped, and
before a line that is set apart: by more space, an indent after a full stop, another size or weight, or a bullet. A
paragraph continues in the next column or on the next page, past footnotes, if its last line was wrapped and ends no
sentence.

A short paragraph in larger or bolder letters than most is a heading.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from precis_text.documents.pdf_lines import Line
from precis_text.documents.plain_text import DividedWords

_SAME_SIZE = 1.12  # sizes with a smaller ratio count as equal
_APART, _FAR = 1.15, 1.7  # times the usual line distance, at least: between paragraphs, and between blocks
_SPACE = 0.7  # of the letter size: the space that a word needs before it to fit
_INDENT = 0.5  # of the letter size
_FEWEST_WRAPPED, _MOST_WRAPPED = 3, 0.7  # lines, and their share, that a number of letters explains
_PROSE, _RAGGED = 6, 0.25  # words of a line; share of the width by which ragged lines are shorter
_NARROW = 0.6  # of the usual width: a narrower block holds titles or names, not wrapped lines
_HEADING_LINES, _HEADING_LENGTH = 3, 200
_ENDED = re.compile(r"""[.!?:;…。！？؟۔।][\])}"'”’»“]*(?:\s?\[?\d{1,3}\]?)?$""")
_BULLET = re.compile(r"[•◦▪‣●○■□–—*-]\s|[•◦▪‣●○■□]$")
_ITEM = re.compile(r"(?:\(?\d{1,3}[.)]|\(?[A-Za-z][.)]|\[\d{1,3}\])\s")
_SURE_BULLETS = "•◦▪‣●○■□"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST = re.compile(rf"(?<![^\W\d_]){_WORD.pattern}$")
_WIDE = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uff60]")  # scripts without spaces


@dataclass
class Paragraph:
    """Lines that form one text.

    Attributes:
        lines: in order; they may be on several pages.
        edge: the right edge of its block, in points.
        width: the width of its block, in points.
        between: the separator from the paragraph before: a blank line or a line break.
        is_first: whether it opens a column or a page.
        is_heading: whether its letters mark it as a heading.
    """

    lines: list[Line]
    edge: float
    width: float
    between: str = "\n\n"
    is_first: bool = False
    is_heading: bool = field(default=False)

    @property
    def text(self) -> str:
        """The first lines, enough to recognize a heading."""
        return " ".join(line.text for line in self.lines[: _HEADING_LINES + 1])


def paragraphs_of(pages: Iterable[Sequence[Line]]) -> list[Paragraph]:
    """Return the paragraphs of these pages, in order."""
    lines = [line for page in pages for line in page]
    if not lines:
        return []
    body = _usual(lines)
    distance = _usual_distance(lines)
    blocks = [*_blocks(lines, distance)]
    widths = [max(line.right for line in block) - min(line.left for line in block) for block in blocks]
    by_lines = [width for block, width in zip(blocks, widths, strict=True) if len(block) > 2 for _ in block]
    usual_width = median(by_lines) if by_lines else 0.0
    found: list[Paragraph] = []
    for block, width in zip(blocks, widths, strict=True):
        for paragraph in _paragraphs(
            block, width, is_narrow=width < _NARROW * usual_width, distance=distance
        ):
            paragraph.is_heading = _is_heading(paragraph, body)
            before = _unfinished(found, paragraph)
            if before is None:
                found.append(paragraph)
            else:
                before.lines += paragraph.lines
                before.edge, before.width = paragraph.edge, paragraph.width
    return found


def _usual(lines: Sequence[Line]) -> tuple[float, bool]:
    """Return the size and weight of most letters."""
    letters: Counter[tuple[float, bool]] = Counter()
    for line in lines:
        letters[round(line.size, 1), line.is_bold] += len(line.text)
    return letters.most_common(1)[0][0]


def _usual_distance(lines: Sequence[Line]) -> float:
    """Return the median line distance as a multiple of the letter size."""
    steps = [
        (line.base - below.base) / line.size for line, below in pairwise(lines) if _is_below(line, below)
    ]
    return median(steps) if steps else 1.2


def _is_below(line: Line, below: Line) -> bool:
    """Check whether a line is below another one of its size, in the same column."""
    return (
        line.page == below.page
        and line.direction == below.direction
        and 0.5 * line.size < line.base - below.base < 4 * line.size
        and min(line.right, below.right) > max(line.left, below.left)
        and max(line.size, below.size) < _SAME_SIZE * min(line.size, below.size)
    )


def _blocks(lines: Sequence[Line], distance: float) -> Iterator[list[Line]]:
    """Yield runs of lines of one size, one below the other."""
    block: list[Line] = []
    for line in lines:
        if block and not (
            _is_below(block[-1], line)
            and block[-1].base - line.base < _FAR * distance * line.size
            and (block[-1].is_bold == line.is_bold or _goes_on(block[-1], line))
        ):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _goes_on(line: Line, following: Line) -> bool:
    """Check whether the words show that a sentence continues on the following line."""
    return bool(line.parted) or (following.text[:1].islower() and not _ENDED.search(line.text))


def _paragraphs(block: list[Line], width: float, *, is_narrow: bool, distance: float) -> Iterator[Paragraph]:
    edge = max(line.right for line in block)
    paragraph = Paragraph([block[0]], edge, width, is_first=True)
    letters = _letters_of(block, edge)
    is_prose = len(block) >= _FEWEST_WRAPPED and median(len(line.text.split()) for line in block) >= _PROSE
    for line, following in pairwise(block):
        fits = _fits(line, following, edge, letters)
        fits = fits and not (is_prose and _is_full(line, following, edge, width))
        between = _break(line, following, paragraph, fits=fits, is_narrow=is_narrow, distance=distance)
        if between:
            yield paragraph
            paragraph = Paragraph([following], edge, width, between)
        else:
            paragraph.lines.append(following)
    yield paragraph


def _fits(line: Line, following: Line, edge: float, letters: int | None) -> bool:
    """Check whether the first word of the following line fits after a line.

    Args:
        letters: the most in a line, where a program wraps at a number of letters; None elsewhere.
    """
    if line.right + _SPACE * line.size + following.first_word > edge:
        return False
    return letters is None or _wrapped_length(line, following) <= letters


def _is_full(line: Line, following: Line, edge: float, width: float) -> bool:
    """Check whether a long line ends in the middle of a sentence, as ragged lines do."""
    goes_on = following.text[:1].isalpha() and not following.text[:1].isupper()
    return goes_on and not _ENDED.search(line.text) and edge - line.right <= _RAGGED * width


def _wrapped_length(line: Line, following: Line) -> int:
    return len(line.text) + 1 + len(following.text.split(maxsplit=1)[0])


def _letters_of(block: Sequence[Line], edge: float) -> int | None:
    """Return the number of letters at which a block is wrapped; None if its lines end at an edge."""
    pairs = [
        (line, following) for line, following in pairwise(block) if not line.parted and following.text.strip()
    ]
    most = max(len(line.text) for line in block)
    by_edge = sum(not _fits(line, following, edge, None) for line, following in pairs)
    by_letters = sum(_wrapped_length(line, following) > most for line, following in pairs)
    enough = len(pairs) >= _FEWEST_WRAPPED and by_letters >= _MOST_WRAPPED * len(pairs)
    return most if enough and by_letters > by_edge else None


def _break(
    line: Line, following: Line, paragraph: Paragraph, *, fits: bool, is_narrow: bool, distance: float
) -> str:
    """Return the break between a line and the following one of its block: nothing, a line break or a blank line."""
    if line.parted:
        return ""
    ended = bool(_ENDED.search(line.text))
    is_apart = line.base - following.base > _APART * distance * line.size
    if line.is_row or following.is_row:
        return "\n\n" if is_apart else "\n"
    shift = following.left - line.left
    if len(paragraph.lines) == 1 and shift < 0:  # after an indented line
        shift = 0.0
    if _BULLET.match(following.text) and (following.text[0] in _SURE_BULLETS or ended or fits):
        return "\n"
    if _ITEM.match(following.text) and (ended or fits):
        return "\n"
    if is_apart and not (_goes_on(line, following) and not fits):
        return "\n\n"
    if ended and abs(shift) > _INDENT * line.size:
        return "\n\n"
    if fits:
        return "\n\n" if ended else "\n"
    return "\n" if is_narrow and not _goes_on(line, following) else ""


def _is_heading(paragraph: Paragraph, body: tuple[float, bool]) -> bool:
    size, is_bold = body
    lines = paragraph.lines
    text = paragraph.text
    stands_out = lines[0].size >= _SAME_SIZE * size or (
        all(line.is_bold for line in lines) and not is_bold and lines[0].size > size / _SAME_SIZE
    )
    return (
        stands_out
        and not lines[0].is_row
        and len(lines) <= _HEADING_LINES
        and len(text) <= _HEADING_LENGTH
        and sum(sign.isalpha() for sign in text) >= 2
        and text[-1:] not in ".;,"
        and text[0] not in _SURE_BULLETS
    )


def _unfinished(found: Sequence[Paragraph], following: Paragraph) -> Paragraph | None:
    """Find the paragraph that continues in the one that opens a column or a page."""
    first = following.lines[0]
    if not following.is_first or following.is_heading or first.is_row or _BULLET.match(first.text):
        return None
    for before in reversed(found):
        last = before.lines[-1]
        if last.page < first.page - 1:
            return None
        if last.size < first.size / _SAME_SIZE and not before.is_heading:
            continue  # a footnote
        is_same = max(last.size, first.size) < _SAME_SIZE * min(last.size, first.size)
        jumps = last.page != first.page or last.base < first.base or last.right <= first.left
        if before.is_heading or last.is_row or not is_same or not jumps or last.is_bold != first.is_bold:
            return None
        if len(before.lines) == 1:
            return before if _goes_on(last, first) else None
        was_wrapped = last.right + _SPACE * last.size + first.first_word > before.edge
        return before if last.parted or (was_wrapped and not _ENDED.search(last.text)) else None
    return None


class Joiner:
    """A joiner of lines. The other words of the document decide whether a word keeps the hyphen at a line's end."""

    def __init__(self, lines: Iterable[Line]) -> None:
        lines = [*lines]
        pieces = (_pieces(line, following) for line, following in pairwise(lines) if line.parted == "-")
        self._words = DividedWords("\n".join(line.text for line in lines), [*filter(None, pieces)])

    def text(self, lines: Sequence[Line]) -> str:
        """Join lines into one."""
        return "".join(
            line.text + self.behind(line, following) for line, following in pairwise([*lines, None]) if line
        )

    def behind(self, line: Line, following: Line | None) -> str:
        """Return the separator between the words of a line and those of the following one."""
        if following is None:
            return line.parted.replace("\u00ad", "-")
        if line.parted:
            return self._hyphen(line, following)
        return "" if _WIDE.match(line.text[-1:]) and _WIDE.match(following.text[:1]) else " "

    def _hyphen(self, line: Line, following: Line) -> str:
        if line.parted == "\u00ad":
            return ""
        pieces = _pieces(line, following)
        return self._words.hyphen(*pieces) if pieces else "-"


def _pieces(line: Line, following: Line) -> tuple[str, str] | None:
    """Return the pieces of a word that a line's end divides; None where the hyphen is part of the text."""
    first, second = _LAST.search(line.text), _WORD.match(following.text)
    if first is None or second is None or "-" in first.group() or second.group()[0].isupper():
        return None
    return first.group(), second.group().lower()
