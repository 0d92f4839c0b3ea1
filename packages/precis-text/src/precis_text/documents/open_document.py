"""OpenDocument texts (.odt) and presentations (.odp): headings, paragraphs, lists, tables and footnotes.

The text of an element that is not known is kept. Left out and named: deleted and hidden text, comments, the table of
contents, page headers and footers. The document is turned into HTML, which `html_text` writes.
"""

from __future__ import annotations

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
)
from precis_text.documents.html_text import numbered, words_in, write_tree
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_WHAT = "an OpenDocument file"
_LEFT_OUT = {
    "tracked-changes": "deleted text", "annotation": "comments", "table-of-content": "table of contents",
    "hidden-text": "hidden text", "hidden-paragraph": "hidden text", "ruby-text": "readings above the text",
    "desc": "descriptions of pictures", "event-listeners": "", "forms": "controls of forms", "sequence-decls": "",
    "script": "", "binary-data": "", "index-title-template": "", "index-entry-span": "",
    "page-number": "page numbers",
}  # fmt: skip
_SPACES = {"tab": " ", "line-break": "\n", "soft-page-break": ""}
_FORMATS = frozenset("1aAiI")
_CELLS = frozenset(("table-cell", "covered-table-cell"))
_CONTENT = frozenset(("p", "h", "list", "table", "frame"))


def read(content: bytes) -> Passages:
    """Read an OpenDocument text or presentation.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    writer = Writer()
    if content.lstrip()[:1] == b"<":
        _write(_flat(content), None, writer)
        return writer.finished()
    with open_archive(content, what=_WHAT) as archive:
        refuse_document_types(archive, what="OpenDocument", remedy="save it again in LibreOffice")
        manifest = optional_part(archive, "META-INF/manifest.xml", what=_WHAT)
        if manifest is not None and any(local(each) == "encryption-data" for each in manifest.iter()):
            raise UserError("is password-protected; save it without a password")
        root = part_of(archive, "content.xml", what=_WHAT)
        styles = optional_part(archive, "styles.xml", what=_WHAT)
        pictures = sum(name.startswith("Pictures/") for name in archive.namelist())
        formulas = {
            name: each for name in archive.namelist() if (each := _formula(archive, name)) is not None
        }
    _write(root, styles, writer, formulas)
    if pictures:
        writer.notes.append(f"{pictures:,} {'picture' if pictures == 1 else 'pictures'} not read")
    return writer.finished()


def _flat(content: bytes) -> Any:
    """Parse a document of a single file (.fodt)."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise UserError("has a document type, which OpenDocument forbids; save it again in LibreOffice")
    try:
        return etree.fromstring(
            content, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        )
    except etree.XMLSyntaxError as error:
        raise UserError(f"is damaged or not {_WHAT}: {error}; save it again") from None


def _formula(archive: ZipFile, name: str) -> Any:
    """Return a formula that is embedded as a document of its own; None for everything else."""
    if not name.endswith("/content.xml"):
        return None
    root = part_of(archive, name, what=_WHAT)
    return root if local(root) == "math" else None


def _write(root: Any, styles: Any, writer: Writer, formulas: dict[str, Any] | None = None) -> None:
    """Write the body of a document, a presentation by its slides."""
    reader = _Document(
        writer, _Styles.read([each for each in (styles, root) if each is not None]), formulas or {}
    )
    body = next((each for each in root if local(each) == "body"), root)
    slides = [each for each in body.iter() if local(each) == "page"]
    for number, slide in enumerate(slides, start=1):
        writer.at(page=number, heading="")
        write_tree(reader.page(slide), writer)
    if not slides:
        write_tree(reader.page(body), writer)
    for each in (styles if styles is not None else root).iter():
        if local(each) in ("header", "footer"):
            writer.leave_out("page headers and footers", words_in(each))
    if reader.objects:
        writer.notes.append(
            f"{reader.objects:,} embedded {'object' if reader.objects == 1 else 'objects'} not read"
        )


