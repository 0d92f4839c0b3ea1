"""Word documents (.docx, .docm): headings, paragraphs, numbered lists, tables and footnotes, as Word shows them.

The text of an element that is not known is kept. Left out and named: hidden and deleted text, the table of contents,
page headers and footers, comments, pictures. The document is turned into HTML, which `html_text` writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from zipfile import ZipFile

from lxml import etree

from precis_text.documents.archives import (
    attribute,
    local,
    open_archive,
    optional_part,
    own_text,
    part_of,
    refuse_document_types,
    related,
    shown_branch,
)
from precis_text.documents.html_text import write_tree
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.word_numbers import WordNumbers
from precis_text.documents.word_parts import WordParts
from precis_text.errors import UserError

OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # Microsoft's container format, also of documents with a password
_WHAT = "a Word document"
_HEADING = re.compile(r"heading (\d)")
_CONTENTS = re.compile(r"toc \d|table of figures|table of authorities")
_ON = ("", "1", "true", "on")
_NO_TEXT = frozenset(
    ("instrText", "pPr", "rPr", "tblPr", "tblGrid", "trPr", "tcPr", "sectPr", "sdtPr", "sdtEndPr", "Fallback")
)
_NO_TEXT |= frozenset(("posOffset", "align", "pctWidth", "pctHeight", "rt", "rubyPr", "binData", "fldData"))
_NO_TEXT |= frozenset(("delInstrText", "sizeRelH", "sizeRelV", "FieldCodes"))
_INLINE = frozenset(("r", "t", "oMath", "oMathPara", "hyperlink", "sym"))
_PARTS = frozenset(("relIds", "textpath", "altChunk", "subDoc"))
_DELETED = frozenset(("del", "moveFrom", "delText"))
_FORMULA = frozenset(("sup", "nary", "d", "f"))
_LEVELS = {str(level): f"h{min(level + 1, 6)}" for level in range(9)}


def read(content: bytes, *, depth: int = 0) -> Passages:
    """Read a Word document.

    Args:
        depth: the number of documents that it is in.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    if content.startswith(OLD_OFFICE):
        raise UserError("is password-protected or in Word's old format; save it as .docx without a password")
    writer = Writer()
    with open_archive(content, what=_WHAT) as archive:
        refuse_document_types(archive, what=".docx", remedy="save it again in Word")
        start = related(archive, "", what=_WHAT)
        main = next((name for kind, name in start.values() if kind == "officeDocument"), "word/document.xml")
        of_main = WordParts.of(archive, main, what=_WHAT, depth=depth)
        parts = dict(of_main.found.values())
        reader = _Document(writer, _Styles.read(_part(archive, parts.get("styles"))), of_main)
        reader.numbers = WordNumbers.read(_part(archive, parts.get("numbering")))
        for kind in ("footnotes", "endnotes"):
            reader.add_notes(kind, _part(archive, parts.get(kind)))
        page = reader.page(part_of(archive, main, what=_WHAT))
        of_main.name_unread(writer)
    write_tree(page, writer)
    return writer.finished()


def _part(archive: ZipFile, name: str | None) -> Any:
    return None if name is None else optional_part(archive, name, what=_WHAT)


@dataclass(frozen=True)
class _Style:
    """The properties that a style gives; "" for one that it does not give."""

    name: str = ""
    level: str = ""  # "h1" ...
    list_id: str = ""
    list_level: str = ""
    hidden: bool = False
    raised: bool = False


@dataclass
class _Styles:
    """The styles of a document by their ids, each with what it takes over from the style it is based on."""

    elements: dict[str, Any] = field(default_factory=dict)
    known: dict[str, _Style] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Any) -> _Styles:
        each = root if root is not None else ()
        return cls({attribute(style, "styleId"): style for style in each if local(style) == "style"})

    def get(self, name: str, depth: int = 0) -> _Style:
        if name not in self.known:
            self.known[name] = self._read(name, depth) if name in self.elements and depth < 50 else _Style()
        return self.known[name]

    def _read(self, name: str, depth: int) -> _Style:
        element = self.elements[name]
        base = self.get(_value(element, "basedOn"), depth + 1)
        title = _value(element, "name").lower()
        paragraph, run = _child(element, "pPr"), _child(element, "rPr")
        list_id, list_level = _list_in(paragraph)
        heading = _HEADING.fullmatch(title)
        level = "h1" if title == "title" else f"h{min(int(heading[1]) or 1, 6)}" if heading else ""
        raised = _value(run, "vertAlign")
        return _Style(
            name=title, level=level or _LEVELS.get(_value(paragraph, "outlineLvl"), "") or base.level,
            list_id=list_id or base.list_id, list_level=list_level or base.list_level,
            hidden=_is_on(run, "vanish", default=base.hidden),
            raised=raised == "superscript" if raised else base.raised,
        )  # fmt: skip


def _child(element: Any, name: str) -> Any:
    return next((each for each in element if local(each) == name), None) if element is not None else None


def _value(element: Any, name: str) -> str:
    found = _child(element, name)
    return "" if found is None else attribute(found, "val")


