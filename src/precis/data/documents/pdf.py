"""PDFs, by pypdf: the text of each page, without the lines that stand on every page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from precis.data.documents.passages import Passages, Writer, clean
from precis.errors import UserError

_MOST_PAGES = 10_000
_MOST_TEXT = 64_000_000  # characters
_MOST_HEADINGS = 10_000
_EDGE = 2  # lines at the top and at the bottom of a page that may be a running head or a page number
_FEWEST_PAGES = 3  # on which a line stands that is left out
_BROKEN_WORD = re.compile(r"(\w)-\n([a-zà-öø-ÿß]\S*)[ \n]?")
_UNREADABLE = re.compile(r"[\ufffd\ue000-\uf8ff]|/g\d+|\(cid:\d+\)", re.IGNORECASE)
_ENDS = (".", "!", "?", ":", "”", "“", '"', "»", ")", "。")


def read(content: bytes) -> Passages:
    """Read a PDF. Pages, and headings that its outline names, are the places.

    Raises:
        UserError: it is locked, broken, or holds images or unreadable letters alone.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted:
            _unlock(reader)
        count = len(reader.pages)
        if count > _MOST_PAGES:
            raise UserError(f"has {count:,} pages; at most {_MOST_PAGES:,} are read, split it")
        pages = _pages(reader)
        headings = _headings(reader)
    except (PyPdfError, KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"is broken: {_told(error)}; save or download it again") from None
    if not count:
        raise UserError("has no page; save or download it again")
    return _written(pages, headings)


def _unlock(reader: Any) -> None:
    from pypdf.errors import DependencyError

    try:
        if reader.decrypt(""):
            return
    except (DependencyError, NotImplementedError):
        pass
    raise UserError(
        "is locked; save it without a password, for instance with qpdf --decrypt LOCKED.pdf OPEN.pdf"
    )


def _pages(reader: Any) -> list[str]:
    pages, total = [], 0
    for page in reader.pages:
        pages.append("\n".join(line.strip() for line in clean(page.extract_text()).split("\n")))
        total += len(pages[-1])
        if total > _MOST_TEXT:
            raise UserError(f"holds more than {_MOST_TEXT:,} characters, the most that is read; split it")
    return pages


def _headings(reader: Any) -> dict[int, list[str]]:
    """The titles of the outline by their page, from 0 on."""
    found: dict[int, list[str]] = {}
    waiting = [iter(reader.outline)]
    for _ in range(_MOST_HEADINGS):
        entry = next(waiting[-1], None) if waiting else None
        if isinstance(entry, list):
            waiting.append(iter(entry))
        elif entry is not None:
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0:
                found.setdefault(page, []).append(" ".join(clean(str(entry.title)).split())[:200])
        elif waiting:
            waiting.pop()
        else:
            break
    return found


def _written(pages: list[str], headings: dict[int, list[str]]) -> Passages:
    empty = [number for number, text in enumerate(pages, start=1) if not text.strip()]
    if len(empty) == len(pages):
        count = "1 page" if len(pages) == 1 else f"{len(pages):,} pages"
        remedy = "make its text readable first, for instance with ocrmypdf SCAN.pdf TEXT.pdf"
        raise UserError(f"holds images only, no text, on {count}; {remedy}")
    unreadable = sum(len(_UNREADABLE.findall(text)) for text in pages)
    if 5 * unreadable > sum(len(text) for text in pages) / 2:
        raise UserError(
            "its fonts do not say which letters they show; make its text readable first, for instance with "
            "ocrmypdf --force-ocr IN.pdf OUT.pdf"
        )
    writer = Writer()
    if empty:
        named = ", ".join(map(str, empty[:5])) + (f" and {len(empty) - 5:,} more" if len(empty) > 5 else "")
        writer.notes.append(f"no text on {'page' if len(empty) == 1 else 'pages'} {named}")
    repeated = _repeated(pages)
    if not any("".join(_own_lines(text, repeated)).strip() for text in pages):
        repeated = set()  # nothing else stands there
    if repeated:
        writer.notes.append("lines that stand on every page left out")
    before = ""
    for number, text in enumerate(pages):
        text = _BROKEN_WORD.sub(r"\1\2\n", "\n".join(_own_lines(text, repeated)))
        begins = text.lstrip()[:1]
        is_same = before and not before.endswith(_ENDS) and begins.islower()
        writer.at(page=number + 1)
        _add_page(writer, text, headings.get(number, []), between="\n" if is_same else "\n\n")
        before = text.rstrip()[-1:] or before
    return writer.finished()


def _add_page(writer: Writer, text: str, titles: list[str], *, between: str) -> None:
    """Add a page in parts: each begins where a title of the outline stands in the text."""
    place = 0
    for title in titles:
        words = r"\s+".join(re.escape(word) for word in title.split())
        found = re.compile(rf"^[^\S\n]*(?:[\d.]+\s+)?{words}", re.MULTILINE | re.IGNORECASE).search(
            text, place
        )
        start = found.start() if found and words else place
        writer.add(text[place:start], between=between)
        between = "\n\n" if text[place:start].strip() else between
        writer.at(heading=title)
        place = start
    writer.add(text[place:], between=between)


def _edges(text: str) -> Iterator[tuple[int, str]]:
    """The lines at the top and the bottom of a page: their numbers, and what they say without page numbers."""
    lines = [(number, line) for number, line in enumerate(text.split("\n")) if line.strip()]
    for number, line in {*lines[:_EDGE], *lines[-_EDGE:]}:
        yield number, re.sub(r"\d+", "#", " ".join(line.split()))


def _repeated(pages: list[str]) -> set[str]:
    """What stands at the edges of most pages."""
    if len(pages) < _FEWEST_PAGES:
        return set()
    counts = Counter(line for text in pages for line in {line for _, line in _edges(text)})
    return {line for line, count in counts.items() if count >= max(_FEWEST_PAGES, 0.6 * len(pages))}


def _own_lines(text: str, repeated: set[str]) -> list[str]:
    left = {number for number, line in _edges(text) if line in repeated}
    return [line for number, line in enumerate(text.split("\n")) if number not in left]


def _told(error: BaseException) -> str:
    if "ended unexpectedly" in str(error):
        return "it ends too early"
    return (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
