"""EPUB books: their chapters in reading order."""

from __future__ import annotations

import posixpath
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from lxml import etree

from precis_text.documents.archives import attribute, local, open_archive
from precis_text.documents.character_sets import declared_in, decode
from precis_text.documents.html_text import parse_page, tag_of, words_in, write_tree
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # of obfuscated fonts
_PAGES = frozenset(
    ("application/xhtml+xml", "text/html", "application/xml", "text/xml", "text/x-oeb1-document", "")
)
_PICTURES = ("image/", "audio/", "video/")
_LONGEST_CHAIN = 10  # fallbacks of fallbacks


def read(content: bytes) -> Passages:
    """Read a book without its table of contents.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    with open_archive(content, what="an EPUB") as archive:
        _refuse_locked(archive)
        book = _Book.open(archive)
        for reference in book.package.iterfind(".//{*}spine/{*}itemref"):
            book.add(book.items.get(reference.get("idref", "")))
        book.name_others()
        return book.finished()


@dataclass
class _Book:
    """A book that is being read."""

    archive: ZipFile
    folder: str
    package: Any
    items: dict[str, Any]
    names: dict[str, str]  # names of files, in small letters too
    writer: Writer = field(default_factory=Writer)
    missing: int = 0
    damaged: int = 0
    others: int = 0
    read: set[str] = field(default_factory=set)  # addresses of chapters

    @classmethod
    def open(cls, archive: ZipFile) -> _Book:
        """Find the package file, which lists the chapters."""
        rootfile = _xml(archive, _CONTAINER).find(".//{*}rootfile")
        place = "" if rootfile is None else rootfile.get("full-path", "")
        package = _xml(archive, place)
        items = {item.get("id", ""): item for item in package.iterfind(".//{*}manifest/{*}item")}
        names = {name.lower(): name for name in archive.namelist()} | {
            name: name for name in archive.namelist()
        }
        return cls(archive, posixpath.dirname(place), package, items, names)

    def add(self, item: Any) -> None:
        """Write a chapter, or count why it is not written."""
        page = self._readable(item)
        if page is None:
            self.missing += item is None
            kind = "" if item is None else item.get("media-type", "")
            self.others += item is not None and (kind == "image/svg+xml" or not kind.startswith(_PICTURES))
            return
        self.read.add(page.get("href", ""))
        content = self._content(page)
        if content is None:
            return
        root = parse_page(decode(content, declared_in(content), self.writer))
        if root is None:
            return
        if "nav" in page.get("properties", "").split():
            self.writer.leave_out("table of contents", words_in(root))
            return
        write_tree(root, self.writer, leave=_leave)

    def name_others(self) -> None:
        """Name the pages that the reading order leaves out."""
        for item in self.items.values():
            is_page = item.get("media-type", "").lower() in _PAGES - {"application/xml", "text/xml", ""}
            if not is_page or item.get("href", "") in self.read:
                continue
            content = self._content(item)
            root = None if content is None else parse_page(decode(content, declared_in(content), Writer()))
            is_contents = "nav" in item.get("properties", "").split()
            what = "" if is_contents else "pages outside the reading order"
            self.writer.leave_out(what, "" if root is None else _body_words(root))

    def _readable(self, item: Any) -> Any:
        """Return the item, or what the book gives in its place for readers that do not know its format."""
        for _ in range(_LONGEST_CHAIN):
            if item is None or item.get("media-type", "").lower() in _PAGES:
                return item
            item = self.items.get(item.get("fallback", ""))
        return None

    def _content(self, item: Any) -> bytes | None:
        name = posixpath.normpath(posixpath.join(self.folder, unquote(item.get("href", ""))))
        known = self.names.get(name) or self.names.get(name.lower())
        if known is None:
            self.missing += 1
            return None
        try:
            return self.archive.read(known)
        except (BadZipFile, zlib.error, EOFError, NotImplementedError):
            self.damaged += 1
            return None

    def finished(self) -> Passages:
        """Return the text of the book and say which chapters are not in it."""
        for count, why in (
            (self.missing, "missing from the file"),
            (self.damaged, "damaged and not read; download the book again"),
            (self.others, "in a format that is not read"),
        ):
            if count:
                self.writer.notes.append(f"{count:,} of its chapters {'is' if count == 1 else 'are'} {why}")
        self.writer.names = [self.package.findtext(".//{*}metadata/{*}title") or ""]
        return self.writer.finished()


def _body_words(root: Any) -> str:
    """Return the words of a page without those of its head."""
    return " ".join(words_in(each) for each in root if tag_of(each) != "head")


def _leave(element: Any) -> str | None:
    """Leave out page numbers and lists of contents within chapters."""
    kind = attribute(element, "type") or element.get("epub:type") or ""
    if kind == "pagebreak" or element.get("role") == "doc-pagebreak":
        return "page numbers"
    return "table of contents" if tag_of(element) == "nav" else None


def _refuse_locked(archive: ZipFile) -> None:
    if _ENCRYPTION in archive.namelist():
        methods = (
            attribute(each, "Algorithm")
            for each in _xml(archive, _ENCRYPTION).iter()
            if local(each) == "EncryptionMethod"
        )
        if any(method not in _FONTS for method in methods):
            raise UserError("is locked by its seller's copy protection; use a copy without it")


def _xml(archive: ZipFile, name: str) -> Any:
    """Parse a file as XML. Entity declarations, which an expansion bomb needs, are refused."""
    try:
        content = archive.read(name)
        root = etree.fromstring(
            content, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        )
    except (KeyError, BadZipFile, etree.XMLSyntaxError) as error:
        raise UserError(f"is damaged or not an EPUB: {name or 'its package file'}: {error}") from None
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        raise UserError(f"declares entities in {name}, which may be malicious; use a copy without them")
    return root
