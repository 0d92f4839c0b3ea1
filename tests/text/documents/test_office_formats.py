"""OpenDocument, rich text, presentations, spreadsheets, tables, notebooks and LaTeX: text and what is left out."""

from __future__ import annotations

import json
import time

import pytest
from lxml import etree

from precis_text.documents import (
    delimited_table,
    latex,
    notebook,
    open_document,
    presentation,
    rich_text,
    spreadsheet,
)
from precis_text.documents.passages import Passages
from precis_text.errors import UserError
from tests.document_files import archive

OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
SPACES = " ".join(
    f'xmlns:{name}="{OFFICE}:{name}:1.0"'
    for name in ("office", "text", "table", "draw", "style", "presentation")
)
SPACES += f' xmlns:fo="{OFFICE}:xsl-fo-compatible:1.0"'


def odt(body: str, styles: str = "", **parts: str) -> Passages:
    styles = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content = f"<office:document-content {SPACES}>{styles}<office:body>{body}</office:body></office:document-content>"
    return open_document.read(archive({"content.xml": content, **parts}))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "<text:h text:outline-level='2'>Mill</text:h><text:p>It<text:s text:c='2'/>turns.</text:p>",
            "Mill\n\nIt turns.",
        ),
        ("<text:h>Mill</text:h><text:p>It turns.</text:p>", "Mill\n\nIt turns."),
        ("<text:section><text:unknown><text:p>It turns.</text:p></text:unknown></text:section>", "It turns."),
        ("<text:p>One<text:line-break/>two<text:tab/>three</text:p>", "One\ntwo three"),
        (
            "<text:list><text:list-item><text:p>one</text:p></text:list-item><text:list-item><text:p>two</text:p>"
            "</text:list-item></text:list>",
            "- one\n- two",
        ),
        (
            "<text:list text:style-name='N'><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>"
            "in</text:p></text:list-item></text:list>"
            "</text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list>",
            "4. one\n- in\n5. two",
        ),
        (
            "<text:p>In 1841<text:span text:style-name='S'>3</text:span> and 10<text:span text:style-name='S'>6"
            "</text:span>.</text:p>",
            "In 1841 and 10⁶.",
        ),
        (
            "<text:p>It<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Grey stone."
            "</text:p></text:note-body></text:note> turns.</text:p>",
            "It turns.\n\n[1] Grey stone.",
        ),
        (
            "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
            "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>",
            "a | b",
        ),
        (
            "<text:p><draw:frame><draw:text-box><text:p>In a box.</text:p></draw:text-box></draw:frame>It turns."
            "</text:p>",
            "It turns.\n\nIn a box.",
        ),
        (
            "<text:p><text:ruby><text:ruby-base>mill</text:ruby-base><text:ruby-text>GONE</text:ruby-text>"
            "</text:ruby></text:p>",
            "mill",
        ),
    ],
)
def test_an_open_document_gives_its_text(body: str, text: str) -> None:
    styles = (
        "<style:style style:name='S'><style:text-properties style:text-position='super 58%'/></style:style>"
        "<text:list-style style:name='N'><text:list-level-style-number text:level='1' style:num-format='1' "
        "style:num-suffix='.' text:start-value='4'/>"
        "<text:list-level-style-bullet text:level='2'/></text:list-style>"
    )
    assert odt(body, styles).text == text


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("<text:tracked-changes><text:p>GONE</text:p></text:tracked-changes>", "deleted text left out"),
        (
            "<text:p><office:annotation><text:p>GONE</text:p></office:annotation></text:p>",
            "comments left out",
        ),
        (
            "<text:table-of-content><text:p>GONE</text:p></text:table-of-content>",
            "table of contents left out",
        ),
        ("<text:p><text:span text:style-name='H'>GONE</text:span></text:p>", "hidden text left out"),
        ("<text:p><draw:frame><draw:object/></draw:frame></text:p>", "1 embedded object not read"),
        ("<text:section text:display='none'><text:p>GONE</text:p></text:section>", "hidden text left out"),
        (
            "<office:forms><form:text xmlns:form='f' form:label='GONE'/></office:forms>",
            "controls of forms left out",
        ),
    ],
)
def test_an_open_document_names_what_it_leaves_out(body: str, note: str) -> None:
    styles = "<style:style style:name='H'><style:text-properties text:display='none'/></style:style>"
    found = odt(f"{body}<text:p>Kept.</text:p>", styles)
    assert (found.text, found.notes) == ("Kept.", [note])