@dataclass
class _Styles:
    """The styles of a document: raised and hidden ones, numbers of lists, and the styles that they are based on."""

    raised: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    bases: dict[str, str] = field(default_factory=dict)
    lists: dict[str, dict[int, tuple[str, str, str, int]]] = field(default_factory=dict)

    @classmethod
    def read(cls, parts: list[Any]) -> _Styles:
        found = cls()
        for each in (element for part in parts for element in part.iter()):
            if local(each) == "style":
                found._add(each)
            elif local(each) == "list-style":
                found.lists[attribute(each, "name")] = {
                    int(attribute(level, "level") or 1): _numbers(level) for level in each
                }
        return found

    def _add(self, element: Any) -> None:
        name = attribute(element, "name")
        self.bases[name] = attribute(element, "parent-style-name")
        for each in element:
            position = attribute(each, "text-position").split(" ")[0]
            if position == "super" or (
                position.endswith("%") and position[:1].isdigit() and position != "0%"
            ):
                self.raised.add(name)
            if local(each) == "text-properties" and attribute(each, "display") == "none":
                self.hidden.add(name)

    def is_title(self, name: str) -> bool:
        """Check whether a paragraph has the style of a title."""
        return name == "Title" or self.bases.get(name) == "Title"


def _numbers(level: Any) -> tuple[str, str, str, int]:
    """Return the kind of numbers of a list's level ("" for bullets), the signs around them, and the first one."""
    kind = attribute(level, "num-format") if local(level) == "list-level-style-number" else ""
    start = attribute(level, "start-value")
    return (
        kind if kind in _FORMATS else "",
        attribute(level, "num-prefix"),
        attribute(level, "num-suffix"),
        int(start) if start.isdecimal() else 1,
    )


