"""Text of HTML, without the network, scripts or recursion: headings, paragraphs, lists and tables."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from precis_text.documents.passages import Writer

_BLOCK = re.compile(
    "address|article|aside|blockquote|body|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|header"
    "|h[1-6]|hr|html|li|main|nav|ol|p|pre|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
_SKIPPED = re.compile("head|script|style|template|noscript|svg|math|iframe|object|select|textarea|button")
FRAME = frozenset({"nav", "header", "footer", "aside"})  # of a page, around its content
_BOX = re.compile("div|section|dialog|form")
# Names of consent boxes. A page may use a similar name to say that it has one, so the end of the name must match
_CONSENT = re.compile(
    r"(?:cookies?|consent|gdpr)[\w-]*(?:banner|notice|popup|bar|box|modal|overlay|dialog|message)(?:\s|$)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"h[1-6]")
_SPACE = re.compile(r"\s+")


def write_page(page: str, writer: Writer, *, skipped: frozenset[str] = frozenset()) -> None:
    """Add the text of a page, or of a part of one.

    Args:
        skipped: names of elements to leave out, as well as scripts, styles and forms; if there are any, consent boxes
            are left out too.
    """
    parser = _Page(writer, skipped)
    parser.feed(page)
    parser.close()
    parser.end_block()


def _asks_consent(tag: str, attrs: list[tuple[str, str | None]]) -> bool:
    names = (value or "" for name, value in attrs if name in ("id", "class"))
    return bool(_BOX.fullmatch(tag)) and any(_CONSENT.search(name) for name in names)


class _Page(HTMLParser):
    """An HTML parser that writes each block when it ends, in one pass."""

    def __init__(self, writer: Writer, skipped: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._writer, self._frame = writer, skipped
        self._text: list[str] = []
        self._row: list[str] | None = None  # cells of the current table row
        self._skipping = ""  # the element that is left out, and its nesting depth
        self._open = 0
        self._before = "\n\n"
        self._item = ""
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping:
            self._open += tag == self._skipping
        elif tag in self._frame or _SKIPPED.fullmatch(tag) or (self._frame and _asks_consent(tag, attrs)):
            self._skipping, self._open = tag, 1
        elif tag == "br":
            self._text.append("\n")
        elif tag == "tr":
            self.end_block()
            self._row = []
        elif _BLOCK.fullmatch(tag):
            self.end_block()
            self._item = "- " if tag == "li" else self._item
            self._pre += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            self._open -= tag == self._skipping
            self._skipping = self._skipping if self._open else ""
        elif _HEADING.fullmatch(tag):
            self._writer.heading(self._taken())
            self._before = "\n\n"
        elif tag in ("td", "th") and self._row is not None:
            self._row.append(" ".join(self._taken().split()))
        elif tag == "tr" and self._row is not None:
            cells, self._row = self._row, None
            self._write(" | ".join(cells) if any(cells) else "", before="\n")
        elif tag in ("ul", "ol", "table"):
            self.end_block()
            self._before, self._item = "\n\n", ""
        elif _BLOCK.fullmatch(tag):
            self.end_block()
            self._pre -= tag == "pre" and self._pre > 0

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._text.append(data if self._pre else _SPACE.sub(" ", data))

    def end_block(self) -> None:
        """Write the collected text as a paragraph, a list item or a part of a cell."""
        text = self._taken()
        if self._row is not None:
            self._text = [text, " "] if text else []
        elif text:
            item, self._item = self._item, ""
            self._write(item + text, before="\n" if item else "\n\n")

    def _write(self, text: str, *, before: str) -> None:
        """Write consecutive items and rows as lines, and everything else as paragraphs."""
        if text:
            self._writer.add(text, between="\n" if self._before == before == "\n" else "\n\n")
            self._before = before

    def _taken(self) -> str:
        text, self._text = "".join(self._text), []
        if self._pre:
            return text.rstrip()
        return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