def test_slides_of_an_open_presentation_are_pages_and_a_flat_file_is_read() -> None:
    title = "<draw:text-box><text:p>{0}</text:p></draw:text-box>"
    title = f"<draw:frame presentation:class='title'>{title}</draw:frame>"
    page = f"<draw:page>{title}<text:p>It {{0}}.</text:p></draw:page>"
    found = odt(page.format("turns") + page.format("moves"))
    assert found.text == "turns\n\nIt turns.\n\nmoves\n\nIt moves."
    assert found.at(found.text.index("It moves")).page == 2
    body = "<office:body><text:p>It turns.</text:p></office:body>"
    flat = f"<?xml version='1.0'?><office:document {SPACES}>{body}</office:document>"
    assert open_document.read(flat.encode()).text == "It turns."


def test_a_locked_open_document_says_so() -> None:
    with pytest.raises(UserError, match="password-protected; save it without"):
        odt("", **{"META-INF/manifest.xml": "<manifest><encryption-data/></manifest>"})


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (r"The mill turns.\par It \'fcberdauert \u8364?12.\par", "The mill turns.\n\nIt überdauert €12."),
        (r"In 1841{\super 3} it held 10{\super 6} litres.\par", "In 1841 it held 10⁶ litres."),
        (r"In 1841\super 3\nosupersub  it.\par", "In 1841 it."),
        (r"In 1841{\super 3 }it held.\par", "In 1841 it held."),
        (
            r"It{\super\chftn}{\footnote\chftn Grey {\i stone}.} turns.\par Then.\par",
            "It turns.\n\nThen.\n\nGrey stone.",
        ),
        (
            r"\trowd\cellx1\cellx2\intbl a\cell b\cell\row\trowd\intbl {\pard c\par}\cell d\cell\row\pard Then.\par",
            "a | b\nc | d\n\nThen.",
        ),
        (r"{\header GONE}Kept.\par", "Kept."),
        (r"Kept {\deleted GONE }here.\par", "Kept here."),
        (r'See {\field{\*\fldinst{HYPERLINK "GONE"}}{\fldrslt{the plan}}} now.\par', "See the plan now."),
        (r"One.\par{\shp{\*\shpinst{\shptxt A box.\par}}}Two.\par", "One.\n\nTwo.\n\nA box."),
        (r"\bullet\tab one\par\bullet\tab two\par", "- one\n- two"),
    ],
)
def test_rich_text_gives_its_text(inside: str, text: str) -> None:
    found = rich_text.read(
        rf"{{\rtf1\ansi\ansicpg1252{{\fonttbl{{\f0 Mill;}}}}{{\stylesheet{{\outlinelevel0 "
        rf"GONE;}}}}{inside}}}".encode()
    )
    assert found.text == text


FONTS = r"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset134 C;}{\f3\fcharset128 D;}}"


@pytest.mark.parametrize(
    ("head", "inside", "text"),
    [
        (
            r"\ansi\deff0",
            r"{\f1 \'cc\'e5\'eb\'fc} \'e9 {\f2 \'cb\'ae\'b3\'b5}{\f3 \'90\'85}",
            "Мель é 水车水",
        ),
        (r"\ansi\deff1", r"\'cc\'e5\'eb {\f0 \'e9}\plain  \'e5\'eb", "Мел é ел"),
        (r"\ansi\deff0", r"\f1 \'cc\'e5\'eb\plain  \'e9", "Мел é"),
        (r"\mac", r"M\'9fhle", "Mühle"),
        (r"\ansi", r"\u-10179?\u-8704? \uc2\u27700\'aa\'bb x", "😀 水 x"),
        (r"\ansi", r"{\object{\*\objdata GONE}{\result It turns.}}", "It turns."),
        (r"\ansi", r"{\*\moMath{\mr x}{\mr =y}}", "x=y"),
        (r"\ansi", r"One\column two", "One\n\ntwo"),
        (
            r"\ansi",
            r"One.\par{\shp{\*\shpinst{\shptxt Box.}}{\shprslt{\*\do{\dptxbxtext Box.}}}}",
            "One.\n\nBox.",
        ),
        (r"\ansi", r"One.\par{\*\do\dptxbx{\dptxbxtext Box.}}", "One.\n\nBox."),
    ],
)
def test_rich_text_is_read_in_the_character_sets_of_its_fonts_and_with_its_objects(
    head: str, inside: str, text: str
) -> None:
    assert rich_text.read(rf"{{\rtf1{head}{FONTS} {inside}\par}}".encode()).text == text


