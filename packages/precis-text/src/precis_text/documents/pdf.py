"""PDFs, by PDFium: paragraphs and headings of each page, without the lines that repeat on page after page."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from precis_text.documents import recognition
from precis_text.documents.passages import Passages, Writer, clean
from precis_text.documents.pdf_contents import without_contents
from precis_text.documents.pdf_forms import Annotations, annotations_of, with_answers
from precis_text.documents.pdf_lines import Line, PageText, page_text
from precis_text.documents.pdf_paragraphs import Joiner, Paragraph, paragraphs_of
from precis_text.documents.pdf_tables import in_reading_order
from precis_text.documents.running_lines import running_lines
from precis_text.errors import UserError

_MOST_PAGES = 10_000
_MOST_TEXT = 64_000_000  # characters
_MOST_HEADINGS = 10_000
_MOST_FILES = 1_000
_MOST_UNREADABLE = 0.1  # of the letters
_LOCKED = 4  # PDFium's error code for a missing password


def read(content: bytes) -> Passages:
    """Read a PDF. The places are its pages, and the headings of its outline or those that stand out.

    Raises:
        UserError: it is locked, damaged, or contains only images or unreadable letters, and Tesseract is missing.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(content)
        try:
            count = len(document)
            if count > _MOST_PAGES:
                raise UserError(f"has {count:,} pages, above the limit of {_MOST_PAGES:,}; split it")
            document.init_forms()
            writer = Writer()
            pages = _pages(document, count, writer)
            _recognize(document, pages, writer)
            titles = _titles(document)
        finally:
            document.close()
    except PdfiumError as error:
        if getattr(error, "err_code", None) == _LOCKED:
            raise UserError(
                "is locked; save it without a password, for instance with qpdf --decrypt LOCKED.pdf OPEN.pdf"
            ) from None
        raise UserError(f"is damaged: {_told(error)}; save or download it again") from None
    return _written(pages, titles, writer)


def _pages(document: Any, count: int, writer: Writer) -> list[PageText | None]:
    """Return the text of each page; None for a damaged page."""
    from pypdfium2 import PdfiumError

    pages: list[PageText | None] = []
    total, found = 0, list[Annotations]()
    for number in range(count):
        try:
            page = document[number]
            try:
                text, annotations = page_text(page, number), annotations_of(page)
            finally:
                page.close()
        except PdfiumError:
            pages.append(None)
            continue
        lines = with_answers(text.lines, annotations.answers, number)
        pages.append(replace(text, lines=in_reading_order(lines)))
        found.append(annotations)
        total += text.letters + sum(len(answer.text) for answer in annotations.answers)
        if total > _MOST_TEXT:
            raise UserError(f"contains more than {_MOST_TEXT:,} characters, the limit; split it")
    _tell_annotations(document, found, writer)
    return pages


def _tell_annotations(document: Any, found: Sequence[Annotations], writer: Writer) -> None:
    """Note what a form or a reader added and the text does not contain, and attached files."""
    from pypdfium2 import raw as pdfium

    if document.get_formtype() == pdfium.FORMTYPE_XFA_FULL:
        writer.notes.append("an XFA form, whose answers are not read; print it to a PDF to read them")
    counts = (sum(each.comments for each in found), sum(each.passwords for each in found))
    for number, what in zip(counts, ("comment", "password"), strict=True):
        if number:
            writer.notes.append(f"{number:,} {what}{'' if number == 1 else 's'} left out")
    choices = dict.fromkeys(choice for each in found for choice in each.choices)
    writer.leave_out("choices of the form that are not marked", ", ".join(choices))
    files = [name for each in found for name in each.files]
    files += [
        document.get_attachment(n).get_name() for n in range(min(_MOST_FILES, document.count_attachments()))
    ]
    if files:
        more = f" and {len(files) - 3:,} more" if len(files) > 3 else ""
        writer.notes.append(f"attachments not read: {', '.join(files[:3])}{more}")


def _recognize(document: Any, pages: list[PageText | None], writer: Writer) -> None:
    """Let Tesseract read the pages that show letters and do not contain them."""
    unread = [
        number for number, page in enumerate(pages) if page and (not page.lines or _is_unreadable([page]))
    ]
    if recognition.PROGRAM is None or not unread:
        return
    until = time.monotonic() + recognition.MOST_SECONDS
    done: list[int] = []
    for place, number in enumerate(unread):
        if time.monotonic() > until:
            late = [one + 1 for one in unread[place:]]
            told = f"not recognized within {recognition.MOST_SECONDS / 60:.0f} minutes"
            writer.notes.append(f"text of {_numbers(late)} {told}; split the file")
            break
        lines = _recognized_lines(document, number, pages[number])
        if lines:
            pages[number] = PageText(lines, sum(len(line.text) for line in lines), 0)
            done.append(number + 1)
    if done:
        told = f"recognized by Tesseract ({recognition.languages()}), which may misread letters"
        writer.notes.append(f"text of {_numbers(done)} {told}")


def _recognized_lines(document: Any, number: int, text: PageText | None) -> list[Line]:
    page = document[number]
    try:
        if not _has_pictures(page) and not (text and text.letters):
            return []
        return recognition.recognized(recognition.picture_of(page), number)
    finally:
        page.close()


def _has_pictures(page: Any) -> bool:
    """Check whether anything is painted on a page."""
    return next(iter(page.get_objects()), None) is not None


