"""Every word of a rich file comes out or is named, also after one kind of node became unknown to its reader.

A stranger's file holds nodes that no reader of today knows. So each test takes a small file with many kinds of nodes,
and for each kind renames all nodes of it, wraps them, or unwraps them. The words are those of the text nodes;
each begins with a capital letter, which parts it from its neighbour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import pytest
from lxml import etree

from precis_text.documents import mail, spreadsheet
from precis_text.documents.archives import open_archive
from precis_text.documents.conservation import words
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from tests.document_files import archive, epub

ODD = "{urn:odd}part"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def changed(page: str) -> Iterator[tuple[str, str]]:
    """Yield a page with each kind of node renamed, wrapped and unwrapped, with a name for the change."""
    kinds = sorted({each.tag for each in etree.fromstring(page).iterdescendants()})
    for kind in kinds:
        for change in (renamed, wrapped, unwrapped):
            root = etree.fromstring(page)
            for each in [*root.iter(kind)]:
                if each is not root:
                    change(each)
            yield f"{change.__name__} {kind}", etree.tostring(root, encoding="unicode")


def renamed(element: Any) -> None:
    element.tag = ODD


def wrapped(element: Any) -> None:
    """Put an unknown node around an element."""
    around = etree.Element(ODD)
    element.getparent().replace(element, around)
    around.tail, element.tail = element.tail, None
    around.append(element)


def unwrapped(element: Any) -> None:
    """Put the children of an element in its place; text of its own stays where it is."""
    if element.text and element.text.strip():
        return
    parent = element.getparent()
    place = parent.index(element)
    parent[place : place + 1] = [*element]


def lost(module: str, content: bytes, given: Iterable[str]) -> list[str]:
    """Return the words that a reader neither gives nor names."""
    found = import_module(f"precis_text.documents.{module}").read(content)
    documents: list[Passages] = found if isinstance(found, list) else [found]
    out = words(each.text for each in documents) + words(text for each in documents for _, text in each.left)
    return sorted(words(given) - out)


def nodes(page: str) -> list[str]:
    return [str(text) for text in etree.fromstring(page).itertext()]


WORD = """<w:document xmlns:w="w" xmlns:a="a" xmlns:m="m" xmlns:mc="mc" xmlns:v="v" xmlns:wps="wps"><w:body>
<w:p><w:pPr><w:pStyle/></w:pPr><w:r><w:rPr/><w:t>Alder</w:t></w:r><w:hyperlink><w:r><w:t>Birch</w:t></w:r></w:hyperlink>
<w:smartTag><w:r><w:t>Cedar</w:t></w:r></w:smartTag><w:ins><w:r><w:t>Dogwood</w:t></w:r></w:ins><w:del><w:r>
<w:delText>Elder</w:delText></w:r></w:del><m:oMath><m:r><m:t>Fir</m:t></m:r></m:oMath></w:p>
<w:sdt><w:sdtPr/><w:sdtContent><w:p><w:r><w:t>Gorse</w:t></w:r></w:p></w:sdtContent></w:sdt>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Hazel</w:t></w:r></w:p></w:tc><w:tc><w:tbl><w:tr><w:tc><w:p><w:r><w:t>Ivy</w:t></w:r>
</w:p></w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>
<w:p><w:r><mc:AlternateContent><mc:Choice><wps:txbx><w:txbxContent><w:p><w:r><w:t>Juniper</w:t></w:r></w:p>
</w:txbxContent></wps:txbx></mc:Choice></mc:AlternateContent></w:r></w:p>
<w:p><w:r><w:pict><v:textbox><w:txbxContent><w:p><w:r><w:t>Larch</w:t></w:r></w:p></w:txbxContent></v:textbox></w:pict>
</w:r></w:p></w:body></w:document>"""

SLIDE = """<p:sld xmlns:p="p" xmlns:a="a" xmlns:mc="mc"><p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/>
</p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:rPr/><a:t>Alder</a:t></a:r></a:p></p:txBody></p:sp>
<p:grpSp><p:sp><p:txBody><a:p><a:fld><a:t>Birch</a:t></a:fld></a:p><a:p><a:r><a:t>Cedar</a:t></a:r></a:p></p:txBody>
</p:sp></p:grpSp><p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>Dogwood</a:t></a:r>
</a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>Elder</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl>
</a:graphicData></a:graphic></p:graphicFrame><mc:AlternateContent><mc:Choice><p:sp><p:txBody><a:p><a:r><a:t>Fir</a:t>
</a:r></a:p></p:txBody></p:sp></mc:Choice></mc:AlternateContent></p:spTree></p:cSld></p:sld>"""

OPEN = f"""<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:text="{OFFICE}:text:1.0"
 xmlns:table="{OFFICE}:table:1.0" xmlns:draw="{OFFICE}:drawing:1.0"><office:body><office:text>
