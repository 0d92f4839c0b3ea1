"""Word documents (.docx), by mammoth: headings, paragraphs, lists, tables and footnotes."""

from __future__ import annotations

from io import BytesIO

from precis.data.documents.archives import open_archive
from precis.data.documents.page_text import write_page
from precis.data.documents.passages import Passages, Writer
from precis.errors import UserError

_LOCKED = b"\xd0\xcf\x11\xe0"  # a container of Microsoft's, in which documents with a password lie


def read(content: bytes) -> Passages:
    """Read a document.

    Raises:
        UserError: it is locked, broken, too large, or holds no text.
    """
    if content.startswith(_LOCKED):
        raise UserError(
            "is locked with a password or in Word's old format; save it as .docx without a password"
        )
    with open_archive(content, what="a Word document") as archive:
        for name in archive.namelist():
            # The format allows no document type, which entities that grow without end need.
            if name.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(name):
                raise UserError(f"has a document type in {name}, which no Word document has; it is not read")
    import mammoth

    # Pictures are not read, since each would be copied into the page.
    without_pictures = mammoth.images.img_element(lambda _: {"src": ""})
    page = mammoth.convert_to_html(BytesIO(content), convert_image=without_pictures).value
    writer = Writer()
    write_page(page, writer)
    return writer.finished()
