"""Files inside a document: a chunk of Word that is a page, rich text, plain text or another Word document."""

from __future__ import annotations

from email import policy
from email.parser import BytesParser
from importlib import import_module

from precis_text.documents.character_sets import declared_in, decode
from precis_text.documents.file_kinds import (
    BEGINNING,
    RICH_TEXT,
    SAVED_PAGE,
    WEB,
    WORD,
    DocumentFormat,
    kind_of,
)
from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_DEEPEST = 3  # documents in documents


def read_embedded(name: str, content: bytes, *, depth: int) -> Passages | None:
    """Read the text of an embedded file; None for formats that are not read here, and for damaged files.

    Args:
        depth: the number of documents that it is in.
    """
    start, writer = content[:BEGINNING], Writer()
    kind = kind_of(name, start) or kind_of("", start)
    if kind is RICH_TEXT or (kind is WORD and depth <= _DEEPEST):
        return _by_reader(kind, content, depth)
    if kind in (WEB, SAVED_PAGE) or name.lower().endswith((".mht", ".mhtml")):
        for page in _pages(content) if kind is not WEB else [content]:
            write_page(decode(page, declared_in(page), writer), writer)
        return writer.finished()
    if kind is None and b"\0" not in content:
        writer.add(decode(content, "", writer))
        return writer.finished()
    return None


def _by_reader(kind: DocumentFormat, content: bytes, depth: int) -> Passages | None:
    # imported by name, as the reading process does: the reader of Word files imports this module
    try:
        module = import_module(f"precis_text.documents.{kind.module}")
        found: Passages = module.read(content, depth=depth) if kind is WORD else module.read(content)
    except (ImportError, UserError):  # its package is missing, or it is damaged
        return None
    return found


def _pages(content: bytes) -> list[bytes]:
    """Return the pages of a saved page."""
    message = BytesParser(policy=policy.default).parsebytes(content)
    pages = (part.get_payload(decode=True) for part in message.walk() if part.get_content_subtype() == "html")
    return [page for page in pages if isinstance(page, bytes)]