<text:h text:outline-level="1">Alder</text:h><text:p>Birch <text:span>Cedar</text:span> Dogwood <text:a>Elder</text:a>
<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Fir</text:p></text:note-body></text:note>
<draw:frame><draw:text-box><text:p>Gorse</text:p></draw:text-box></draw:frame></text:p><text:section><text:list>
<text:list-item><text:p>Hazel</text:p></text:list-item></text:list></text:section><table:table><table:table-header-rows>
<table:table-row><table:table-cell><text:p>Ivy</text:p></table:table-cell></table:table-row></table:table-header-rows>
<table:table-row><table:table-cell><text:p>Juniper</text:p><table:table><table:table-row><table:table-cell>
<text:p>Larch</text:p></table:table-cell></table:table-row></table:table></table:table-cell></table:table-row>
</table:table><text:tracked-changes><text:deletion><text:p>Maple</text:p></text:deletion></text:tracked-changes>
<draw:g><draw:custom-shape><text:p>Oak</text:p></draw:custom-shape></draw:g></office:text></office:body>
</office:document-content>"""

PAGE = """<html><head><title>Alder</title></head><body><header>Birch</header><nav><a>Cedar</a></nav><main><article>
<h1>Dogwood</h1><p>Elder <b>Fir</b> <a href="x">Gorse</a> <span>Hazel</span></p><ul><li>Ivy</li></ul><dl>
<dt>Juniper</dt><dd>Larch</dd></dl><table><caption>Maple</caption><thead><tr><th>Oak</th><th>Pine</th></tr></thead><tbody><tr><td>Quince
</td><td><table><tr><td>Rowan</td></tr></table></td></tr></tbody></table><blockquote>Spruce</blockquote><pre>Teak</pre>
<figure><figcaption>Upas</figcaption></figure><aside>Viburnum</aside><details><summary>Willow</summary>Yew</details>
<form><label>Acacia</label><button>Bamboo</button><select><option>Cherry</option></select><textarea>Date</textarea></form>
<video>Ebony</video><noscript>Fig</noscript><svg><text>Ginkgo</text><foreignObject><div>Holly</div></foreignObject>
</svg><ruby>Ilex <rt>Jasmine</rt></ruby> <template>Kauri</template> <object>Lime</object> <math><mi>Mango</mi></math>
</article></main><footer>Nutmeg</footer></body></html>"""


def word_file(page: str) -> bytes:
    return archive({"word/document.xml": page})


def presentation(page: str) -> bytes:
    deck = f'<p xmlns:r="{RELATIONS}"><sldId r:id="s"/></p>'
    relation = f'<Relationship Id="s" Type="{RELATIONS}/slide" Target="s.xml"/>'
    parts = {"ppt/presentation.xml": deck, "ppt/s.xml": page}
    return archive({**parts, "ppt/_rels/presentation.xml.rels": f"<Relationships>{relation}</Relationships>"})


@pytest.mark.parametrize(
    ("module", "page", "make", "each"),
    [
        ("word_file", WORD, word_file, 1),
        ("presentation", SLIDE, presentation, 1),
        ("open_document", OPEN, lambda page: archive({"content.xml": page}), 1),
        ("open_document", OPEN, str.encode, 1),
        ("epub", PAGE, lambda page: epub({"a.xhtml": ""}, more={"OEBPS/a.xhtml": page}), 1),
        ("web_page", PAGE, str.encode, 60),
        ("mail", PAGE, lambda page: b"Subject: x\nContent-Type: text/html\n\n" + page.encode(), 60),
        ("markdown", PAGE, str.encode, 60),
    ],
)
def test_nodes_that_are_not_known_keep_their_words(module: str, page: str, make: Any, each: int) -> None:
    """Try every change, or each sixtieth one where the reader of pages, which EPUB tries, does the work."""
    variants = [("nothing", page), *changed(page)]
    assert len(variants) > 40
    for change, variant in variants[::each]:
        missing = lost(module, make(variant), nodes(variant))
        assert not missing, f"{change} loses {missing}"


PLANTS = re.compile(
    "alder|birch|cedar|dogwood|elder|fir|gorse|hazel|ivy|juniper|larch|maple|oak|pine|quince", re.I
)
RICH = r"""{\rtf1\ansi\deff0{\fonttbl{\f0\fcharset0 A;}}{\pard\outlinelevel0\b Alder\par}Birch {\i Cedar}
{\field{\fldinst x}{\fldrslt Dogwood}} Elder\par
\trowd\cellx1\cellx2\intbl Fir\cell Gorse\cell\row\pard{\footnote Hazel} Ivy
{\shp{\shptxt Juniper}}{\object{\result Larch}}\line Maple\tab Oak\page{\revised Pine}{\deleted Quince}\par}"""
FORMULA = r"""\documentclass{a}\begin{document}\title{Alder}\section{Birch}
\emph{Cedar} \textbf{Dogwood}\footnote{Elder} Fir
\begin{itemize}\item Gorse \item Hazel\end{itemize} \href{https://example.org}{Ivy} \begin{quote}Juniper\end{quote}
\begin{table}\caption{Larch}\begin{tabular}{ll} Maple & Oak \\ \end{tabular}\end{table} \textcolor{red}{Pine}
\begin{theorem}Quince\end{theorem}\end{document}"""
MARKS = """# Alder

> Birch *cedar* **dogwood** `elder` [fir](https://example.org) ~~gorse~~

- hazel
1. ivy

| juniper | larch |
|---|---|
| maple | oak |

```
pine
```
"""


@pytest.mark.parametrize(
    ("module", "text", "kinds", "odd"),
    [
        ("rich_text", RICH, r"\\([a-z]{2,})(?=[^a-z])", "zzz"),
        ("latex", FORMULA, r"\\([a-z]{2,})(?=[^a-z])|\{([a-z]{4,})\}", "zzz"),
        ("markdown", MARKS, r"([#>*`\[\]~|-])", "+"),
    ],
)
def test_marks_that_are_not_known_keep_their_words(module: str, text: str, kinds: str, odd: str) -> None:
    given = PLANTS.findall(text)
    assert len(given) > 12
    for kind in sorted({found[1] or found[2] for found in re.finditer(kinds, text) if found.lastindex}):
        if kind not in ("rtf", "documentclass", "document"):
            changed_text = re.sub(rf"(?<![a-z]){re.escape(kind)}(?![a-z])", odd, text)
            missing = set(lost(module, changed_text.encode(), given)) - {kind}
            assert not missing, f"{kind} loses {missing}"


def test_cells_and_outputs_of_an_unknown_kind_keep_their_words() -> None:
    output = {"output_type": "display_data", "data": {"text/plain": "Alder"}}
    cells = [
        {"cell_type": "markdown", "source": "Birch"},
        {"cell_type": "code", "source": "Cedar", "outputs": [output, {"name": "stdout", "text": "Dogwood"}]},
        {"cell_type": "raw", "source": "Elder"},
    ]
    text = json.dumps({"cells": cells})
    for kind in ("nothing", "markdown", "raw", "text/plain", "display_data", "stdout"):
        odd = "text/odd" if kind == "text/plain" else "odd"
        assert not lost(
            "notebook", text.replace(f'"{kind}"', f'"{odd}"').encode(), ["Alder Birch Cedar Dogwood Elder"]
        )


def test_parts_of_a_mail_of_an_unknown_kind_are_read_or_named() -> None:
    kinds = ("text/plain", "text/html", "multipart/alternative", "multipart/mixed", "message/rfc822")
    inner = "--a\nContent-Type: text/html\n\n<p>Birch</p>\n--a--\n"
    text = (
        "Subject: x\nContent-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: text/plain\n\nAlder\n"
        f"--m\nContent-Type: multipart/alternative; boundary=a\n\n{inner}"
        "--m\nContent-Type: message/rfc822\n\nSubject: y\n\nCedar\n--m--\n"
    )
    for kind, odd in [
        ("nothing", ""),
        *((kind, odd) for kind in kinds for odd in ("text/odd", "x-odd/part")),
    ]:
        try:
            found = mail.read(text.replace(kind, odd, 1).encode())
            assert isinstance(found, Passages)
            said, notes = found.text, " ".join(found.notes)
        except UserError as error:
            said, notes = "", str(error)
        missing = words(["Alder Birch Cedar"]) - words([said])
        assert not missing or odd in notes, f"{kind} as {odd}: {missing} {notes}"


BOX = (
    """<d xmlns:a="a"><anchor><sp><txBody><a:p><a:r><a:t>Alder</a:t></a:r></a:p></txBody></sp></anchor></d>"""
)


def test_boxes_on_a_sheet_keep_their_words() -> None:
    for change, variant in changed(BOX):
        with open_archive(archive({"xl/drawings/drawing1.xml": variant}), what="a spreadsheet") as opened:
            assert spreadsheet._around(opened, Writer()) == ["Alder"], change
