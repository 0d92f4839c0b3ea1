"""The list of contents of a PDF, which repeats the headings.

Its lines end in a page number. They are recognized by the dots before it; or below a heading that names the list; or
by a wide space before it, if the titles are in the text as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from precis_text.asides import CONTENTS
from precis_text.documents.pdf_lines import Line

_DOTTED = re.compile(r"(?:\s?[._·…]){4,}\s*(?:\d+|[ivxl]+)$")
_ENTRY = re.compile(r"(?P<title>.*[^\W\d_].*?)(?:[\s|]+)(?P<page>\d{1,4}|[ivxl]{1,6})$", re.DOTALL)
_HEADINGS = CONTENTS | {"figures", "tables"}
_FEWEST = 3  # entries without dots
_WRAPPED = 1  # lines of an entry before the one with its number


def without_contents(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines without those of a list of contents; all of them if there is nothing else."""
    lines = [line for page in pages for line in page]
    entries = {id(line) for line in lines if _DOTTED.search(line.text)}
    for begin, end, is_named in _runs(lines):
        if is_named or _is_repeated(lines, begin, end):
            entries |= {id(line) for line in lines[begin:end]}
    rest = [[line for line in page if id(line) not in entries] for page in pages]
    return rest if any(rest) else [[*page] for page in pages]


def _runs(lines: Sequence[Line]) -> Iterator[tuple[int, int, bool]]:
    """Yield runs of entries: the first, the place behind the last, and whether a heading names them."""
    number = 0
    while number < len(lines):
        end = _end(lines, number)
        if end is None:
            number += 1
            continue
        named = any(
            line.text.lower().strip(" :.") in _HEADINGS for line in lines[max(0, number - 2) : number]
        )
        yield number, end, named
        number = end


def _end(lines: Sequence[Line], begin: int) -> int | None:
    """Return the place behind the last entry of a run of `_FEWEST` or more that starts here."""
    pages: list[int] = []
    end, waiting, entries = begin, 0, 0
    for number in range(begin, len(lines)):
        found = _ENTRY.fullmatch(lines[number].text)
        page = int(found["page"]) if found and found["page"].isdigit() else None
        if found and (page is None or not pages or page >= pages[-1]):
            pages += [] if page is None else [page]
            end, waiting, entries = number + 1, 0, entries + 1
        elif entries and waiting < _WRAPPED and not lines[number].text.endswith((".", "!", "?", "。")):
            waiting += 1
        else:
            break
    return end if entries >= _FEWEST else None


def _is_repeated(lines: Sequence[Line], begin: int, end: int) -> bool:
    """Check whether wide spaces set the numbers apart, and most titles open other lines too."""
    run = lines[begin:end]
    apart = [line for line in run if line.cells or line.is_row]
    if len(apart) < _FEWEST or any(before.page > after.page for before, after in pairwise(run)):
        return False
    titles = [found["title"].strip(" |") for line in apart if (found := _ENTRY.fullmatch(line.text))]
    others = {_key(line.text) for line in (*lines[:begin], *lines[end:])}
    return 2 * sum(_key(title) in others for title in titles) > len(titles)


def _key(text: str) -> str:
    """Return a title without its section number, spaces and case."""
    return re.sub(r"^[\d.]+|\W", "", text.casefold())