@pytest.mark.parametrize(
    ("inside", "note"),
    [
        (r"{\header GONE}", "page headers and footers left out"),
        (r"{\*\annotation GONE}", "comments left out"),
        (r"\v GONE words\v0 ", "hidden text left out"),
        (r"\deleted GONE words\plain ", "deleted text left out"),
        (r"{\*\unknown{\b GONE words}}", "parts of an unknown kind left out"),
    ],
)
def test_rich_text_names_what_it_leaves_out(inside: str, note: str) -> None:
    found = rich_text.read(rf"{{\rtf1\ansi {inside}Kept.\par}}".encode())
    assert (found.text, found.notes) == ("Kept.", [note])
    assert any("GONE" in text for _, text in found.left)


def test_rich_text_of_many_nested_parts_takes_no_longer_for_each() -> None:
    began = time.process_time()
    rich_text.read((r"{\rtf1 " + r"{\*\unknown " * 20_000 + r"\v " + r"\abc\def " * 20_000 + "}").encode())
    assert time.process_time() - began < 3.0


def test_rich_text_has_headings_and_names_hidden_text() -> None:
    found = rich_text.read(rb"{\rtf1\ansi {\outlinelevel0 The mill\par}It turns.{\v GONE}\par}")
    assert (found.text, found.notes) == ("The mill\n\nIt turns.", ["hidden text left out"])
    assert found.at(found.text.index("It turns")).heading == "The mill"


def pptx(*slides: str, **parts: str) -> Passages:
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    spaces = f'xmlns:p="p" xmlns:a="a" xmlns:r="{kinds}"'
    ids = "".join(f'<p:sldId id="9" r:id="s{number}"/>' for number in range(len(slides)))
    relations = "".join(
        f'<Relationship Id="s{n}" Type="{kinds}/slide" Target="slides/s{n}.xml"/>' for n in range(len(slides))
    )
    files = {f"ppt/slides/s{n}.xml": f"<p:sld {spaces}{slide}</p:sld>" for n, slide in enumerate(slides)}
    return presentation.read(
        archive(
            {
                "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
                "ppt/_rels/presentation.xml.rels": f"<Relationships>{relations}</Relationships>",
                **files,
                **parts,
            }
        )
    )


def test_a_presentation_reads_diagrams_and_one_branch_of_an_alternative_and_names_the_rest() -> None:
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = "".join(
        f"<Relationship Id='{kind}' Type='{kinds}/{kind}' Target='../{kind}.xml'/>"
        for kind in ("diagramData", "chartEx", "package")
    )
    parts = {
        "ppt/slides/_rels/s0.xml.rels": f"<Relationships>{relations}</Relationships>",
        "ppt/diagramData.xml": "<d xmlns:a='a'><pt><a:p><a:r><a:t>It grinds.</a:t></a:r></a:p></pt></d>",
        "ppt/chartEx.xml": "<c xmlns:a='a'><a:t>GONE</a:t></c>",
    }
    slide = f"><AlternateContent><Choice><p:sp/></Choice><Fallback>{shape('It turns.')}</Fallback></AlternateContent>"
    found = pptx(slide + "<p:unknown>It stops.</p:unknown>", **parts)
    assert found.text == "It turns.\n\nIt stops.\n\nIt grinds."
    assert found.notes == ["charts left out", "embedded objects not read"]


