"""Detect the kind of a document by its first bytes, or else by its extension."""

from __future__ import annotations

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
    """

    name: str
    endings: tuple[str, ...]
    module: str
    most: int
    seconds: float
    needs: tuple[str, ...] = ()


PDF = DocumentFormat(
    name="a PDF", endings=(".pdf",), module="pdf", most=128 * MIB, seconds=20, needs=("pypdfium2",)
)
WORD = DocumentFormat(
    name="a Word document",
    endings=(".docx",),
    module="word_file",
    most=128 * MIB,
    seconds=20,
    needs=("mammoth",),
)
EPUB = DocumentFormat(name="an EPUB", endings=(".epub",), module="epub", most=128 * MIB, seconds=10)
WEB = DocumentFormat(
    name="a web page",
    endings=(".html", ".htm", ".xhtml"),
    module="web_page",
    most=8 * MIB,
    seconds=4,
    needs=("trafilatura",),
)
MAIL = DocumentFormat(name="an e-mail", endings=(".eml",), module="mail", most=64 * MIB, seconds=1)
MARKDOWN = DocumentFormat(
    name="Markdown", endings=(".md", ".markdown"), module="markdown", most=8 * MIB, seconds=4
)
SUBTITLES = DocumentFormat(
    name="subtitles", endings=(".srt", ".vtt"), module="subtitles", most=8 * MIB, seconds=2
)
PICTURE = DocumentFormat(
    name="a picture",
    endings=(".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"),
    module="picture",
    most=64 * MIB,
    seconds=20,
)
KINDS = (PDF, WORD, EPUB, WEB, MAIL, MARKDOWN, SUBTITLES, PICTURE)
ENDINGS = tuple(ending for kind in KINDS if kind is not PICTURE for ending in kind.endings)
"""The extensions of documents in a folder. Pictures are seldom of text, so a picture is read only if it is named."""

BEGINNING = 4096
_ZIP = b"PK\x03\x04"
_EPUB = b"mimetypeapplication/epub+zip"  # its first entry, not compressed, as the format requires
_BEGINNINGS = (
    (b"%pdf-", PDF),
    (b"<!doctype html", WEB),
    (b"<html", WEB),
    (b"webvtt", SUBTITLES),
    (b"\x89png\r\n\x1a\n", PICTURE),
    (b"\xff\xd8\xff", PICTURE),
    (b"ii*\0", PICTURE),
    (b"mm\0*", PICTURE),
)


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
        return WORD if not ending and b"word/" in beginning else named
    if named in (MAIL, MARKDOWN):  # they may quote a page
        return named
    return next((kind for mark, kind in _BEGINNINGS if start.startswith(mark)), named)
