"""Documents of every format, made in the test that reads them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO

import docx
from docx.document import Document as WordDocument

ROOT = (
    '<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
)
CONTAINER = f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">{ROOT}</container>'


def pdf(
    pages: list[str],
    *,
    outline: list[tuple[str, int]] = (),  # type: ignore[assignment]
    trailer: str = "",
    annotations: list[str] = (),  # type: ignore[assignment]
) -> bytes:
    """A PDF written by hand: each page has a content stream; texts are in Windows' Latin letters.

    Args:
        annotations: dictionaries of annotations on the first page; those of fields are its form.
    """
    count = len(pages)
    kids = " ".join(f"{10 + 2 * number} 0 R" for number in range(count))
    first = 10 + 2 * count
    objects = {
        1: f"<< /Type /Catalog /Pages 2 0 R {f'/Outlines {first} 0 R' if outline else ''} >>".encode(),
        2: f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        **{
            number: b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>" % font
            for number, font in enumerate((b"Helvetica", b"Courier", b"Courier-Bold"), start=3)
        },
    }
    for number, stream in enumerate(pages):
        content = stream.encode("cp1252")
        box = "/MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 5 0 R >> >>"
        objects[10 + 2 * number] = (
            f"<< /Type /Page /Parent 2 0 R {box} /Contents {11 + 2 * number} 0 R >>".encode()
        )
        objects[11 + 2 * number] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    for place, (title, page) in enumerate(outline, start=first + 1):
        following = f"/Next {place + 1} 0 R" if place < first + len(outline) else ""
        target = f"[{10 + 2 * page} 0 R /Fit]"
        objects[place] = f"<< /Title ({title}) /Parent {first} 0 R /Dest {target} {following} >>".encode(
            "cp1252"
        )
    begin = first + len(outline) + 1
    for place, annotation in enumerate(annotations, start=begin):
        objects[place] = f"<< /Type /Annot {annotation} >>".encode("cp1252")
    if annotations:
        refer = " ".join(f"{begin + place} 0 R" for place in range(len(annotations)))
        fields = " ".join(f"{begin + k} 0 R" for k, one in enumerate(annotations) if "/FT" in one)
        objects[10] = objects[10].replace(b"/Contents", f"/Annots [{refer}] /Contents".encode())
        objects[1] = objects[1].replace(b"/Pages 2", f"/AcroForm << /Fields [{fields}] >> /Pages 2".encode())
    if outline:
        objects[first] = (
            f"<< /Type /Outlines /First {first + 1} 0 R /Last {first + len(outline)} 0 R >>".encode()
        )
    return _file(objects, trailer)


def _file(objects: dict[int, bytes], trailer: str) -> bytes:
    out, places = b"%PDF-1.4\n", {}
    for number, body in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = max(objects) + 1
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 00000 f \n"
    return out + f"trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()


def lines_of(*columns: list[str]) -> str:
    """A content stream with columns of lines, one column behind the other."""
    stream = "BT /F1 10 Tf\n"
    for place, column in enumerate(columns):
        for number, line in enumerate(column):
            text = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            stream += f"1 0 0 1 {50 + 260 * place} {760 - 14 * number} Tm ({text}) Tj\n"
    return stream + "ET"


def typed(
    lines: list[str], *, x: float, y: float, size: float = 10, bold: bool = False, step: float = 1.2
) -> str:
    """A content stream with lines below one another, in letters that are 0.6 `size` wide.

    Args:
        y: of the first line.
        step: from line to line, as a multiple of `size`.
    """
    stream = f"BT /F{3 if bold else 2} {size} Tf\n"
    for number, line in enumerate(lines):
        text = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        stream += f"1 0 0 1 {x} {y - number * step * size} Tm ({text}) Tj\n"
    return stream + "ET\n"


def word(fill: Callable[[WordDocument], object]) -> bytes:
    """A .docx that python-docx wrote."""
    document: WordDocument = docx.Document()
    fill(document)
    out = BytesIO()
    document.save(out)
    return out.getvalue()


def with_footnotes(document: bytes, notes: dict[int, str]) -> bytes:
    """The .docx with footnotes: NOTE1, NOTE2, ... in its text refer to them."""
    name = "http://schemas.openxmlformats.org"
    files = {
        file: zipfile.ZipFile(BytesIO(document)).read(file)
        for file in zipfile.ZipFile(BytesIO(document)).namelist()
    }
    body = files["word/document.xml"].decode()
    for number in notes:
        reference = (
            f'</w:t></w:r><w:r><w:footnoteReference w:id="{number}"/></w:r><w:r><w:t xml:space="preserve">'
        )
        body = body.replace(f"NOTE{number}", reference)
    told = "".join(
        f'<w:footnote w:id="{number}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:footnote>'
        for number, text in notes.items()
    )
    part = f'<w:footnotes xmlns:w="{name}/wordprocessingml/2006/main">{told}</w:footnotes>'
    kind = f"{name}/officeDocument/2006/relationships/footnotes"
    relation = f'<Relationship Id="n" Type="{kind}" Target="footnotes.xml"/>'
    relations = "word/_rels/document.xml.rels"
    changed = {
        "word/document.xml": body,
        "word/footnotes.xml": part,
        relations: files[relations].decode().replace("</Relationships>", f"{relation}</Relationships>"),
    }
    return archive({**files, **changed})


def archive(files: dict[str, str | bytes]) -> bytes:
    """A zip file."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return out.getvalue()


def epub(chapters: dict[str, str], *, more: dict[str, str] = {}) -> bytes:  # noqa: B006
    """A book: file name -> body of the chapter, in order, behind a list of contents."""
    items = "".join(
        f'<item id="{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="{n}"/>' for n in range(len(chapters)))
    nav = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{nav}{items}</manifest>'
        f'<spine><itemref idref="nav"/>{spine}</spine></package>'
    )
    pages = {
        f"OEBPS/{name}": f"<html><head><title>t</title></head><body>{body}</body></html>"
        for name, body in chapters.items()
    }
    nav_page = {"OEBPS/nav.xhtml": "<html><body><nav><ol><li>CONTENTS</li></ol></nav></body></html>"}
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": package,
    }
    return archive({**parts, **nav_page, **pages, **more})
