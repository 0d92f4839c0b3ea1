"""Pictures of text, such as photographs of a page, by Tesseract."""

from __future__ import annotations

from precis_text.documents import recognition
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.pdf_paragraphs import Joiner, paragraphs_of
from precis_text.errors import UserError


def read(content: bytes) -> Passages:
    """Read the text in a picture.

    Raises:
        UserError: Tesseract is not installed, does not know the format, or finds no text.
    """
    if recognition.PROGRAM is None:
        raise UserError(f"is a picture; to read its text, {recognition.INSTALL}")
    lines = recognition.recognized(content, 0)
    if not lines:
        raise UserError("is a picture in which Tesseract finds no text; use a sharper or larger one")
    writer, joiner = Writer(), Joiner(lines)
    for paragraph in paragraphs_of([lines]):
        text = joiner.text(paragraph.lines)
        if paragraph.is_heading:
            writer.heading(text)
        else:
            writer.add(text, between=paragraph.between)
    writer.notes.append(
        f"text recognized by Tesseract ({recognition.languages()}), which may misread letters"
    )
    return writer.finished()
