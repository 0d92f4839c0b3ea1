"""Word documents (.docx), by mammoth: headings, paragraphs, lists, tables and footnotes."""

from __future__ import annotations

import re
from io import BytesIO
from zipfile import ZipFile

from precis_text.documents.archives import open_archive
from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_LOCKED = b"\xd0\xcf\x11\xe0"  # Microsoft's container format, also of documents with a password

_FRAME = re.compile(r"word/(?:header|footer)\d*\.xml$")
# Word styles that mammoth does not map itself
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='toc {level}'] => p.contents:fresh" for level in range(1, 10)),
    ]
)
_CONTENTS = re.compile(r'<p class="contents">.*?</p>', re.DOTALL)
_NOTE = re.compile(r'<li id="((?:foot|end)note-[^"]*)">(.*?)</li>', re.DOTALL)
_REFERENCE = re.compile(r'<a href="#((?:foot|end)note-[^"]*)"[^>]*>(\[\d+\])</a>')
_BACK = re.compile(r'</?p>|<a href="#(?:foot|end)note-ref-[^"]*">[^<]*</a>')
_PARAGRAPH_ENDS = r"</(?:p|li|h[1-6])>"


def read(content: bytes) -> Passages:
    """Read a Word document.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    if content.startswith(_LOCKED):
        raise UserError("is password-protected or in Word's old format; save it as .docx without a password")
    with open_archive(content, what="a Word document") as archive:
        for name in archive.namelist():
            # The format forbids document types, which an entity expansion bomb needs.
            if name.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(name):
                raise UserError(f"has a document type in {name}, which .docx forbids; save it again in Word")
        notes = _left_out(archive)
    import mammoth

    # Pictures are not read, since mammoth would copy each into the page.
    without_pictures = mammoth.images.img_element(lambda _: {"src": ""})
    page = mammoth.convert_to_html(BytesIO(content), convert_image=without_pictures, style_map=_STYLES).value
    page, contents = _CONTENTS.subn("", page)
    if contents:
        notes.append("table of contents left out")
    writer = Writer()
    writer.notes += notes
    write_page(_with_notes_in_place(page), writer)
    return writer.finished()


def _left_out(archive: ZipFile) -> list[str]:
    """Describe the parts of the document that are not read."""
    names = archive.namelist()
    notes = []
    if any(_FRAME.match(name) and b"<w:t" in archive.read(name) for name in names):
        notes.append("page headers and footers left out")
    if pictures := sum(name.startswith("word/media/") for name in names):
        notes.append(f"{pictures:,} {'picture' if pictures == 1 else 'pictures'} not read")
    if any(name == "word/comments.xml" for name in names):
        notes.append("comments left out")
    return notes


def _with_notes_in_place(page: str) -> str:
    """Move each footnote of mammoth's page after the paragraph or the table that refers to it."""
    notes = dict(_NOTE.findall(page))
    if not notes:
        return page
    body = _NOTE.sub("", page)
    parts, end = [], 0
    for reference in _REFERENCE.finditer(body):
        name, mark = reference.groups()
        tables = body.count("<table", 0, reference.start()) > body.count("</table>", 0, reference.start())
        closing = "</table>" if tables else _PARAGRAPH_ENDS
        found = re.compile(closing).search(body, reference.end())
        place = max(found.end() if found else len(body), end)
        text = _BACK.sub("", notes.pop(name, ""))
        parts += [body[end:place], f"<div>{mark} {text}</div>" if text else ""]
        end = place
    return "".join([*parts, body[end:], *notes.values()])
