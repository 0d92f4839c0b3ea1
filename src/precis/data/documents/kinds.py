"""What kind of document a file is: by what it begins with, else by its ending."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A format that is read.

    Attributes:
        name: as people call it.
        endings: of its files.
        module: the module in this package whose `read(content: bytes) -> Passages` reads it.
        needs: packages of the extra `documents` that its reader imports.
    """

    name: str
    endings: tuple[str, ...]
    module: str
    needs: tuple[str, ...] = ()


PDF = Kind(name="a PDF", endings=(".pdf",), module="pdf", needs=("pypdf",))
WORD = Kind(name="a Word document", endings=(".docx",), module="word", needs=("mammoth",))
EPUB = Kind(name="an EPUB", endings=(".epub",), module="epub")
WEB = Kind(name="a web page", endings=(".html", ".htm", ".xhtml"), module="web", needs=("trafilatura",))
MAIL = Kind(name="an e-mail", endings=(".eml",), module="mail")
MARKDOWN = Kind(name="Markdown", endings=(".md", ".markdown"), module="markdown")
SUBTITLES = Kind(name="subtitles", endings=(".srt", ".vtt"), module="subtitles")
KINDS = (PDF, WORD, EPUB, WEB, MAIL, MARKDOWN, SUBTITLES)
ENDINGS = tuple(ending for kind in KINDS for ending in kind.endings)

BEGINNING = 4096
_ZIP = b"PK\x03\x04"
_EPUB = b"mimetypeapplication/epub+zip"  # its first entry, not compressed, as the format asks for
_BEGINNINGS = (
    (b"%pdf-", PDF),
    (b"<!doctype html", WEB),
    (b"<html", WEB),
    (b"webvtt", SUBTITLES),
)


def kind_of(name: str, beginning: bytes) -> Kind | None:
    """The kind of a document; None for plain text and for what is not read.

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
    if named in (MAIL, MARKDOWN):  # a page may be quoted in them
        return named
    return next((kind for mark, kind in _BEGINNINGS if start.startswith(mark)), named)
