"""Lines that a book or a report repeats on page after page: running heads, running feet and page numbers.

A line at the edge of a page is one of them if it is the same, except for the page number,

- on most pages, or on most left or most right pages;
- or, as the outermost line, on three consecutive pages, left and right ones separately, as chapter heads are;
- or, as the outermost line, with the page number at its start or end on two pages, or as its only text on one;
- or one that a browser prints: time and title, or address and page number.

A number counts as the page number if it increases with the pages. So the rows of a table across pages stay.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from precis_text.documents.pdf_lines import Line

_EDGE = 2  # rows at the top and at the bottom of a page
_FEWEST = 3  # pages that repeat a running line, at least
_MOST_PAGES = 0.6  # share of the pages that counts as most
_NUMBER = re.compile(r"(?<![\d.,])\d{1,5}(?![\d,]|\.\d)")
_ROMAN = re.compile(r"[ivxl]{1,7}")
_ADDRESS = re.compile(r"(?:https?|file)://\S+ \d{1,4}/\d{1,4}")  # with a page number
_TIME = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}:\d\d(?:\s?[AP]M)?\b")
_HERE = "#"
_ROMAN_HERE = "#roman"


def running_lines(pages: Sequence[Sequence[Line]]) -> set[Line]:
    """Return the running lines of these pages; none if the pages contain nothing else."""
    left_out = _printed(pages)
    if len(pages) >= _FEWEST:
        edges = [(number, *edge) for number, lines in enumerate(pages) for edge in _edges(lines)]
        offset = _page_number(edges, len(pages))
        found: dict[str, list[tuple[int, Line, bool]]] = defaultdict(list)
        for number, line, is_outermost in edges:
            for key in _keys(line.text, number, offset):
                found[key].append((number, line, is_outermost))
        left_out |= {line for key, places in found.items() for line in _left_out(key, places, len(pages))}
    return left_out if any(line not in left_out for lines in pages for line in lines) else set()


def _printed(pages: Sequence[Sequence[Line]]) -> set[Line]:
    """Return the lines that a browser printed: address and page number, and time and title at the page's other end."""
    ends = [_outermost(lines) for lines in pages]
    outer = {line for rows in ends for line, _ in rows}
    # messages of a chat or a log have times, too, but each another one
    has_times = any(_TIME.match(line.text) for lines in pages for line in lines if line not in outer)
    printed = [rows for rows in ends if any(_ADDRESS.fullmatch(text) for _, text in rows)]
    pages_of = Counter(text for rows in printed for text in {text for _, text in rows})
    return {
        line
        for rows in printed
        for line, text in rows
        if _ADDRESS.fullmatch(text) or (_TIME.match(text) and (pages_of[text] > 1 or not has_times))
    }


def _outermost(lines: Sequence[Line]) -> list[tuple[Line, str]]:
    """Return the lines in the outermost rows of a page, with the text of the row."""
    outermost = (line for line, is_outermost in _edges(lines) if is_outermost)
    rows = [[*row] for _, row in groupby(outermost, key=lambda line: round(line.base))]
    texts = (" ".join(" ".join(line.text for line in row).replace("|", " ").split()) for row in rows)
    return [(line, text) for row, text in zip(rows, texts, strict=True) for line in row]


def _left_out(key: str, places: list[tuple[int, Line, bool]], count: int) -> list[Line]:
    """Return the running lines among the lines with one key."""
    numbers = {number for number, _, _ in places}
    outermost = {number for number, _, is_outermost in places if is_outermost}
    if _is_on_most(numbers, count):
        return [line for _, line, _ in places]
    numbered = key.startswith(_HERE) or key.endswith(_HERE)
    if _in_a_row(outermost) >= _FEWEST or (numbered and (key == _HERE or len(outermost) >= 2)):
        return [line for _, line, is_outermost in places if is_outermost]
    return []


def _is_on_most(numbers: set[int], count: int) -> bool:
    """Check whether these are most pages, or most left or most right ones and no others."""
    if len(numbers) < _FEWEST:
        return False
    same_side = len({number % 2 for number in numbers}) == 1
    return len(numbers) >= _MOST_PAGES * (count / 2 if same_side else count)


def _in_a_row(numbers: set[int]) -> int:
    """Return the length of the longest run of these pages with no step above two."""
    longest = run = 0
    before = None
    for number in sorted(numbers):
        run = run + 1 if before is not None and number - before <= 2 else 1
        longest, before = max(longest, run), number
    return longest


def _edges(lines: Sequence[Line]) -> Iterator[tuple[Line, bool]]:
    """Yield the lines in the rows at the top and the bottom of a page, and whether their row is the outermost."""
    if not lines:
        return
    reading = Counter(line.direction for line in lines).most_common(1)[0][0]
    upright = sorted((line for line in lines if line.direction == reading), key=lambda line: -line.base)
    rows = [[*row] for _, row in groupby(upright, key=lambda line: round(line.base))]
    for place, row in enumerate(rows):
        depth = min(place, len(rows) - 1 - place)
        if depth < _EDGE:
            yield from ((line, depth == 0) for line in row)


def _page_number(edges: Sequence[tuple[int, Line, bool]], count: int) -> int | None:
    """Return the printed page number minus the page's index; None if the pages are not numbered."""
    votes = Counter(
        offset
        for number, offset in {
            (number, int(found.group()) - number)
            for number, line, is_outermost in edges
            if is_outermost
            for found in _NUMBER.finditer(line.text)
        }
    )
    offset, pages = max(votes.items(), key=lambda vote: vote[1], default=(0, 0))
    return offset if pages >= max(_FEWEST, count / 2) else None


def _keys(text: str, number: int, offset: int | None) -> set[str]:
    """Return the text unchanged, and with a placeholder for each number that may be the page's."""
    text = " ".join(text.split())
    if _ROMAN.fullmatch(text):
        return {_ROMAN_HERE}
    if offset is None:
        return {text}
    here = [found for found in _NUMBER.finditer(text) if int(found.group()) == number + offset]
    alone = {text[: one.start()] + _HERE + text[one.end() :] for one in here}  # "Page 5 of 5"
    return {text, *alone}