def shape(text: str, kind: str = "") -> str:
    paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp><p:nvSpPr><p:nvPr><p:ph type='{kind}'/></p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>"


def test_a_presentation_gives_slides_with_titles_tables_and_notes() -> None:
    cells = "".join(f"<a:tc><a:p><a:r><a:t>{name}</a:t></a:r></a:p></a:tc>" for name in "ab")
    table = f"<p:graphicFrame><a:tbl><a:tr>{cells}</a:tr></a:tbl></p:graphicFrame>"
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    notes = {
        "ppt/slides/_rels/s1.xml.rels": f"<Relationships><Relationship Id='n' Type='{kinds}/notesSlide' "
        f"Target='../notes/n.xml'/></Relationships>",
        "ppt/notes/n.xml": f"<p:notes xmlns:p='p' xmlns:a='a'>{shape('Say it slowly.')}{shape('7', 'sldNum')}"
        f"</p:notes>",
    }
    found = pptx(
        f">{shape('It turns.')}{shape('The mill', 'title')}{shape('GONE', 'ftr')}",
        f"><p:grpSp>{shape('one')}</p:grpSp>{shape('two' + chr(10) + 'three')}{table}",
        f" show='0'>{shape('GONE')}",
        **notes,
    )
    assert found.text == "The mill\n\nIt turns.\n\none\n\ntwo\nthree\n\na | b\n\nSay it slowly."
    assert found.notes == ["dates, footers and numbers of slides left out", "hidden slides left out"]
    assert str(found.at(found.text.index("It turns"))) == 'page 1, "The mill"'
    assert found.at(found.text.index("two")).page == 2


def sheet(rows: str) -> str:
    return f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>'


def test_a_spreadsheet_gives_rows_under_the_name_of_their_sheet() -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    text = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'
    content = archive(
        {
            "[Content_Types].xml": "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>",
            "_rels/.rels": f"<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>"
            f"<Relationship Id='r' Type='{kinds}/officeDocument' Target='xl/workbook.xml'/>"
            f"</Relationships>",
            "xl/workbook.xml": f"<workbook xmlns='{main}' xmlns:r='{kinds}'><sheets><sheet name='Mill' sheetId='1' "
            f"r:id='r1'/><sheet name='Old' sheetId='2' state='hidden' r:id='r2'/></sheets>"
            f"</workbook>",
            "xl/_rels/workbook.xml.rels": "<Relationships "
            "xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>"
            + "".join(
                f"<Relationship Id='r{n}' Type='{kinds}/worksheet' Target='worksheets/sheet{n}.xml'/>"
                for n in (1, 2)
            )
            + "</Relationships>",
            "xl/worksheets/sheet1.xml": sheet(
                f"<row r='1'>{text.format('A1', 'part')}{text.format('B1', 'cost')}</row>"
                f"<row r='2'>{text.format('A2', 'wheel')}<c r='B2'><v>1200</v></c></row>"
            ),
            "xl/drawings/drawing1.xml": "<d xmlns:a='a'><txBody><a:p><a:t>In a box.</a:t></a:p></txBody></d>",
            "xl/comments1.xml": "<c><t>GONE</t></c>",
            "xl/charts/chart1.xml": "<c><v>GONE</v></c>",
            "xl/worksheets/sheet9.xml": "<s><oddHeader>GONE</oddHeader></s>",
            "xl/worksheets/sheet2.xml": sheet(f"<row r='1'>{text.format('A1', 'GONE')}</row>"),
        }
    )
    found = spreadsheet.read(content)
    assert found.text == "Mill\n\npart | cost\nwheel | 1200\n\nIn a box."
    assert found.notes == [
        f"{what} left out" for what in ("comments", "charts", "page headers and footers", "hidden sheets")
    ]
    with pytest.raises(UserError, match="is damaged or not a spreadsheet"):
        spreadsheet.read(b"no sheet")


