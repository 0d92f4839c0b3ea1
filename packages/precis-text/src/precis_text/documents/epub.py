"""EPUB books: their chapters in reading order."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote
from xml.etree import ElementTree
from zipfile import ZipFile

from precis_text.documents.archives import open_archive
from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # of obfuscated fonts
_PAGES = ("application/xhtml+xml", "text/html")


def read(content: bytes) -> Passages:
    """Read a book without its table of contents.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    writer, missing = Writer(), 0
    with open_archive(content, what="an EPUB") as archive:
        _refuse_locked(archive)
        rootfile = _xml(archive, _CONTAINER).find(".//{*}rootfile")
        place = "" if rootfile is None else rootfile.get("full-path", "")
        package = _xml(archive, place)
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        for reference in package.iterfind(".//{*}spine/{*}itemref"):
            item = items.get(reference.get("idref"))
            if (
                item is None
                or item.get("media-type") not in _PAGES
                or "nav" in item.get("properties", "").split()
            ):
                continue
            name = posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(item.get("href", ""))))
            try:
                page = archive.read(name)
            except KeyError:
                missing += 1
                continue
            write_page(page.decode("utf-8", "replace"), writer)
    if missing:
        writer.notes.append(f"{missing:,} of its chapters are missing from the file")
    return writer.finished()


def _refuse_locked(archive: ZipFile) -> None:
    if _ENCRYPTION in archive.namelist():
        methods = (
            method.get("Algorithm", "")
            for method in _xml(archive, _ENCRYPTION).iterfind(".//{*}EncryptionMethod")
        )
        if any(method not in _FONTS for method in methods):
            raise UserError("is locked by its seller's copy protection; use a copy without it")


def _xml(archive: ZipFile, name: str) -> ElementTree.Element:
    """Parse a file as XML. Entity declarations, which an expansion bomb needs, are refused."""
    try:
        content = archive.read(name)
        if b"<!ENTITY" in content:
            raise UserError(f"declares entities in {name}, which may be malicious; use a copy without them")
        return ElementTree.fromstring(content)
    except (KeyError, ElementTree.ParseError) as error:
        raise UserError(f"is damaged or not an EPUB: {name or 'its package file'}: {error}") from None
