"""Rich text (.rtf), by striprtf: paragraphs and tables; raised marks and hidden text are treated before."""

from __future__ import annotations

import re

from striprtf.striprtf import rtf_to_text

from precis_text.documents.passages import Passages, Writer
from precis_text.documents.superscripts import raised_text
from precis_text.errors import UserError

_GROUP = re.compile(r"\{[^{}]*\\(super|v)(?![a-z0-9])([^{}]*)\}")
_RAISED = re.compile(r"\\super(?![a-z])((?:[^{}\\]|\\'[0-9a-f]{2}){0,20})\\(?:nosupersub|super0|plain)(?![a-z])")
_WORDS = re.compile(r"(?:\\[a-z]+-?\d* ?|\\'[0-9a-f]{2}|[\r\n])")
_AROUND = re.compile(r"\{\\(?:header|footer)[lrf]?(?![a-z])")
_PICTURE = re.compile(r"\\pict(?![a-z])")


def read(content: bytes) -> Passages:
    """Read a rich text.

    Raises:
        UserError: it does not begin like one.
    """
    if not content.lstrip().startswith(b"{\\rtf"):
        raise UserError("does not begin with {\\rtf; it is damaged or no rich text")
    writer = Writer()
    source = content.decode("latin-1")
    source = _RAISED.sub(lambda found: _raised(found.group(1), source[: found.start()][-60:], writer), source)
    before = source
    source = _GROUP.sub(lambda found: _grouped(found, before, writer), source)
    if _AROUND.search(source):
        writer.notes.append("page headers and footers left out")
    if pictures := len(_PICTURE.findall(source)):
        writer.notes.append(f"{pictures:,} {'picture' if pictures == 1 else 'pictures'} not read")
    _write_lines(rtf_to_text(source, errors="replace").split("\n"), writer)
    return writer.finished()


def _write_lines(lines: list[str], writer: Writer) -> None:
    """Write paragraphs, and the rows of a table as lines."""
    was_row = False
    for line in lines:
        cells = [" ".join(cell.split()) for cell in line.split("|")]
        is_row = line.rstrip().endswith("|") and len(cells) > 1
        text = " | ".join(cells[:-1]) if is_row else " ".join(line.split())
        writer.add(text if text.strip(" |") else "", between="\n" if is_row and was_row else "\n\n")
        was_row = is_row


def _grouped(found: re.Match[str], source: str, writer: Writer) -> str:
    if found.group(1) == "v":
        writer.leave_out("hidden text", _WORDS.sub(" ", found.group(2)))
        return ""
    return _raised(found.group(2), source[max(0, found.start() - 60) : found.start()], writer)


def _raised(raised: str, before: str, writer: Writer) -> str:
    shown = _WORDS.sub("", raised).strip()
    text = raised_text(shown, _WORDS.sub("", before).rstrip("{} "))
    if text is None:
        writer.leave_out("marks of footnotes", shown)
        return " " if raised.endswith(" ") else ""
    return "".join(letter if ord(letter) < 128 else f"\\u{ord(letter)}?" for letter in f"{{{text}}}")
