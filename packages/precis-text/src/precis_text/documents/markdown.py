"""Markdown, by markdown-it: headings, lists and tables as text without marks."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from precis_text.text_files import NotTextError, decode_text

_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)


def read(content: bytes) -> Passages:
    """Read a Markdown text without its front matter.

    Raises:
        UserError: it is not UTF-8.
    """
    writer = Writer()
    try:
        text = decode_text(content)
    except NotTextError as error:
        raise UserError(str(error)) from None
    rest = _FRONT_MATTER.sub("", text)
    if rest != text:
        writer.notes.append("front matter left out")
    write_page(MarkdownIt("commonmark").enable("table").render(rest), writer)
    return writer.finished()