@pytest.mark.parametrize(
    "given", ["a;b\n1,5;2\n", "sep=;\na;b\n1,5;2\n", "a\tb\n1,5\t2\n", '"a";"b"\r\n"1,5";2\r\n']
)
def test_a_table_gives_rows_whatever_parts_its_columns(given: str) -> None:
    assert delimited_table.read(given.encode()).text == "a | b\n1,5 | 2"


def test_a_table_with_an_open_quotation_mark_is_refused() -> None:
    with pytest.raises(UserError, match="is damaged: unexpected end of data; save it again"):
        delimited_table.read(b'a,"b\n')


def test_a_notebook_gives_its_texts_and_names_its_code() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# The mill\n", "\n", "It *turns*."]},
        {"cell_type": "code", "source": "GONE = 1", "outputs": [{"data": {"text/plain": ["GONE"]}}]},
        {"cell_type": "raw", "source": "It moves."},
    ]
    found = notebook.read(json.dumps({"cells": cells, "nbformat": 4}).encode())
    assert found.text == "The mill\n\nIt turns.\n\nIt moves."
    assert found.notes == ["code left out", "output of code left out"]
    outputs = [{"data": {"text/html": "GONE"}}, {"output_type": "error", "ename": "E", "evalue": "GONE"}]
    cells = [{"cell_type": "code", "source": None, "outputs": [each]} for each in outputs]
    for cell in cells:
        kept = {"cell_type": "markdown", "source": "It stops."}
        found = notebook.read(json.dumps({"cells": [kept, cell, {"cell_type": "markdown"}]}).encode())
        assert (found.text, found.notes) == ("It stops.", ["output of code left out"])
    old = {
        "worksheets": [
            {"cells": [{"cell_type": "heading", "source": "Mill"}, {"cell_type": "code", "input": "GONE"}]}
        ]
    }
    assert notebook.read(json.dumps(old).encode()).text == "Mill"
    with pytest.raises(UserError, match="is not a notebook: it lacks a list of cells"):
        notebook.read(b"{}")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            r"\section{Mill}\label{s} It \emph{turns}~\cite{a}, see Figure~\ref{f}. % GONE",
            "Mill\n\nIt turns, see Figure.",
        ),
        (
            r"\documentclass{a}\usepackage{GONE}\title{Mill}\begin{document}\maketitle It "
            r"turns.\bibliographystyle{GONE}\end{document} GONE",
            "Mill\n\nIt turns.",
        ),
        (r"\begin{tabular}{ll}\toprule a & b \\ c & d \\ \end{tabular}", "a | b\nc | d"),
        (r"\begin{itemize}\item one \item[Two] three\end{itemize}", "- one\nTwo: three"),
        (
            r"It cost 12\,\% more, 10\textsuperscript{6} in all\footnote{Grey stone.}.",
            "It cost 12 % more, 10⁶ in all [Grey stone.].",
        ),
        (r"M\"uhle, na\"{\i}ve, \unknown{kept} text", "Mühle, naïve, kept text"),
        (
            r"\def\gone#1{GONE}\begin{thebibliography}{9}\bibitem{a} GONE\end{thebibliography}It turns.",
            "It turns.",
        ),
    ],
)
def test_latex_gives_sentences_without_commands(given: str, text: str) -> None:
    assert latex.read(given.encode()).text == text


def test_latex_names_what_it_leaves_out() -> None:
    found = latex.read(
        rb"\documentclass{a}\begin{document}It turns. \input{more} % GONE" + b"\n\\end{document}"
    )
    assert found.text == "It turns."
    assert found.notes == [
        "comments left out",
        "included files not read: more",
        "settings before the text left out",
    ]


def test_latex_names_text_behind_its_end() -> None:
    found = latex.read(rb"\begin{document}It turns.\end{document} GONE")
    assert (found.text, found.notes) == ("It turns.", ["text behind the end of the document left out"])