def _is_on(element: Any, name: str, *, default: bool) -> bool:
    found = _child(element, name)
    return default if found is None else attribute(found, "val") in _ON


def _list_in(properties: Any) -> tuple[str, str]:
    found = _child(properties, "numPr")
    return (_value(found, "numId"), _value(found, "ilvl")) if found is not None else ("", "")


@dataclass
class _Document:
    """A reader of WordprocessingML that builds a page of HTML."""

    writer: Writer
    styles: _Styles
    parts: WordParts
    numbers: WordNumbers = field(default_factory=WordNumbers)
    notes: dict[tuple[str, str], Any] = field(default_factory=dict)
    cited: list[tuple[int, tuple[str, str]]] = field(default_factory=list)  # notes to write behind this block
    count: int = 0
    tables: int = 0

    def add_notes(self, kind: str, root: Any) -> None:
        """Remember the footnotes or endnotes of a part."""
        for each in root if root is not None else ():
            if attribute(each, "type") not in ("separator", "continuationSeparator", "continuationNotice"):
                self.notes[kind, attribute(each, "id")] = each

    def page(self, root: Any) -> Any:
        """Return the document as HTML; notes that nothing refers to are left out and named."""
        body = etree.Element("body")
        self._blocks(root, body)
        for each in self.notes.values():
            self.writer.leave_out("footnotes without a mark", _all_text(each))
        return body

    def _blocks(self, element: Any, into: Any) -> None:
        """Add paragraphs, tables and what they are wrapped in."""
        for each in element:
            name = local(each)
            if name == "p":
                self._paragraph(each, into)
            elif name == "tbl":
                self._table(each, into)
            elif name == "sdt" and _is_contents(each):
                self.writer.leave_out("table of contents", _all_text(each))
            elif name in _DELETED:
                self.writer.leave_out("deleted text", _all_text(each))
            elif name in _INLINE:  # text outside any paragraph
                self._runs([each], etree.SubElement(into, "p"), into)
            elif name in _PARTS:
                self._write_part(each, name, into)
            elif name == "AlternateContent":
                self._blocks(shown_branch(each), into)
            elif name and name not in _NO_TEXT:
                if text := own_text(each):
                    _add(etree.SubElement(into, "p"), text)
                self._blocks(each, into)

    def _write_part(self, element: Any, name: str, into: Any) -> None:
        """Add the text that an element keeps in another part of the file, or in an attribute."""
        texts = []
        if name == "relIds":
            texts = self.parts.diagram(attribute(element, "dm"))
        elif name == "textpath":
            texts = [element.get("string", "")]
        elif name == "altChunk":
            texts = self.parts.chunk(attribute(element, "id"), self.writer)
        else:
            self.writer.notes.append("a document that this one includes is not read")
        for text in filter(str.strip, texts):
            _add(etree.SubElement(into, "p"), text)

    def _table(self, element: Any, into: Any) -> None:
        table, self.tables = etree.SubElement(into, "table"), self.tables + 1
        self._rows(element, table)
        self.tables -= 1
        self._write_cited(into)

    def _rows(self, element: Any, table: Any) -> None:
        """Add rows, whatever they are wrapped in; what is in none gets a row of its own."""
        for each in element:
            name = local(each)
            if name == "tr":
                self._cells(each, etree.SubElement(table, "tr"))
            elif name in ("tc", "p", "tbl") or own_text(each):
                self._cells([each], etree.SubElement(table, "tr"))
            elif name and name not in _NO_TEXT:
                self._rows(each, table)

    def _cells(self, element: Any, row: Any) -> None:
        for each in element:
            name = local(each)
            if name == "tc":
                self._blocks(each, etree.SubElement(row, "td"))
            elif name in ("p", "tbl", "AlternateContent") or name in _INLINE or own_text(each):
                self._blocks([each], etree.SubElement(row, "td"))
            elif name and name not in _NO_TEXT:
                self._cells(each, row)

    def _paragraph(self, element: Any, into: Any) -> None:
        properties = _child(element, "pPr")
        style = self.styles.get(_value(properties, "pStyle"))
        if _CONTENTS.fullmatch(style.name):
            self.writer.leave_out("table of contents", _all_text(element))
            return
        level = _LEVELS.get(_value(properties, "outlineLvl"), "") or style.level
        list_id, list_level = _list_in(properties)
        list_id = list_id or style.list_id
        label = None
        if list_id not in ("", "0") and _all_text(element).strip():
            place = list_level or style.list_level
            label = self.numbers.label(list_id, int(place[:2]) if place.isdecimal() else 0)
        paragraph = etree.SubElement(into, level or ("p" if label is None else "li"))
        if label is not None and not level:
            paragraph.set("data-label", f"{label} " if label else "- ")
        elif label:
            _add(paragraph, f"{label} ")
        boxes = etree.Element("div")
        self._runs(element, paragraph, boxes, hidden=style.hidden, raised=style.raised)
        into.extend(boxes)
        self._write_cited(into)

    def _write_cited(self, into: Any) -> None:
        """Write the footnotes of a paragraph or of a whole table behind it."""
        if self.tables:
            return
        cited, self.cited = self.cited, []
        for number, key in cited:
            place = etree.SubElement(into, "div")
            _add(place, f"[{number}] ")
            self._blocks(self.notes.pop(key), place)
            for paragraph in place:
                if local(paragraph) == "p":
                    paragraph.tag = "span"
                    break

    def _runs(
        self, element: Any, into: Any, boxes: Any, *, hidden: bool = False, raised: bool = False
    ) -> None:
        """Add the text of runs, whatever they are wrapped in.

        Args:
            boxes: receives text boxes, which follow the paragraph.
        """
        for each in element:
            name = local(each)
            if name in _DELETED:
                self.writer.leave_out("deleted text", _all_text(each))
            elif name == "r":
                self._run(each, into, boxes, hidden=hidden, raised=raised)
            elif name in ("p", "tbl"):  # of a text box
                self._blocks([each], boxes)
            elif name in _PARTS:
                self._write_part(each, name, boxes)
            elif name == "AlternateContent":
                self._runs(shown_branch(each), into, boxes, hidden=hidden, raised=raised)
            elif name == "ffData":
                _add(into, _choice(each))
            elif name in ("t", "sym", "tab", "br", "cr", "noBreakHyphen", "ptab"):
                _add(into, _character(each, name))
            elif name in _FORMULA:
                self._formula(each, name, into, boxes)
            elif name in ("footnoteReference", "endnoteReference"):
                self._cite(name.removesuffix("Reference") + "s", attribute(each, "id"))
            elif name and name not in _NO_TEXT:
                _add(into, own_text(each))
                self._runs(each, into, boxes, hidden=hidden, raised=raised)

    def _run(self, run: Any, into: Any, boxes: Any, *, hidden: bool, raised: bool) -> None:
        properties = _child(run, "rPr")
        style = self.styles.get(_value(properties, "rStyle"))
        if _is_on(properties, "vanish", default=style.hidden or hidden) or _is_on(
            properties, "webHidden", default=False
        ):
            self.writer.leave_out("hidden text", _all_text(run))
            return
        align = _value(properties, "vertAlign")
        is_raised = align == "superscript" if align else style.raised or raised
        if is_raised and _child(run, "t") is not None:
            into = etree.SubElement(into, "sup")
        self._runs(run, into, boxes)

    def _formula(self, element: Any, name: str, into: Any, boxes: Any) -> None:
        """Add a part of a formula with the signs of its attributes: brackets, sums, strokes, powers."""
        properties = _child(element, f"{name}Pr")
        if name == "sup":
            into = etree.SubElement(into, "sup", {"data-power": "1"})
        if name == "nary":
            _add(into, _value(properties, "chr") or "∫")
        if name == "d":
            _add(into, _value(properties, "begChr") or "(")
        for number, part in enumerate(each for each in element if local(each) != f"{name}Pr"):
            if name == "f" and number:
                _add(into, "/")
            if local(part) in _FORMULA:
                self._formula(part, local(part), into, boxes)
            else:
                self._runs(part if name != "sup" else [part], into, boxes)
        if name == "d":
            _add(into, _value(properties, "endChr") or ")")

    def _cite(self, kind: str, name: str) -> None:
        if (kind, name) in self.notes and all(key != (kind, name) for _, key in self.cited):
            self.count += 1
            self.cited.append((self.count, (kind, name)))


