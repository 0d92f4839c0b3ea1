"""Web pages, by trafilatura: the article without menus, advertisements and comments."""

from __future__ import annotations

import codecs
import re

from precis_text.documents.html_text import FRAME, write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_DECLARED = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w-]{1,40})""", re.IGNORECASE)
_DECLARED_WITHIN = 4096  # bytes
_FEWEST = 250  # characters of an article: in a shorter one trafilatura finds no parts and includes menus
# Hidden elements, edit links and reference marks
_HIDDEN = [
    "//body//*[@hidden]",
    "//body//*[contains(translate(@style, ' ', ''), 'display:none')]",
    "//*[contains(@class, 'mw-editsection')]",
    "//sup[contains(@class, 'reference')]",
]
_LATIN = "cp1252"  # the browsers' default for pages that declare nothing


def read(content: bytes) -> Passages:
    """Read the main part of a page, or all of it if no main part is found.

    Raises:
        UserError: the page contains no text.
    """
    from trafilatura import extract

    writer = Writer()
    page = _decoded(content, writer)
    article = extract(
        page, output_format="html", include_comments=False, include_tables=True, prune_xpath=_HIDDEN
    )
    main = Writer()
    main.notes = writer.notes
    write_page(article or "", main)
    if len(main.finished().text) >= _FEWEST:
        writer = main
    else:
        write_page(page, writer, skipped=FRAME)
    writer.notes.append("menus and other parts around the article left out")
    if not writer.finished().text:
        raise UserError(
            "contains no text, perhaps because scripts write it; print it to a PDF in a browser and use that"
        )
    return writer.finished()


def _decoded(content: bytes, writer: Writer) -> str:
    """Decode a page by its declared character set, as UTF-8, or as browsers guess, with a note."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    declared = _DECLARED.search(content[:_DECLARED_WITHIN])
    names = [declared.group(1).decode("ascii", "replace")] if declared else []
    for name in (*names, "utf-8"):
        try:
            return content.decode("utf-8-sig" if name.lower() in ("utf-8", "utf8") else name)
        except (LookupError, UnicodeDecodeError):
            continue
    writer.notes.append("its character set is not declared and was read as Western European")
    return content.decode(_LATIN, "replace")
