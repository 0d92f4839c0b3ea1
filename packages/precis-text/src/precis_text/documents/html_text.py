"""Text of HTML, without the network, scripts or recursion: headings, paragraphs, lists and tables.

lxml parses the page. A tag that this module does not know keeps its text; what is left out is listed in `_LEFT_OUT`
and named.

    ordinary table    the cells of a row on one line, between bars
    table for layout  it holds tables, headings or several paragraphs: its cells one after the other
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from lxml import etree, html

from precis_text.documents.passages import CUT, Writer
from precis_text.documents.superscripts import power, raised_text
from precis_text.errors import UserError

#: Says what an element that is left out with all of its content is called; "" if it is no text; None to keep it.
Leave = Callable[[Any], str | None]

_BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "noframes", "ol", "option",
    "p", "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul",
])  # fmt: skip
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "summary"))
_OLD_MAIL = re.compile(
    "divRplyFwdMsg|appendonsend|OutlookMessageHeader|mail-editor-reference-message|yahoo_quoted"
)
_DRAWN = "labels of drawings"
_FILMS = "text in place of films, sound and frames"
_LEFT_OUT = {
    **dict.fromkeys(("head", "script", "style", "annotation", "annotation-xml", "meta", "link"), ""),
    **dict.fromkeys(("video", "audio", "canvas", "iframe", "embed", "applet"), _FILMS),
    **dict.fromkeys(("optgroup", "datalist", "textarea"), "controls of forms"),
    **dict.fromkeys(("rt", "rp", "rtc"), "readings above the text"),
    "noscript": "text for browsers without scripts", "svg": _DRAWN, "template": "text that scripts may show",
}  # fmt: skip
_LABELS = frozenset(("text", "tspan", "textpath", "title", "desc", "metadata"))  # of a drawing
_LONGEST_CONTROL = 8  # words on a button
_HIDDEN = re.compile(
    r"display:none|visibility:hidden|mso-hide:all|font-size:0(?:px|pt|em|;|$)|max-height:0(?:px|;|$)"
)
_APART = frozenset(("span", "a", "label"))  # elements that a page places side by side without a space
_CELL_PROSE = 40  # words: a cell of several paragraphs with more is no value of a table
_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_NUMBERED = {"a": "abcdefghijklmnopqrstuvwxyz", "A": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_ROMAN = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
_ENDS = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
_CLOSED_AT_ONCE = re.compile(r"""<\w+(?:"[^"]*"|'[^']*'|[^<>"'])*/>""")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def parse_page(page: str) -> Any:
    """Parse HTML or XHTML.

    Returns:
        The root element; None if the page holds nothing.

    Raises:
        UserError: it is nested too deeply.
    """
    page = re.sub(r"\A\s*<\?xml[^>]*>", "", page)
    if "<![CDATA[" in page:
        page = _CDATA.sub(lambda found: escape(found.group(1), quote=False), page)
    page = _with_ends(page)
    parser = html.HTMLParser(huge_tree=True, encoding="utf-8", remove_pis=True)
    try:
        root = etree.fromstring(page.encode("utf-8", "replace"), parser)
    except etree.ParserError:
        return None
    except etree.XMLSyntaxError as error:
        if "Document is empty" in str(error):
            return None
        raise
    if any("Excessive depth" in error.message for error in parser.error_log):
        raise UserError("is nested too deeply to read; it is damaged or malicious")
    return root


def _with_ends(page: str) -> str:
    """Drop the ends behind which libxml2 reads nothing, and the beginning of a remark or title that never ends."""
    page = _ENDS.sub("", page)
    opened = page.rfind("<!--")
    if opened > max(page.rfind("-->"), page.rfind("--!>")):
        page = page[:opened] + page[opened + 4 :]
    for name in ("title", "textarea"):
        opened = page.lower().rfind(f"<{name}")
        if opened < 0 or _CLOSED_AT_ONCE.match(page, opened):
            continue
        if f"</{name}" not in page[opened:].lower():
            page = page[:opened] + re.sub(r"<[^<>]*>", "<p>", page[opened:], count=1)
    return page


