"""The first bytes of a file give its kind, or else its name does; the guide has the endings and limits of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from precis_text.bounded_io import MIB
from precis_text.documents.file_kinds import (
    EPUB,
    KINDS,
    LATEX,
    MAIL,
    MAILBOX,
    MANY,
    MARKDOWN,
    OPEN_DOCUMENT,
    PDF,
    PICTURE,
    PRESENTATION,
    RICH_TEXT,
    SAVED_PAGE,
    SLACK,
    SPREADSHEET,
    SUBTITLES,
    TABLE,
    WEB,
    WORD,
    DocumentFormat,
    kind_of,
)

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "documents.md"
ZIP = b"PK\x03\x04 "


def test_the_guide_has_the_endings_and_the_largest_file_of_every_kind() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\d+) \|", GUIDE.read_text(), re.MULTILINE)
    told = {name: (set(re.findall(r"`(\.\w+)`", endings)), int(most) * MIB) for name, endings, most in rows}
    held = {_short(kind.name): (set(kind.endings), kind.most) for kind in KINDS}
    assert told == held


def _short(name: str) -> str:
    return re.sub(r"^an? | document$| file$", "", name)


def test_a_mailbox_holds_many_documents_and_a_table_rows() -> None:
    assert (*MAILBOX.endings, *SLACK.endings) == MANY
    assert [kind for kind in KINDS if kind.has_rows] == [TABLE]


@pytest.mark.parametrize(
    ("name", "beginning", "kind"),
    [
        ("a.PDF", b"", PDF),
        ("a.b.docx", b"", WORD),
        ("pdf", b"", None),
        ("", b"The mill turns.", None),
        ("a.txt", b"The mill turns.", None),
        ("a.txt", b"%PDF-1.4", PDF),
        ("", b"\xef\xbb\xbf <!DOCTYPE HTML>", WEB),
        ("a.docx", b"<html>", WEB),
        ("", b"{\\rtf1", RICH_TEXT),
        ("", b"\x89PNG\r\n\x1a\n", PICTURE),
        ("a.eml", b"<html>", MAIL),
        ("a.md", b"<html>", MARKDOWN),
        ("a.tex", b"<html>", LATEX),
        ("a.csv", b"<html>", TABLE),
        ("a.eml", ZIP + b"word/", MAIL),
        ("", ZIP + b"word/", WORD),
        ("a", ZIP + b"ppt/", PRESENTATION),
        ("", ZIP + b"xl/", SPREADSHEET),
        ("a.pdf", ZIP + b"[Content_Types].xml word/", WORD),
        ("a.doc", ZIP + b"[Content_Types].xml word/", WORD),
        ("a.jar", ZIP + b"pixl/", None),
        ("", ZIP + b"a/", None),
        ("a.zip", ZIP + b"word/", SLACK),
        ("a.pptx", ZIP + b"word/", PRESENTATION),
        ("a.zip", ZIP + b"mimetypeapplication/epub+zip", EPUB),
        ("a.zip", ZIP + b"mimetypeapplication/vnd.oasis.opendocument.text", OPEN_DOCUMENT),
        ("a.zip", ZIP + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", SPREADSHEET),
        ("", b"1\n00:00:01,000 --> 00:00:02,000\na", SUBTITLES),
        ("a.txt", b"\xef\xbb\xbfWEBVTT\r\n\r\nNOTE a\r\n\r\n00:01.000 --> 00:02.000 align:start\r\na", SUBTITLES),
        ("a.vtt", b"WEBVTT\n\n", SUBTITLES),
        ("a.txt", b"WebVTT is a format for captions.\nIt has cues.", None),
        ("", b"00:01.000 --> 00:02.000 The mill turns.\n", None),
        ("", b"<?xml version='1.0'?>\n<tt xml:lang='en'>", SUBTITLES),
        ("a.pdf", b"1\n00:00:01,000 --> 00:00:02,000\na", PDF),
        ("", b"From: <Saved by Blink>\n", SAVED_PAGE),
        ("", b"From ann@olm Sat 10:30:01 2020\nSubject: a", MAILBOX),
        ("a.pdf", b"From ann@olm Sat 10:30:01 2020\nSubject: a", PDF),
        ("a.pdf", b"From: <Saved by Blink>\n", PDF),
        ("", b"From Ann, who came at 10:30 to us\nand sat down: ", None),
    ],
)  # fmt: skip
def test_the_first_bytes_tell_the_kind_before_the_name(
    name: str, beginning: bytes, kind: DocumentFormat | None
) -> None:
    assert kind_of(name, beginning) is kind