def _titles(document: Any) -> dict[int, list[str]]:
    """Return the titles of the outline by their page, counted from 0."""
    found: dict[int, list[str]] = {}
    for entry in islice(document.get_toc(), _MOST_HEADINGS):
        target = entry.get_dest()
        page = None if target is None else target.get_index()
        title = " ".join(clean(entry.get_title()).split())[:200]
        if page is not None and page >= 0 and title:
            found.setdefault(page, []).append(title)
    return found


def _written(found: list[PageText | None], titles: dict[int, list[str]], writer: Writer) -> Passages:
    pages = [page or PageText([], 0, 0) for page in found]
    _refuse_without_text(found, pages)
    for what, numbers in (
        ("is damaged", [number for number, page in enumerate(found, start=1) if page is None]),
        ("lacks text", [number for number, page in enumerate(found, start=1) if page and not page.lines]),
    ):
        if numbers:
            writer.notes.append(_named(numbers, what))
    repeated = running_lines([page.lines for page in pages])
    if repeated:
        writer.notes.append("running heads and page numbers left out")
    own = [[line for line in page.lines if line not in repeated] for page in pages]
    count = sum(map(len, own))
    own = without_contents(own)
    if sum(map(len, own)) < count:
        writer.notes.append("table of contents left out")
    joiner = Joiner(line for lines in own for line in lines)
    paragraphs = paragraphs_of(own)
    _write(writer, paragraphs, _headings(paragraphs, titles), joiner)
    return writer.finished()


def _refuse_without_text(found: list[PageText | None], pages: list[PageText]) -> None:
    if not any(found):
        raise UserError("is damaged: none of its pages can be read; save or download it again")
    if not any(page.lines for page in pages):
        count = "1 page" if len(pages) == 1 else f"{len(pages):,} pages"
        raise UserError(f"contains only images, no text, on {count}; {_remedy('ocrmypdf SCAN.pdf TEXT.pdf')}")
    if _is_unreadable(pages):
        raise UserError(
            f"its fonts do not identify their letters; {_remedy('ocrmypdf --force-ocr IN.pdf OUT.pdf')}"
        )


def _is_unreadable(pages: list[PageText]) -> bool:
    return sum(page.unreadable for page in pages) > _MOST_UNREADABLE * sum(page.letters for page in pages)


def _remedy(command: str) -> str:
    """Return what to do if a page's letters are not known."""
    if recognition.PROGRAM is not None:
        return "Tesseract recognizes none in them; use a sharper scan"
    return f"{recognition.INSTALL}, or recognize its text first, for instance with {command}"


def _numbers(numbers: list[int]) -> str:
    """Name pages: "page 3", "pages 2, 3"."""
    more = f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else ""
    return f"page{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers[:5]))}{more}"


def _named(numbers: list[int], what: str) -> str:
    """Describe pages: "page 3 is damaged", "pages 2, 3 lack text"."""
    plural = what.replace("is ", "are ").replace("lacks ", "lack ")
    return f"{_numbers(numbers)} {what if len(numbers) == 1 else plural}"


def _headings(paragraphs: Sequence[Paragraph], titles: dict[int, list[str]]) -> dict[int, str]:
    """Return the headings by the index of the paragraph that they open.

    With an outline, the headings are its titles: each is at the paragraph that starts with it, or else at the title
    before it or at the start of its page. Without one, they are the paragraphs that stand out.
    """
    if not titles:
        return {number: one.text for number, one in enumerate(paragraphs) if one.is_heading}
    found: dict[int, str] = {}
    waiting = sorted(titles, reverse=True)
    for page, group in groupby(enumerate(paragraphs), key=lambda entry: entry[1].lines[0].page):
        numbers = [number for number, _ in group]
        place = numbers[0]
        mine: list[str] = []  # also of earlier pages on which no paragraph starts
        while waiting and waiting[-1] <= page:
            mine += titles[waiting.pop()]
        for title in mine:
            words = r"\s+".join(re.escape(word) for word in title.split())
            begins = re.compile(rf"(?:[\d.]+\s+)?{words}", re.IGNORECASE)
            place = next(
                (number for number in numbers if number >= place and begins.match(paragraphs[number].text)),
                place,
            )
            found[place] = title
    return found


def _write(writer: Writer, paragraphs: Sequence[Paragraph], headings: dict[int, str], joiner: Joiner) -> None:
    for number, paragraph in enumerate(paragraphs):
        if number in headings:
            writer.at(heading=headings[number])
        is_short = paragraph.between == "\n" and number not in headings and number - 1 not in headings
        between = "\n" if is_short else "\n\n"
        before: Line | None = None
        for page, group in groupby(paragraph.lines, key=lambda line: line.page):
            lines = [*group]
            if before is not None:
                between = joiner.behind(before, lines[0])
            writer.at(page=page + 1)
            parted = lines[-1] is not paragraph.lines[-1]  # its hyphen is in the separator
            text = joiner.text(lines)
            writer.add(text[:-1] if parted and lines[-1].parted else text, between=between)
            before = lines[-1]


def _told(error: BaseException) -> str:
    found = re.search(r"PDFium: ([^)]+?)\.?\)", str(error))
    words = found.group(1) if found else str(error)
    return words[:1].lower() + words[1:].rstrip(".")