def write_page(page: str, writer: Writer, *, leave: Leave | None = None, quotes: bool = False) -> None:
    """Add the text of a page, or of a part of one; the other arguments are those of `write_tree`."""
    root = parse_page(page)
    if root is not None:
        write_tree(root, writer, leave=leave, quotes=quotes)


def write_tree(root: Any, writer: Writer, *, leave: Leave | None = None, quotes: bool = False) -> None:
    """Add the text of an element.

    Args:
        leave: further elements to leave out.
        quotes: begin each line of a quotation with "> ", and write `CUT` where a mail program begins the old mail.
    """
    _Page(writer, leave or (lambda _: None), quotes).write(root)


def tag_of(element: Any) -> str:
    """Return the local name of an element in small letters; "" for comments."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def words_in(element: Any) -> str:
    """Return all text of an element on one line."""
    return " ".join(" ".join(element.itertext()).split())


def _left_out(element: Any, tag: str) -> str | None:
    if tag == "template" and element.get("shadowrootmode", element.get("shadowroot")):
        return None
    if tag == "svg" and next(element.iter("foreignobject", "{*}foreignObject"), None) is not None:
        return None  # its labels are left out one by one
    if tag in _LABELS and next(element.iterancestors("svg", "{*}svg"), None) is not None:
        return _DRAWN
    if tag in _LEFT_OUT:
        return _LEFT_OUT[tag]
    if tag == "option" and tag_of(element.getparent()) == "select":
        return "controls of forms"
    if tag == "button" and len(words_in(element).split()) <= _LONGEST_CONTROL:
        return "controls of forms"
    if tag == "object" and (element.get("data") or element.get("type") or element.get("classid")):
        return _FILMS
    if element.get("hidden") is not None or _HIDDEN.search(
        (element.get("style") or "").replace(" ", "").lower()
    ):
        return "hidden text"
    return "links to edit" if "mw-editsection" in (element.get("class") or "") else None


def _is_layout(table: Any) -> bool:
    """Check whether a table arranges text rather than values."""
    if table.get("role") in ("presentation", "none"):
        return True
    if any(tag_of(each) in _HEADINGS or tag_of(each) == "table" for each in table.iterdescendants()):
        return True
    rows = [sum(tag_of(cell) in ("td", "th") for cell in row) for row in table.iter("tr", "{*}tr")]
    if max(rows, default=0) < 2:
        return True
    return any(
        sum(tag_of(part) == "p" for part in cell) > 1 and len(words_in(cell).split()) > _CELL_PROSE
        for cell in table.iter("td", "th")
    )


@dataclass
class _Table:
    """A table that is being read."""

    is_layout: bool
    row: list[str] | None = None  # its finished cells


@dataclass
class _List:
    """A list that is being read: its kind of numbers ("" for bullets) and the next number."""

    kind: str
    number: int = 1
    step: int = 1


@dataclass
class _Page:
    """A writer of blocks, each when it ends, in one pass."""

    writer: Writer
    leave: Leave
    quotes: bool
    text: list[str] = field(default_factory=list)
    tables: list[_Table] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    before: str = "\n\n"
    item: str = ""
    cell: str = ""
    pre: int = 0
    quoted: int = 0
    marks: int = 0

    def write(self, root: Any) -> None:
        left: Any = None
        walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in walker:
            if event in ("comment", "pi"):
                self._data(element.tail)
            elif event == "end":
                if element is left:
                    left = None
                else:
                    self._end(element, tag_of(element))
                self._data(element.tail if element is not root else None)
            elif self._is_kept(element, tag_of(element)):
                self._start(element, tag_of(element))
                self._data(element.text)
            else:
                left = element
                walker.skip_subtree()
        self._end_block()
        if self.marks:
            self.writer.notes.append(
                f"{self.marks:,} {'mark' if self.marks == 1 else 'marks'} of footnotes left out"
            )

    def _is_kept(self, element: Any, tag: str) -> bool:
        if tag == "sup":
            return self._raise(element)
        parent = element.getparent()
        if parent is not None and tag_of(parent) in ("msup", "msubsup") and element.getnext() is None:
            self.text.append(power(words_in(element)))
            return False
        if tag == "a" and (is_mark := _of_a_note(element)):
            self.marks += is_mark == "noteref"
            self.writer.leave_out("", words_in(element))
            return False
        what = _left_out(element, tag)
        what = self.leave(element) if what is None else what
        if what is not None:
            self.writer.leave_out(what, words_in(element))
        if what is not None and tag in _BLOCKS:
            self._end_block()
        return what is None

    def _raise(self, element: Any) -> bool:
        """Write a raised text, unless its element is read like any other; return whether it is."""
        links = [link.get("href") or "" for link in element.iter("a")]
        is_linked = bool(links) or tag_of(element.getparent()) == "a"
        is_mark = "reference" in (element.get("class") or "") or "footnote" in (element.get("class") or "")
        shown = words_in(element)
        if element.get("data-power"):
            self.text.append(power(shown))
            return False
        text = raised_text(shown, "".join(self.text[-4:]), is_linked=is_linked or is_mark)
        if text == shown:
            return True
        if text is None:
            self.marks += 1
            self.writer.leave_out("", shown)
        else:
            self.text.append(text)
        return False

    def _start(self, element: Any, tag: str) -> None:
        if tag == "br":
            self.text.append("\n")
        elif tag in _BLOCKS:
            self._end_block()
            self._open(element, tag)
        elif tag in _APART and self._meets(element):
            self.text.append(" ")
        if self.quotes and _begins_old_mail(element):
            self._end_block()
            self._put(CUT, before="\n\n")

    def _open(self, element: Any, tag: str) -> None:
        if tag == "table":
            self.before = "\n\n" if self._cells is None else self.before
            self.tables.append(_Table(_is_layout(element)))
        elif tag == "tr" and self.tables:
            self.tables[-1].row = []
        elif tag in ("ol", "ul", "menu", "dir"):
            self.lists.append(_list_of(element, tag))
            if len(self.lists) == 1 and self._cells is None:
                self.before = "\n\n"
        elif tag == "li":
            self.item = element.get("data-label") or self._label(element)
        elif tag == "blockquote":
            self.quoted += 1
        self.pre += tag == "pre"

    def _end(self, element: Any, tag: str) -> None:
        if tag in _HEADINGS and not self.quoted:
            self._heading(tag)
        elif tag in ("td", "th", "tr") and self._cells is not None:
            self._end_block()
            if self.cell or tag != "tr":
                self._cells.append(" ".join(self.cell.split()).rstrip("; "))
            self.cell = self.item = ""
            if tag == "tr":
                cells, self.tables[-1].row = self._cells, None
                self._put(" | ".join(cells) if any(cells) else "", before="\n")
        elif tag in _BLOCKS:
            self._end_block()
            self._close(tag)

    def _close(self, tag: str) -> None:
        if tag == "table" and self.tables:
            self.tables.pop()
            self.before = "\n\n"
        elif tag in ("ol", "ul", "menu", "dir") and self.lists:
            self.lists.pop()
            self.item = ""
            if not self.lists and self._cells is None:
                self.before = "\n\n"
        elif tag == "blockquote":
            self.quoted -= 1
        self.pre -= tag == "pre" and self.pre > 0

    @property
    def _cells(self) -> list[str] | None:
        """The cells of the row of values that is being read."""
        return self.tables[-1].row if self.tables and not self.tables[-1].is_layout else None

    def _data(self, text: str | None) -> None:
        if text:
            self.text.append(text if self.pre else _SPACE.sub(" ", text))

    def _heading(self, tag: str) -> None:
        text, self.item = self._taken(), ""
        if text:
            self.writer.heading(text)
            self.writer.names += [text] if tag == "h1" else []
            self.before = "\n\n"

    def _meets(self, element: Any) -> bool:
        """Check whether this element follows another one of its kind without a space, as words of their own do."""
        previous = element.getprevious()
        if previous is None or previous.tag != element.tag or (previous.tail or "") or self.pre:
            return False
        ends, begins = "".join(self.text[-2:])[-1:], words_in(element)[:1]
        return (ends.islower() and (begins.isupper() or begins.isdigit())) or (
            ends.isdigit() and begins.isalpha()
        )

    def _label(self, element: Any) -> str:
        if not self.lists or not self.lists[-1].kind:
            return "- "
        found = self.lists[-1]
        with_value = (element.get("value") or "").strip()
        if with_value.isdecimal():
            found.number = int(with_value[:9])
        label = numbered(found.number, found.kind) + ". "
        found.number += found.step
        return label

    def _end_block(self) -> None:
        """Write the collected text as a paragraph, a list item or a part of a cell."""
        text = self._taken()
        if not text:
            return
        item, self.item = self.item, ""
        if self._cells is None:
            self._put(item + text, before="\n" if item else "\n\n")
            return
        ends = "; " if item or self.lists else " "
        before = self.cell.rstrip("; ") + ends if self.cell and item else self.cell
        self.cell = before + item.removeprefix("- ") + text.rstrip("; ") + ends

    def _put(self, text: str, *, before: str) -> None:
        """Write consecutive items and rows as lines, and everything else as paragraphs."""
        if text and self.quoted and self.quotes:
            text = "\n".join("> " * self.quoted + line for line in text.split("\n"))
        if text:
            self.writer.add(text, between="\n" if self.before == before == "\n" else "\n\n")
            self.before = before

    def _taken(self) -> str:
        text, self.text = "".join(self.text), []
        if self.pre:
            return text.rstrip()
        return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()


def _of_a_note(link: Any) -> str:
    """Say what a link is to a footnote: "noteref" for its mark, "backlink" for the way back, "" for neither."""
    names = f"{link.get('role') or ''} {link.get('epub:type') or ''} {link.get('class') or ''}".split()
    if {"doc-backlink", "backlink", "footnote-back", "footnote-backref"} & {*names} or words_in(link).strip(
        "\ufe0e\ufe0f "
    ) in ("↩", "↵", "⤴"):
        return "backlink"
    is_mark = {"doc-noteref", "noteref", "footnote-ref"} & {*names} and len(words_in(link)) <= 6
    return "noteref" if is_mark else ""


def _begins_old_mail(element: Any) -> bool:
    return _OLD_MAIL.search(f"{element.get('id') or ''} {element.get('class') or ''}") is not None


def _list_of(element: Any, tag: str) -> _List:
    if tag != "ol":
        return _List("")
    kind = element.get("type") or "1"
    start, count = (element.get("start") or "").strip(), sum(tag_of(each) == "li" for each in element)
    is_reversed = element.get("reversed") is not None
    first = int(start[:9]) if start.isdecimal() else count if is_reversed else 1
    return _List(kind if kind in "1aAiI" else "1", first, -1 if is_reversed else 1)


def numbered(number: int, kind: str) -> str:
    """Write a number of a list as digits ("1"), letters ("a", "A") or Roman ("i", "I")."""
    if kind in ("i", "I") and 0 < number < 400:
        text = ""
        for value, letters in _ROMAN:
            text, number = text + letters * (number // value), number % value
        return text if kind == "i" else text.upper()
    if kind in _NUMBERED and number > 0:
        letters, times = _NUMBERED[kind], (number - 1) // 26 + 1
        return letters[(number - 1) % 26] * min(times, 9)
    return str(number)
