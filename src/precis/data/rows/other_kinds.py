"""What looks like text and is none: office files, web pages and archives are never read as plain text."""

from __future__ import annotations

_ENDINGS = {
    ".pdf": "a PDF",
    ".doc": "a Word document",
    ".docx": "a Word document",
    ".odt": "an OpenDocument text",
    ".rtf": "a rich text file",
    ".ppt": "a presentation",
    ".pptx": "a presentation",
    ".odp": "a presentation",
    ".xls": "a spreadsheet",
    ".xlsx": "a spreadsheet",
    ".ods": "a spreadsheet",
    ".epub": "an EPUB",
    ".html": "a web page",
    ".htm": "a web page",
    ".xhtml": "a web page",
    ".eml": "an e-mail",
    ".msg": "an e-mail",
    ".zip": "an archive",
    ".tar": "an archive",
    ".gz": "a compressed file",
    ".xz": "a compressed file",
    ".bz2": "a compressed file",
    ".zst": "a compressed file",
}
_BEGINNINGS = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "an office file or an archive",
    b"\xd0\xcf\x11\xe0": "an office file",
    b"{\\rtf": "a rich text file",
    b"\x1f\x8b": "a compressed file",
    b"\xfd7zXZ": "a compressed file",
    b"PAR1": "a Parquet file without its ending",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
}
_REMEDIES = {
    "a PDF": "turn it into text first, for instance with pdftotext",
    "a web page": "turn it into text first, for instance with pandoc -t plain",
    "a compressed file": "unpack it first",
    "an archive": "unpack it first",
}


def other_kind(name: str, beginning: bytes) -> str:
    """What a file is that is no plain text, and what to do, by its name's ending and its first bytes; "" for text.

    Args:
        name: of the file; "" where there is none.
        beginning: at least 16 of its bytes, where it has so many.
    """
    ending = f".{name.lower().rpartition('.')[2]}" if "." in name else ""
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    kind = next((kind for mark, kind in _BEGINNINGS.items() if start.startswith(mark.lower())), "")
    kind = _ENDINGS.get(ending, "") or kind
    if not kind:
        return "is not text; give plain text in UTF-8" if b"\0" in beginning else ""
    return f"is {kind}, not plain text; {_REMEDIES.get(kind, 'turn it into text first')}"