def _choice(field: Any) -> str:
    """Return what is chosen in a list of an old form, or whether its box is marked; "" for other fields."""
    for each in field:
        if local(each) == "ddList":
            entries = [attribute(entry, "val") for entry in each if local(entry) == "listEntry"]
            chosen = _value(each, "result") or _value(each, "default") or "0"
            return entries[int(chosen)] if chosen.isdecimal() and int(chosen) < len(entries) else ""
        if local(each) == "checkBox":
            is_marked = _is_on(each, "checked", default=_is_on(each, "default", default=False))
            return "[x] " if is_marked else "[ ] "
    return ""


def _is_contents(element: Any) -> bool:
    return any(
        local(each) == "docPartGallery" and attribute(each, "val") == "Table of Contents"
        for each in element.iter()
    )


def _all_text(element: Any) -> str:
    return "".join(
        each.text or "" if local(each) in ("t", "delText") else own_text(each)
        for each in element.iter()
        if local(each) not in _NO_TEXT
    )


def _character(element: Any, name: str) -> str:
    if name == "t":
        return element.text or ""
    if name == "sym":
        code = int(attribute(element, "char") or "0", 16)
        return chr(code) if 0x20 <= code < 0xE000 else ""
    return {"noBreakHyphen": "-", "br": "\n", "cr": "\n"}.get(name, " ")


def _add(into: Any, text: str) -> None:
    """Add text behind what an element holds; a line feed becomes a break."""
    text = "".join(character for character in text if character >= " " or character in "\t\n")
    first, *lines = text.split("\n")
    for line, after_break in [(first, False), *((line, True) for line in lines)]:
        if after_break:
            etree.SubElement(into, "br")
        if line:  # an element for each piece: text that grows piece by piece takes quadratic time
            etree.SubElement(into, "piece").text = line
