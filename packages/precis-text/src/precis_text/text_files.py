"""Plain text files: how to decode them, find the documents of a folder, and recognize files that are not text.

    folder/  a.txt  b.txt  [a.summary.txt ...]

Office files, web pages and archives are never read as plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from precis_text.bounded_io import names_in, read_bounded
from precis_text.row import SAVE_AS_UTF8, SAVE_UTF16_AS_UTF8, UTF16
from precis_text.text_lines import MAX_LINE

_ENDING, _SUMMARY_ENDING = ".txt", ".summary.txt"
_ENDINGS = {
    "a PDF": ".pdf", "a Word document of the old format": ".doc .dot",
    "a presentation of the old format": ".ppt .pps", "a document of Apple's": ".pages .key .numbers",
    "an e-book": ".mobi .azw .azw3 .fb2 .djvu", "a Word document": ".docx", "an EPUB": ".epub",
    "a web page": ".html .htm .xhtml", "an e-mail of Outlook": ".msg", "an archive": ".zip .tar",
    "a compressed file": ".gz .xz .bz2 .zst",
}  # fmt: skip
_BEGINNINGS = {
    b"%PDF": "a PDF", b"PK\x03\x04": "an office file or an archive", b"\xd0\xcf\x11\xe0": "an office file",
    b"\x1f\x8b": "a compressed file", b"\xfd7zXZ": "a compressed file",
    b"PAR1": "a Parquet file without its ending", b"<!doctype html": "a web page", b"<html": "a web page",
}  # fmt: skip
_REMEDIES = {
    "a PDF": "convert it to text first, for instance with pdftotext",
    "a web page": "convert it to text first, for instance with pandoc -t plain",
    "a Word document of the old format": "save it as .docx, or run: soffice --headless --convert-to docx FILE",
    "a presentation of the old format": "save it as .pptx, or run: soffice --headless --convert-to pptx FILE",
    "an office file": "save it in today's format (.docx, .pptx, .xlsx), without a password",
    "a document of Apple's": "export it as PDF or in the format of Word",
    "an e-book": "convert it to EPUB first, for instance with ebook-convert",
    "an e-mail of Outlook": "save it as .eml, or as text",
    **dict.fromkeys(("a compressed file", "an archive"), "unpack it first"),
}
NOT_TEXT = "is not text; use plain text in UTF-8"


class NotTextError(ValueError):
    """The error for bytes that are not UTF-8. The message states the first bad byte and the remedy."""


def read_text(path: Path) -> str:
    """Read a file of at most `MAX_LINE` bytes as one document.

    Raises:
        NotTextError: it is not UTF-8.
        UserError: it cannot be read, is not a regular file, or is larger.
    """
    return decode_text(read_bounded(path, limit=MAX_LINE))


def decode_text(content: bytes) -> str:
    """Decode UTF-8 with or without a byte order mark; every line ends in a line feed.

    Raises:
        NotTextError: it is not UTF-8.
    """
    if content.startswith(UTF16):
        raise NotTextError(f"is UTF-16; {SAVE_UTF16_AS_UTF8}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = f"byte {error.start + 1} (0x{content[error.start]:02X}, line {line})"
        raise NotTextError(f"invalid UTF-8 at {where}; {SAVE_AS_UTF8}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decode_marked(content: bytes) -> str:
    """Decode a text that starts with the byte order mark of UTF-16, as Windows saves "Unicode"; "" for others.

    Raises:
        NotTextError: it breaks off, or is not UTF-16.
    """
    if not content.startswith(UTF16):
        return ""
    try:
        text = content.decode("utf-16")
    except UnicodeDecodeError as error:
        raise NotTextError(
            f"begins as UTF-16 but is damaged at byte {error.start + 1}; save it again"
        ) from None
    if "\0" in text:
        raise NotTextError("begins as UTF-16 but contains NUL characters; it is not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def document_files(folder: Path) -> list[Path]:
    """List the files of a folder that contain one document each, sorted.

    Raises:
        UserError: the folder cannot be read.
    """
    names = (name for name in names_in(folder) if name.endswith(_ENDING) and not name.startswith("."))
    return [folder / name for name in names if not name.endswith(_SUMMARY_ENDING)]


def unread_names(folder: Path, read: Iterable[Path]) -> list[str]:
    """List the names in a folder that were not read, without hidden ones; folders get a slash.

    Raises:
        UserError: the folder cannot be read.
    """
    known = {path.name for path in read}
    names = (name for name in names_in(folder) if name not in known and not name.startswith("."))
    return [f"{name}/" if (folder / name).is_dir() else name for name in names]


def remedy_for(names: Iterable[str]) -> str:
    """Return what to do about the first unread name of a kind that another program converts; "" if none is."""
    return next((f"; {name} {kind}" for name in names if (kind := other_kind(name, b""))), "")


def summary_file(document: Path) -> Path:
    """Return the path of a document's summary, whether or not it exists."""
    return document.with_name(document.stem + _SUMMARY_ENDING)


def orphaned_summaries(folder: Path) -> list[tuple[Path, str]]:
    """List the summaries without a document, sorted, each with the name of the missing file."""
    known = {summary_file(document) for document in document_files(folder)}
    return [
        (path, path.name.removesuffix(_SUMMARY_ENDING) + _ENDING)
        for path in (folder / name for name in names_in(folder) if name.endswith(_SUMMARY_ENDING))
        if path not in known
    ]


def other_kind(name: str, beginning: bytes) -> str:
    """Describe the kind of a file that is not plain text, and the remedy; "" for plain text.

    Args:
        name: the file's name, or "" if it has none.
        beginning: its first 16 bytes or more; all of them if it is shorter.
    """
    ending = f".{name.lower().rpartition('.')[2]}" if "." in name else ""
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    kind = next((kind for mark, kind in _BEGINNINGS.items() if start.startswith(mark.lower())), "")
    kind = next((kind for kind, endings in _ENDINGS.items() if ending in endings.split()), kind)
    if not kind:
        return NOT_TEXT if b"\0" in beginning else ""
    return f"is {kind}, not plain text; {_REMEDIES.get(kind, 'convert it to text first')}"
