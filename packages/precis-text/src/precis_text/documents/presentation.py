"""Presentations (.pptx): the text of each slide and of its notes, with the number of the slide as its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

from precis_text.documents.archives import (
    attribute,
    local,
    open_archive,
    optional_part,
    own_text,
    part_of,
    refuse_document_types,
    related,
    shown_branch,
)
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.superscripts import raised_text
from precis_text.documents.word_file import OLD_OFFICE
from precis_text.documents.word_parts import texts_in
from precis_text.errors import UserError

_WHAT = "a presentation"
_AROUND = frozenset(("dt", "ftr", "sldNum", "hdr"))  # date, footer and number of a slide
_TITLES = frozenset(("title", "ctrTitle"))
_NO_TEXT = frozenset(("attrName", "creationId", "Fallback", "tableStyleId"))
_PARTS = frozenset(("notesSlide", "diagramData", "chart", "chartEx"))
_NOTED = {
    "comments": "comments left out",
    **dict.fromkeys(("package", "oleObject"), "embedded objects not read"),
}


def read(content: bytes) -> Passages:
    """Read a presentation in the order of its slides.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    if content.startswith(OLD_OFFICE):
        raise UserError(
            "is password-protected or in PowerPoint's old format; save it as .pptx without a password"
        )
    writer = Writer()
    with open_archive(content, what=_WHAT) as archive:
        refuse_document_types(archive, what=".pptx", remedy="save it again in PowerPoint")
        start = related(archive, "", what=_WHAT)
        main = next(
            (name for kind, name in start.values() if kind == "officeDocument"), "ppt/presentation.xml"
        )
        slides = related(archive, main, what=_WHAT)
        number = 0
        for each in part_of(archive, main, what=_WHAT).iter():
            kind, name = slides.get(_relation(each), ("", "")) if local(each) == "sldId" else ("", "")
            if kind == "slide":
                number += 1
                _write_slide(archive, name, number, writer)
        pictures = sum("/media/" in name for name in archive.namelist())
    if pictures:
        writer.notes.append(f"{pictures:,} {'picture' if pictures == 1 else 'pictures'} not read")
    return writer.finished()


def _relation(element: Any) -> str:
    """Return the id of a relation: the attribute `id` that has a namespace."""
    return next((value for key, value in element.attrib.items() if key.endswith("}id")), "")


def _write_slide(archive: ZipFile, name: str, number: int, writer: Writer) -> None:
    root = part_of(archive, name, what=_WHAT)
    if root.get("show") == "0":
        writer.leave_out("hidden slides", texts_in(root))
        return
    writer.at(page=number, heading="")
    _write_shapes(root, writer)
    for kind, place in related(archive, name, what=_WHAT).values():
        part = optional_part(archive, place, what=_WHAT) if kind in _PARTS else None
        if part is not None and kind in ("chart", "chartEx"):
            writer.leave_out("charts", texts_in(part))
        elif part is not None:
            _write_shapes(part, writer)
        elif (note := _NOTED.get(kind, "")) and note not in writer.notes:
            writer.notes.append(note)


def _write_shapes(root: Any, writer: Writer) -> None:
    """Write shapes: the title first, then the others in their order; tables as rows."""
    shapes = [*_shapes(root)]
    shapes.sort(key=lambda shape: _kind(shape) not in _TITLES)
    for shape in shapes:
        if _kind(shape) in _AROUND:
            writer.leave_out("dates, footers and numbers of slides", texts_in(shape))
        elif _kind(shape) in _TITLES:
            writer.heading(" ".join(_paragraph_texts(shape, writer)))
        elif local(shape) == "tbl":
            rows = [[" ".join(_paragraph_texts(cell, writer)) for cell in row] for row in _rows(shape)]
            writer.add("\n".join(" | ".join(row) for row in rows if any(row)))
        else:
            paragraphs = _paragraph_texts(shape, writer)
            writer.add(
                "\n\n".join(paragraphs)
                if any(re.search(r"[.!?]$", each) for each in paragraphs)
                else "\n".join(paragraphs)
            )


def _shapes(element: Any) -> Iterator[Any]:
    """Yield shapes, tables and text outside both, whatever they are grouped in."""
    for each in element:
        name = local(each)
        if name in ("sp", "tbl", "cxnSp", "pt", "txBody", "p", "t") or own_text(each):
            if name not in _NO_TEXT:
                yield each
        elif name == "AlternateContent":
            for branch in shown_branch(each):
                yield from [branch] if local(branch) in ("sp", "tbl", "cxnSp") else _shapes(branch)
        elif name and name not in _NO_TEXT:
            yield from _shapes(each)


def _rows(table: Any) -> Iterator[list[Any]]:
    """Yield the cells of each row, whatever they are wrapped in; what is in no row or cell is one of its own."""
    for each in table:
        name = local(each)
        if name == "tr":
            yield [*_cells(each)]
        elif name in ("tc", "txBody", "p", "t") or own_text(each):
            yield [each]
        else:
            yield from _rows(each)


def _cells(row: Any) -> Iterator[Any]:
    for each in row:
        if local(each) in ("tc", "txBody", "p", "t") or own_text(each):
            yield each
        else:
            yield from _cells(each)


def _kind(shape: Any) -> str:
    return next((attribute(each, "type") for each in shape.iter() if local(each) == "ph"), "")


def _paragraph_texts(element: Any, writer: Writer) -> list[str]:
    """Return the paragraphs of a shape; text outside any paragraph is one of its own."""
    texts = ("".join(_pieces(each, writer)) for each in _paragraphs(element))
    return [" ".join(text.split()) for text in texts if text.strip()]


def _paragraphs(element: Any) -> Iterator[Any]:
    if local(element) == "p" or own_text(element):
        yield element
    elif local(element) == "AlternateContent":
        for each in shown_branch(element):
            yield from _paragraphs(each)
    elif local(element) not in _NO_TEXT:
        for each in element:
            yield from _paragraphs(each)


def _pieces(paragraph: Any, writer: Writer) -> list[str]:
    pieces: list[str] = []
    for each in paragraph.iter():
        name = local(each)
        if name == "br":
            pieces.append("\n")
        elif name == "t":
            pieces.append(_run_text(each, "".join(pieces[-8:]), writer))
        elif name not in _NO_TEXT:
            pieces.append(own_text(each))
    return pieces


def _run_text(element: Any, before: str, writer: Writer) -> str:
    text = element.text or ""
    properties = next((each for each in element.getparent() if local(each) == "rPr"), None)
    baseline = "" if properties is None else properties.get("baseline", "")
    if not baseline.isdecimal() or not int(baseline):
        return text
    raised = raised_text(text, before)
    if raised is None:
        writer.leave_out("marks of footnotes", text)
    return raised or ""