def test_latex_names_listings_and_reads_links() -> None:
    found = latex.read(
        b"\\begin{document}See \\href{https://example.org}{the mill}, its .toml file.\n\n\\begin{verbatim}\nls -l\n"
        b"\\end{verbatim}\n\nIt turns.\\end{document}"
    )
    assert found.text == "See the mill, its .toml file.\n\nIt turns."
    assert ("code", "\nls -l\n") in found.left


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (r"\def\mill#1{The mill #1.}\mill{turns}", "The mill turns."),
        (r"\newcommand{\town}{Veldmouth}The board of \town{} met.", "The board of Veldmouth met."),
        (r"\newcommand\by[2]{#1 of #2}\by{Ann}{Ostrand} spoke.", "Ann of Ostrand spoke."),
        (r"\newcommand{\at}[2][May]{#2 in #1}It opens \at{here}, \at[June]{there}.", None),
        (r"\def\firm{Ferry \kind}\def\kind{Ltd}It is for \firm.", "It is for Ferry Ltd."),
        (r"Run \verb|ls -l_a| now.", "Run ls -l_a now."),
    ],
)
def test_commands_that_a_document_defines_give_their_text(given: str, text: str | None) -> None:
    shown = text or "It opens here in May, there in June."
    assert latex.read(given.encode()).text == shown
    before, _, after = given.rpartition("}The")
    if after and before:
        whole = f"{before}}}\\begin{{document}}The{after}\\end{{document}}"
        assert latex.read(whole.encode()).text == shown


def test_definitions_that_multiply_each_other_stay_small() -> None:
    text = "".join("\\def\\%s{%s}" % (one, f"\\{two}" * 50) for one, two in ("ab", "bc", "cd", "de"))  # noqa: UP031
    assert len(latex.read((text + r"\def\e{mill}It turns. \a").encode()).text) < 100_000


@pytest.mark.parametrize(
    ("level", "tag"), [("", "h1"), ("0", "h1"), ("1", "h1"), ("2", "h2"), ("9", "h6"), ("x", "h1")]
)
def test_a_heading_of_an_open_document_has_its_level_from_1_to_6(level: str, tag: str) -> None:
    heading = etree.Element("h", {"outline-level": level} if level else {})
    reader = object.__new__(open_document._Document)
    assert reader._tag(heading, "h") == tag


@pytest.mark.parametrize(
    ("runs", "text", "notes"),
    [
        (
            [("In 1841", ""), ("3", "30000"), (" it burned.", "")],
            "In 1841 it burned.",
            ["marks of footnotes left out"],
        ),
        ([("It has 10", ""), ("6", "30000"), (" stones.", "0")], "It has 10⁶ stones.", []),
        ([("It is CO", ""), ("2", "-25000"), (" free.", "")], "It is CO2 free.", []),
    ],
)
def test_raised_text_of_a_slide_is_a_power_or_the_mark_of_a_footnote(
    runs: list[tuple[str, str]], text: str, notes: list[str]
) -> None:
    written = "".join(
        f"<a:r><a:rPr {baseline and f'baseline={chr(34)}{baseline}{chr(34)}'}/><a:t>{run}</a:t></a:r>"
        for run, baseline in runs
    )
    found = pptx(f"><p:sp><p:txBody><a:p>{written}</a:p></p:txBody></p:sp>")
    assert (found.text, found.notes) == (text, notes)


def test_rows_of_a_slide_keep_empty_cells_and_paragraphs_that_end_stand_apart() -> None:
    rows = "".join(
        "<a:tr>"
        + "".join(f"<a:tc><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:tc>" for cell in row)
        + "</a:tr>"
        for row in (("a", ""), ("", ""), ("", "b"))
    )
    table = f"<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>"
    assert pptx(f">{table}").text == "a | \n | b"
    assert pptx(f">{shape('It turns.' + chr(10) + 'one')}").text == "It turns.\n\none"
    assert pptx(f">{shape('It turns' + chr(10) + 'one')}").text == "It turns\none"


@pytest.mark.parametrize("declared", ["<!DOCTYPE a>", '<!DOCTYPE a [<!ENTITY b "c">]>', "<!ENTITY b 'c'>"])
def test_an_open_document_that_declares_a_type_or_an_entity_is_refused(declared: str) -> None:
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    content = f'{declared}<office:document xmlns:office="{office}"/>'.encode()
    with pytest.raises(UserError, match="has a document type, which OpenDocument forbids"):
        open_document.read(content)
