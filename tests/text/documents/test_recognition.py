"""Scans and pictures give their text where Tesseract is installed; elsewhere the message names it."""

from __future__ import annotations

import textwrap
from io import BytesIO

import pypdfium2
import pytest

from precis_text.documents import pdf as pdf_reader
from precis_text.documents import picture, recognition
from precis_text.documents.file_kinds import ENDINGS, PICTURE, kind_of
from precis_text.documents.reader import read_content
from precis_text.errors import UserError
from tests.document_files import pdf, typed

STORY = (
    "The ferry over the sound was built in 1904 and repaired twice since then. Its boilers leak, and the island "
    "has asked for money to mend them before the winter."
)
needs_tesseract = pytest.mark.skipif(
    recognition.PROGRAM is None, reason="Tesseract is not installed: apt-get install tesseract-ocr"
)


def scanned(text: str = STORY):
    """Return a page as a picture."""
    with pypdfium2.PdfDocument(pdf([typed(textwrap.wrap(text, 60), x=60, y=700, step=1.5)])) as document:
        return document[0].render(scale=200 / 72).to_pil()


def saved(image, kind: str, **more) -> bytes:
    out = BytesIO()
    image.save(out, kind, **more)
    return out.getvalue()


def likeness(text: str) -> float:
    wanted, found = STORY.split(), text.split()
    return sum(word in found for word in wanted) / len(wanted)


@needs_tesseract
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_a_picture_of_a_page_gives_its_text_in_one_paragraph(kind: str) -> None:
    found = read_content(saved(scanned(), kind), name=f"a.{kind.lower()}")
    assert likeness(found.text) >= 0.9
    assert "\n" not in found.text
    assert "recognized by Tesseract" in found.notes[0]


@needs_tesseract
def test_a_scanned_pdf_gives_its_text_with_pages_and_blank_pages_are_named() -> None:
    blank = pypdfium2.PdfDocument(pdf([""]))[0].render().to_pil()
    content = saved(scanned(), "PDF", save_all=True, append_images=[blank, scanned()], resolution=200)
    found = read_content(content, name="a.pdf")
    assert likeness(found.text) >= 0.9
    assert found.at(len(found.text) - 1).page == 3
    assert found.notes[0].startswith("text of pages 1, 3 recognized by Tesseract (")
    assert "page 2 lacks text" in found.notes


@needs_tesseract
def test_a_picture_without_text_and_a_broken_one_are_refused() -> None:
    blank = pypdfium2.PdfDocument(pdf([""]))[0].render().to_pil()
    with pytest.raises(UserError, match="in which Tesseract finds no text"):
        read_content(saved(blank, "PNG"), name="a.png")
    with pytest.raises(UserError, match="refused by Tesseract"):
        read_content(b"\x89PNG\r\n\x1a\nnonsense", name="a.png")


def test_where_tesseract_is_missing_the_message_names_it(monkeypatch) -> None:
    monkeypatch.setattr(recognition, "PROGRAM", None)
    with pytest.raises(UserError, match=r"is a picture; .*apt-get install tesseract-ocr"):
        picture.read(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(UserError, match=r"only images, no text, on 1 page; install Tesseract .* ocrmypdf"):
        pdf_reader.read(saved(scanned(), "PDF"))


def test_pictures_are_told_by_their_beginning_and_left_out_of_folders() -> None:
    assert kind_of("", b"\x89PNG\r\n\x1a\n") is PICTURE
    assert kind_of("a.jpg", b"") is PICTURE
    assert ".png" not in ENDINGS
    assert ".pdf" in ENDINGS


TABLE = """level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext
5\t1\t1\t1\t1\t1\t100\t100\t60\t20\t96.1\tThe
5\t1\t1\t1\t1\t2\t170\t102\t90\t24\t95.0\tfer-
5\t1\t1\t1\t2\t1\t100\t130\t40\t22\t91.0\try
5\t1\t1\t1\t2\t2\t150\t130\t4\t4\t3.0\t~
"""


def test_words_become_lines_and_specks_do_not() -> None:
    lines = recognition._lines(TABLE, 4)
    assert [(line.text, line.parted, line.page) for line in lines] == [("The fer", "-", 4), ("ry", "", 4)]
    assert (lines[0].left, lines[0].right, lines[0].base) == (100, 260, -126)
    assert lines[0].size == lines[1].size
