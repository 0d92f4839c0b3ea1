"""Detect the kind of a document by its first bytes, or else by its extension."""

from __future__ import annotations

import re
from dataclasses import dataclass

from precis_text.bounded_io import MIB


@dataclass(frozen=True, kw_only=True)
class DocumentFormat:
    """A document format that precis reads.

    Attributes:
        name: its name in messages, with an article.
        endings: the extensions of its files.
        module: the module in this package whose `read(content: bytes) -> Passages` reads it.
        most: the size limit of a file in bytes; pictures in it count, although they are not read.
        seconds: processor time for each MiB, in addition to that for any file.
        needs: packages of the extra `documents` that its reader imports.
        has_rows: it usually holds a document in each row, and is one document only when asked.
        has_many: it usually holds several documents.
    """

    name: str
    endings: tuple[str, ...]
    module: str
    most: int
    seconds: float
    needs: tuple[str, ...] = ()
    has_rows: bool = False
    has_many: bool = False


PDF = DocumentFormat(
    name="a PDF", endings=(".pdf",), module="pdf", most=128 * MIB, seconds=20, needs=("pypdfium2",)
)
WORD = DocumentFormat(
    name="a Word document", endings=(".docx", ".docm", ".dotx", ".dotm"), module="word_file", most=128 * MIB,
    seconds=20,
)  # fmt: skip
OPEN_DOCUMENT = DocumentFormat(
    name="an OpenDocument file", endings=(".odt", ".ott", ".fodt", ".odp"), module="open_document", most=128 * MIB,
    seconds=20,
)  # fmt: skip
PRESENTATION = DocumentFormat(
    name="a presentation", endings=(".pptx", ".pptm", ".ppsx"), module="presentation", most=128 * MIB, seconds=20,
)  # fmt: skip
SPREADSHEET = DocumentFormat(
    name="a spreadsheet", endings=(".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), module="spreadsheet", most=64 * MIB,
    seconds=10, needs=("python_calamine",),
)  # fmt: skip
TABLE = DocumentFormat(
    name="a table", endings=(".csv", ".tsv"), module="delimited_table", most=64 * MIB, seconds=2, has_rows=True,
)  # fmt: skip
RICH_TEXT = DocumentFormat(
    name="rich text", endings=(".rtf",), module="rich_text", most=64 * MIB, seconds=10, needs=("striprtf",)
)
EPUB = DocumentFormat(name="an EPUB", endings=(".epub",), module="epub", most=128 * MIB, seconds=10)
WEB = DocumentFormat(
    name="a web page", endings=(".html", ".htm", ".xhtml"), module="web_page", most=8 * MIB, seconds=8,
    needs=("trafilatura",),
)  # fmt: skip
MAIL = DocumentFormat(name="an e-mail", endings=(".eml", ".emlx"), module="mail", most=64 * MIB, seconds=4)
MAILBOX = DocumentFormat(
    name="a mailbox", endings=(".mbox",), module="mail", most=64 * MIB, seconds=4, has_many=True
)
SLACK = DocumentFormat(
    name="a Slack export", endings=(".zip",), module="slack_export", most=64 * MIB, seconds=4, has_many=True
)
SAVED_PAGE = DocumentFormat(
    name="a saved page", endings=(".mht", ".mhtml"), module="mail", most=64 * MIB, seconds=4,
    needs=("trafilatura",),
)  # fmt: skip
MARKDOWN = DocumentFormat(
    name="Markdown", endings=(".md", ".markdown"), module="markdown", most=8 * MIB, seconds=4
)
NOTEBOOK = DocumentFormat(name="a notebook", endings=(".ipynb",), module="notebook", most=64 * MIB, seconds=2)
LATEX = DocumentFormat(
    name="LaTeX", endings=(".tex", ".ltx"), module="latex", most=8 * MIB, seconds=10, needs=("pylatexenc",)
)
SUBTITLES = DocumentFormat(
    name="subtitles", module="subtitles", most=8 * MIB, seconds=2,
    endings=(".srt", ".vtt", ".sbv", ".ttml", ".dfxp", ".ass", ".ssa", ".sub", ".lrc", ".mpl", ".smi", ".sami"),
)  # fmt: skip
PICTURE = DocumentFormat(
    name="a picture", module="picture", most=64 * MIB, seconds=20,
    endings=(".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"),
)  # fmt: skip
KINDS = (
    PDF, WORD, OPEN_DOCUMENT, PRESENTATION, SPREADSHEET, TABLE, RICH_TEXT, EPUB, WEB, MAIL, MAILBOX, SLACK, SAVED_PAGE,
    MARKDOWN, NOTEBOOK, LATEX, SUBTITLES, PICTURE,
)  # fmt: skip
ENDINGS = tuple(
    ending for kind in KINDS if not kind.has_rows and kind not in (PICTURE, SLACK) for ending in kind.endings
)
"""The extensions of documents in a folder. Few pictures and archives are texts, so they are read only if named."""
MANY = tuple(ending for kind in KINDS if kind.has_many for ending in kind.endings)
"""Endings of files that hold several documents."""

BEGINNING = 4096
_ZIP = b"PK\x03\x04"
_EPUB = b"mimetypeapplication/epub+zip"  # its first entry, not compressed, as the format requires
_BEGINNINGS = (
    (b"%pdf-", PDF), (b"<!doctype html", WEB), (b"<html", WEB), (b"webvtt\n", SUBTITLES), (b"webvtt\r", SUBTITLES),
    (b"[script info]", SUBTITLES), (b"<tt ", SUBTITLES), (b"{\\rtf", RICH_TEXT), (b"\x89png\r\n\x1a\n", PICTURE),
    (b"\xff\xd8\xff", PICTURE), (b"ii*\0", PICTURE), (b"mm\0*", PICTURE),
)  # fmt: skip
_CLOCK = rb"(?:\d+:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
_NAMES = rb"(?:webvtt(?:[ \t][^\n]*)?\r?\n(?:[^\n]*\n)*?|(?:\d+|[\da-f-]{36}/[\d-]+)\s*\n)?"  # Teams numbers cues so
_FIRST_CUE = re.compile(_NAMES + _CLOCK + rb"\s*-->\s*" + _CLOCK + rb"(?:[ \t]+\w+:[^\n]*)?\s*\n")
_CAPTIONS = re.compile(rb"(?:<\?xml[^>]*>\s*)?<(?:tt|timedtext|transcript|sami)[\s>:]", re.IGNORECASE)
_CONTENT_TYPES = b"[Content_Types].xml"  # in each file of Microsoft's office
_ZIPPED = (WORD, PRESENTATION, SPREADSHEET, OPEN_DOCUMENT, EPUB, SLACK)
_MAIN_PARTS = ((b"word/", WORD), (b"ppt/", PRESENTATION), (b"xl/", SPREADSHEET), (b"users.json", SLACK))
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument."
_MAILBOX = re.compile(rb"From [^\n]*\d\d:\d\d[^\n]*\n[!-9;-~]+: ")
_SAVED = (b"from: <saved by", b"snapshot-content-location:")


def begins_with_cue(beginning: bytes) -> bool:
    """Check whether a text is subtitles of WebVTT or SubRip; a transcript has its words next to the times."""
    start = beginning.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return _FIRST_CUE.match(start) is not None


def kind_of(name: str, beginning: bytes) -> DocumentFormat | None:
    """Return the kind of a document; None for plain text and for unsupported formats.

    Args:
        name: the file's name, or "" if it has none.
        beginning: its first `BEGINNING` bytes; all of them if it is shorter.
    """
    ending = f".{name.lower().rpartition('.')[2]}" if "." in name else ""
    named = next((kind for kind in KINDS if ending in kind.endings), None)
    start = beginning.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if beginning.startswith(_ZIP):
        if _EPUB in beginning:
            return EPUB
        if _OPEN_DOCUMENT in beginning:
            return SPREADSHEET if _OPEN_DOCUMENT + b"spreadsheet" in beginning else OPEN_DOCUMENT
        main = next((kind for mark, kind in _MAIN_PARTS if mark in beginning), None)
        is_office = main is not None and _CONTENT_TYPES in beginning and named not in (*_ZIPPED, MAIL)
        return main if is_office or not ending else named
    if named in (MAIL, MARKDOWN, LATEX, TABLE):  # they may quote a page
        return named
    if named is None and (begins_with_cue(beginning) or _CAPTIONS.match(start)):
        return SUBTITLES
    if named is None and (start.startswith(_SAVED) or _MAILBOX.match(beginning)):
        return SAVED_PAGE if start.startswith(_SAVED) else MAILBOX
    return next((kind for mark, kind in _BEGINNINGS if start.startswith(mark)), named)