@dataclass
class _Document:
    """A reader of the body that builds a page of HTML."""

    writer: Writer
    styles: _Styles
    formulas: dict[str, Any]
    objects: int = 0
    notes: list[tuple[str, Any]] = field(default_factory=list)  # to write behind this block
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def page(self, root: Any) -> Any:
        """Return an element of the document as HTML."""
        body = etree.Element("body")
        self._blocks(root, body)
        return body

    def _blocks(self, element: Any, into: Any, style: str = "", depth: int = 0) -> None:
        """Add the blocks in an element.

        Args:
            style: the list's that the element is in.
            depth: nesting of lists.
        """
        _add_block(into, element.text)
        for each in element:
            self._block(each, into, style, depth)
            _add_block(into, each.tail)

    def _block(self, element: Any, into: Any, style: str = "", depth: int = 0) -> None:
        name = local(element)
        if self._is_left_out(element, name):
            return
        if name in ("h", "p"):
            self._paragraph(element, etree.SubElement(into, self._tag(element, name)), into)
        elif name == "list":
            inner = attribute(element, "style-name") or style
            if attribute(element, "continue-numbering") != "true" and not attribute(element, "continue-list"):
                self.counts.pop((inner, depth + 1), None)
            self._blocks(element, into, inner, depth + 1)
        elif name in ("list-item", "list-header"):
            self._item(element, into, style, depth, numbers=name == "list-item")
        elif name == "table":
            self._table(element, into)
        elif name == "frame" and attribute(element, "class") == "title":
            heading = etree.SubElement(into, "h2")
            _add(heading, words_in(element))
        elif name == "notes":  # of a slide
            self._blocks(element, etree.SubElement(into, "div"))
        elif name:
            self._blocks(element, into, style, depth)

    def _is_left_out(self, element: Any, name: str) -> bool:
        """Name an element that is left out; return whether it is."""
        what = _LEFT_OUT.get(name)
        if name == "title" and "svg" in element.tag:
            what = "descriptions of pictures"
        elif name == "section" and (
            attribute(element, "is-hidden") == "true" or attribute(element, "display") == "none"
        ):
            what = "hidden text"
        if what is None:
            return False
        words = words_in(element) if name != "forms" else " ".join(_form_texts(element))
        self.writer.leave_out(what if name != "binary-data" else "", words if name != "binary-data" else "")
        return True

    def _tag(self, element: Any, name: str) -> str:
        if name == "h":
            level = attribute(element, "outline-level")
            return f"h{min(int(level), 6)}" if level.isdecimal() and int(level) else "h1"
        return "h1" if self.styles.is_title(attribute(element, "style-name")) else "p"

    def _item(self, element: Any, into: Any, style: str, depth: int, *, numbers: bool) -> None:
        start = len(into)
        self._blocks(element, into, style, depth)
        first = next((each for each in into[start:] if each.tag in ("p", "h1")), None)
        if first is None or not numbers or first.getparent() is not into:
            return
        kind, before, after, number = self.styles.lists.get(style, {}).get(depth, ("", "", "", 1))
        if first.tag != "p":
            return
        first.tag = "li"
        label = "-"
        if kind:
            given = attribute(element, "start-value")
            count = int(given) if given.isdecimal() else self.counts.get((style, depth), number - 1) + 1
            self.counts[style, depth] = count
            label = f"{before}{numbered(count, kind)}{after}"
        first.set("data-label", f"{label} ")

    def _table(self, element: Any, into: Any) -> None:
        self._rows(element, etree.SubElement(into, "table"))

    def _rows(self, element: Any, table: Any) -> None:
        """Add rows, whatever they are wrapped in; what is in none gets a row of its own."""
        for each in element:
            name = local(each)
            if name == "table-row":
                self._cells(each, etree.SubElement(table, "tr"))
            elif name in _CELLS or name in _CONTENT or own_text(each):
                self._cells([each], etree.SubElement(table, "tr"))
            elif name and not self._is_left_out(each, name):
                self._rows(each, table)

    def _cells(self, element: Any, row: Any) -> None:
        for each in element:
            name = local(each)
            if name in _CELLS:
                self._blocks(each, etree.SubElement(row, "td"))
            elif name in _CONTENT or own_text(each):
                self._block(each, etree.SubElement(row, "td"))
            elif name and not self._is_left_out(each, name):
                self._cells(each, row)

    def _paragraph(self, element: Any, paragraph: Any, into: Any) -> None:
        boxes = etree.Element("div")
        if attribute(element, "style-name") in self.styles.hidden:
            self.writer.leave_out("hidden text", words_in(element))
            return
        self._text(element, paragraph, boxes)
        into.extend(boxes)
        notes, self.notes = self.notes, []
        for mark, note in notes:
            place = etree.SubElement(into, "div")
            _add(place, f"[{mark}] {note.text or ''}")
            for each in note:
                self._text(each, place, place)
                _add(place, f" {each.tail or ''}")

    def _text(self, element: Any, into: Any, boxes: Any) -> None:
        """Add the text of a paragraph, whatever it is wrapped in; frames follow it."""
        _add(into, element.text or "")
        for each in element:
            name = local(each)
            if self._is_left_out(each, name):
                pass
            elif name == "s":
                _add(into, " " * min(int(attribute(each, "c") or 1), 100))
            elif name in _SPACES:
                _add(into, _SPACES[name])
            elif name == "note":
                self._note(each)
            elif name == "frame" and any(local(inner) in ("object", "object-ole") for inner in each):
                self._object(each, into)
            elif name in ("frame", "text-box", "p", "table", "list"):
                self._block(each, boxes)
            elif name == "span" and attribute(each, "style-name") in self.styles.hidden:
                self.writer.leave_out("hidden text", words_in(each))
            elif name == "span" and attribute(each, "style-name") in self.styles.raised:
                self._text(each, etree.SubElement(into, "sup"), boxes)
            elif name:
                self._text(each, into, boxes)
            _add(into, each.tail or "")

    def _object(self, frame: Any, into: Any) -> None:
        """Add a formula; other embedded objects are counted."""
        for each in frame:
            place = attribute(each, "href").removeprefix("./") + "/content.xml"
            formula = next((inner for inner in each if local(inner) == "math"), self.formulas.get(place))
            if local(each) == "object" and formula is not None:
                shown = Writer()
                write_tree(formula, shown)
                _add(into, shown.finished().text.replace("\n", " "))
            else:
                self.objects += local(each) in ("object", "object-ole")

    def _note(self, element: Any) -> None:
        mark = next((words_in(each) for each in element if local(each) == "note-citation"), "*")
        self.writer.leave_out("", mark)
        for each in element:
            if local(each) != "note-citation":
                self.notes.append((mark, each))


def _form_texts(element: Any) -> list[str]:
    """Return the labels and answers of a form, which are attributes."""
    names = ("label", "current-value", "value")
    return [value for each in element.iter() for name in names if (value := attribute(each, name))]


def _add_block(into: Any, text: str | None) -> None:
    """Add text outside any paragraph as one of its own."""
    if text and text.strip():
        _add(etree.SubElement(into, "p"), text)


def _add(into: Any, text: str) -> None:
    """Add text behind what an element holds; a line feed of the text is a space, one of the format a break."""
    first, *lines = ("\n" if text == "\n" else " ".join(text.split("\n"))).split("\n")
    for line, after_break in [(first, False), *((line, True) for line in lines)]:
        if after_break:
            etree.SubElement(into, "br")
        if line:  # an element for each piece: text that grows piece by piece takes quadratic time
            etree.SubElement(into, "piece").text = line
