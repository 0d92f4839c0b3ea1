"""Scans and pictures give their text where Tesseract is installed; elsewhere the message names it."""

from __future__ import annotations

import locale
import textwrap
from io import BytesIO
from typing import Any

import pypdfium2
import pytest
from PIL import Image

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


def scanned(text: str = STORY) -> Image.Image:
    """Return a page as a picture."""
    with pypdfium2.PdfDocument(pdf([typed(textwrap.wrap(text, 60), x=60, y=700, step=1.5)])) as document:
        return document[0].render(scale=200 / 72).to_pil()


def saved(image: Image.Image, kind: str, **more: Any) -> bytes:
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


def test_where_tesseract_is_missing_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
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


def table(*rows: tuple[int, int, int, int, int, float, str], level: int = 5) -> str:
    """Tesseract's table of words: the line, the box (left, top, width, height), how sure it is, and the word."""
    lines = [
        f"{level}\t1\t1\t1\t{line}\t1\t{x}\t{y}\t{w}\t{h}\t{sure}\t{word}"
        for line, x, y, w, h, sure, word in rows
    ]
    return "\n".join(["level\t...", *lines])


def test_a_line_that_is_read_from_the_right_has_its_edges_mirrored() -> None:
    (line,) = recognition._lines(
        table((1, 300, 100, 60, 20, 90, "שלום"), (1, 200, 96, 80, 22, 90, "עולם")), 0
    )
    assert (line.left, line.right, line.base, line.first_word) == (-360, -200, -120, 60)
    (line,) = recognition._lines(
        table((1, 200, 96, 80, 22, 90, "world"), (1, 300, 100, 60, 20, 90, "peace")), 0
    )
    assert (line.left, line.right, line.base, line.first_word) == (200, 360, -120, 80)


def test_a_word_counts_from_30_percent_on_and_no_other_row_does() -> None:
    found = recognition._lines(
        table((1, 0, 0, 9, 9, 30, "sure"), (1, 9, 0, 9, 9, 29.9, "speck"), (1, 18, 0, 9, 9, 99, "  ")), 0
    )
    assert [line.text for line in found] == ["sure"]
    assert recognition._lines(table((1, 0, 0, 9, 9, 99, "line"), level=4), 0) == []
    assert recognition._lines("level\n5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t99", 0) == []
    assert recognition._lines("", 0) == []


@pytest.mark.parametrize(
    ("text", "shown", "parted"),
    [("fer-", "fer", "-"), ("fer\u2010", "fer", "\u2010"), ("4-", "4-", ""), ("-", "-", ""), ("a-", "a", "-"),
     ("a b", "a b", "")],
)  # fmt: skip
def test_a_hyphen_behind_a_letter_parts_a_word(text: str, shown: str, parted: str) -> None:
    (line,) = recognition._lines(table((1, 0, 0, 9, 9, 99, text)), 0)
    assert (line.text, line.parted) == (shown, parted)


def test_a_line_a_third_larger_is_of_the_usual_size() -> None:
    rows = [
        (number, 0, 0, 9, height, 99, "word") for number, height in enumerate((40, 40, 40, 53, 54, 27, 26))
    ]
    sizes = [line.size for line in recognition._lines(table(*rows), 0)]
    assert sizes == [30, 30, 30, 30, 0.75 * 54, 30, 0.75 * 26]


@pytest.mark.parametrize(
    ("installed", "own", "chosen"),
    [
        ("eng", "en_GB", "eng"),
        ("deu eng osd equ fra ita", "de_DE", "eng+deu+fra+ita"),
        ("ces deu eng fra ita", "de_DE", "eng+deu"),
        ("ces deu eng fra ita", None, "eng"),
        ("deu fra script/Latin", "en_GB", "deu+fra"),
    ],
)
def test_at_most_four_languages_are_read_or_english_and_that_of_the_system(
    installed: str, own: str | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = "\n".join(["List of available languages:", *installed.split()])
    monkeypatch.setattr(recognition, "_run", lambda *_: listed)
    monkeypatch.setattr(locale, "getlocale", lambda: (own, "UTF-8"))
    assert recognition.languages.__wrapped__() == chosen


def test_without_a_language_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "_run", lambda *_: "List of available languages:\nosd\n")
    with pytest.raises(UserError, match="apt-get install tesseract-ocr-eng"):
        recognition.languages.__wrapped__()


@pytest.mark.parametrize(
    ("most", "width"), [(40_000_000, 2550), (2550 * 3300, 2550), (2550 * 3300 / 4, 1275)]
)
def test_a_page_is_a_gray_picture_of_300_dots_an_inch_or_of_as_many_as_allowed(
    most: float, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "_MOST_DOTS", most)
    with pypdfium2.PdfDocument.new() as document:
        picture = recognition.picture_of(document.new_page(612, 792))
    head, dots = picture.split(b"\n", 1)
    kind, wide, high, white = head.split()
    assert (kind, white) == (b"P5", b"255")
    assert (abs(int(wide) - width) <= 1, abs(int(high) - width * 792 // 612) <= 1) == (True, True)
    assert len(dots) == int(wide) * int(high)
    assert set(dots) == {255}


@pytest.mark.parametrize(
    ("program", "told"),
    [("exit 3", "is refused by Tesseract: code 3; save it as PNG"),
     ("echo bad picture >&2; exit 1", "Tesseract: bad picture;")],
)  # fmt: skip
def test_what_tesseract_says_is_told(program: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "PROGRAM", "/bin/sh")
    with pytest.raises(UserError, match=told):
        recognition._run(["-c", program], b"")
    assert recognition._run(["-c", "cat; printf $OMP_THREAD_LIMIT"], b"given ") == "given 1"


def test_a_picture_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "PROGRAM", "/bin/sh")
    assert recognition._SECONDS == 120
    monkeypatch.setattr(recognition, "_SECONDS", 0.2)
    with pytest.raises(UserError, match=r"takes Tesseract more than 0\.2 seconds; use a smaller picture"):
        recognition._run(["-c", "exec sleep 20"], b"")
