"""Rich text (.rtf), by striprtf: paragraphs and tables; raised marks and hidden text are treated before."""

from __future__ import annotations

import re

from striprtf.striprtf import rtf_to_text

from precis_text.documents.passages import Passages, Writer
from precis_text.documents.rich_text_source import prepared, set_of, taken, without_shapes
from precis_text.documents.superscripts import raised_text
from precis_text.errors import UserError

_GROUP = re.compile(r"\{[^{}]*\\(super|v|deleted)(?![a-z0-9])([^{}]*)\}")
_RAISED = re.compile(
    r"\\super(?![a-z])((?:[^{}\\]|\\'[0-9a-f]{2}){0,20})\\(?:nosupersub|super0|plain)(?![a-z])"
)
_WORDS = re.compile(r"(?:\\[a-z]+-?\d* ?|\\'[0-9a-f]{2}|[\r\n])")
_FOOTNOTE = re.compile(r"\{(?:\\\*)?\\footnote(?![a-z])")
_BOX = re.compile(r"\{(?:\\\*)?\\(?:shptxt|dptxbxtext)(?![a-z])")
_OLD_FORM = re.compile(r"\{\\shprslt(?![a-z])")
_FIELD_CODE = re.compile(r"\{\\\*\\fldinst(?![a-z])")
_NOTE_START = re.compile(r"\A\{(?:\\\*)?\\(?:footnote(?:\\ftnalt)?|shptxt|dptxbxtext)")
_STYLES = re.compile(r"\{\\stylesheet(?![a-z])")
_CELL_END = re.compile(r"\\par\s*((?:\}\s*)*)\\cell(?![a-z])")
_LEVEL = re.compile(r"\\outlinelevel[0-8](?!\d) ?")
_HEADING = "\ue001"
_BULLET = re.compile(r"[•·▪◦‣\uf0b7]\s+")
_PICTURE = re.compile(r"\\pict(?![a-z])")


def read(content: bytes) -> Passages:
    """Read a rich text.

    Raises:
        UserError: it does not begin like one.
    """
    if not content.lstrip().startswith(b"{\\rtf"):
        raise UserError("does not start with {\\rtf; it is damaged or not rich text")
    writer = Writer()
    source = content.decode("latin-1")
    charset = set_of(source)
    source = prepared(source, writer)
    source, notes = taken(source, _FOOTNOTE)
    source, old_boxes = taken(source, _OLD_FORM)  # what older readers show in place of a box
    source, boxes = taken(source, _BOX)
    source = without_shapes(source, writer)
    boxes = boxes or [box for old in old_boxes for box in taken(old, _BOX)[1]]
    source, _ = taken(source, _FIELD_CODE)
    source, _ = taken(source, _STYLES)
    source = _CELL_END.sub(r"\1\\cell", source)
    source = _LEVEL.sub(rf" \\u{ord(_HEADING) - 65536}?", source)
    source = _RAISED.sub(lambda found: _raised(found.group(1), source[: found.start()][-60:], writer), source)
    before = source
    source = _GROUP.sub(lambda found: _grouped(found, before, writer), source)
    if pictures := len(_PICTURE.findall(source)):
        writer.notes.append(f"{pictures:,} {'picture' if pictures == 1 else 'pictures'} not read")
    _write_lines(rtf_to_text(source, charset, errors="replace").split("\n"), writer)
    head = source[: source.find("{\\fonttbl")] if "{\\fonttbl" in source else source[:200]
    for note in [*boxes, *notes]:
        text = rtf_to_text(f"{{{head.lstrip('{')}{_NOTE_START.sub('{', note)}}}", charset, errors="replace")
        writer.add(" ".join(text.split()))
    return writer.finished()


def _write_lines(lines: list[str], writer: Writer) -> None:
    """Write headings and paragraphs, the rows of a table and the items of a list as lines."""
    before = ""
    for line in lines:
        cells = [" ".join(cell.split()) for cell in line.split("|")]
        text = " ".join(line.replace(_HEADING, "").split())
        kind = ""
        if len(cells) > 1 and not cells[-1]:
            kind, text = "row", " | ".join(cells[:-1]).strip(" |")
        elif _BULLET.match(text):
            kind, text = "item", _BULLET.sub("- ", text, count=1)
        if _HEADING in line and not kind:
            writer.heading(text)
        elif text:
            writer.add(text, between="\n" if kind and kind == before else "\n\n")
        before = kind if text else before


def _grouped(found: re.Match[str], source: str, writer: Writer) -> str:
    if found.group(1) != "super":
        what = "hidden text" if found.group(1) == "v" else "deleted text"
        writer.leave_out(what, _WORDS.sub(" ", found.group(2)))
        return ""
    return _raised(found.group(2), source[max(0, found.start() - 60) : found.start()], writer)


def _raised(raised: str, before: str, writer: Writer) -> str:
    shown = _WORDS.sub("", raised).strip()
    text = raised_text(shown, _WORDS.sub("", before).rstrip("{} "))
    if text is None:
        writer.leave_out("marks of footnotes", shown)
        return " " if raised.endswith(" ") else ""
    return "".join(letter if ord(letter) < 128 else f"\\u{ord(letter)}?" for letter in f"{{{text}}}")
