"""HTML, web pages, EPUB, Markdown and Word: what a parser does not know is kept, or named.

Each kind is a place where a parser drops what it does not expect. The right column names the tests' own examples.

| kind | where it shows |
|---|---|
| an element that is never closed swallows what follows | `<head>`, `<select>`, `<title/>`, other XHTML |
| an unknown tag is taken for HTML | `List<Object>`, `<new-server>`, `<style>` in Markdown |
| one buffer for what can be nested | a table, list or heading in a cell; a text box in Word |
| the article is chosen by its container | lists, cells, spans, asides of a web page |
| a character set by its name only | gbk as gb2312, cp1252 as iso-8859-1, ASCII that is UTF-8, Latin EPUB |
| what a reader of today does not show | fallbacks of films, ruby, hidden and deleted text, remarks |
| meaning in the position of letters | raised marks, powers and ordinals; MathML and Word's formulas |
| text that the program makes | numbers of lists in HTML and Word |
| one bad part ends the whole | a damaged or missing chapter, an unknown format with a fallback |
| settings and marks of one dialect | `+++`, `---`, `[[page|text]]`, `%% remark %%`, `[!note]`, `==bright==` |
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from docx.document import Document as WordDocument

from precis_text.documents import epub as epub_reader
from precis_text.documents import markdown, web_page, word_file
from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.reader import read_content
from precis_text.errors import UserError
from tests.document_files import archive, epub, word

PROSE = "The mill on the Arn was built from grey stone and ground rye for nine villages until the flood. " * 4


def page(body: str) -> Passages:
    writer = Writer()
    write_page(body, writer)
    return writer.finished()


def web(body: str, head: str = "") -> Passages:
    return web_page.read(
        f"<!DOCTYPE html><html><head>{head}<title>t</title></head><body>{body}</body></html>".encode()
    )


def md(text: str) -> Passages:
    return markdown.read(text.encode())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("<html><head><title>T</title><body><p>The mill moves.", "The mill moves."),
        ("<p>A Map<Key, Value> of mills.</p><p>More.</p>", "A Map of mills.\n\nMore."),
        ("<select>Take the mill. <p>It turns.</p>", "Take the mill.\n\nIt turns."),
        ("<my-card>The mill</my-card> turns.", "The mill turns."),
        (
            "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><p>It turns.</p>"
            "</html>",
            "It turns.",
        ),
        ("<?xml version='1.0'?><p>x<script src='a'/> turns</p>", "x turns"),
        ("<?xml version='1.0'?><p><![CDATA[A & B <turn>]]></p>", "A & B <turn>"),
        ("<object>The mill turns.</object>", "The mill turns."),
        ("<p>one<!-- remark -->, two</p>", "one, two"),
        ("<div><span>Rent</span><span>12 euros</span></div>", "Rent 12 euros"),
        ("<p>W<b>heel</b></p>", "Wheel"),
        ("<p>one</p><p><![CDATA[It turns.]]></p>", "one\n\nIt turns."),
        ("<my-card><template shadowrootmode='open'><p>It turns.</p></template></my-card>", "It turns."),
        ("<svg><text>GONE</text><foreignObject><div>It turns.</div></foreignObject></svg>", "It turns."),
        ("<html><body><p>one</p></body></html><p>It turns.</p>", "one\n\nIt turns."),
        ("<p>one</p><!-- never closed <p>It turns.</p>", "one\n\nnever closed\n\nIt turns."),
        ("<html><head><title>Mill<body><p>It turns.</p>", "Mill\n\nIt turns."),
    ],
)
def test_what_is_not_known_keeps_its_text(given: str, text: str) -> None:
    assert page(given).text == text


def test_cells_hold_what_they_hold() -> None:
    nested = "<table><tr><td><p>Left one.</p></td><td><table><tr><td>Right one.</td></tr></table></td></tr></table>"
    assert page(nested).text == "Left one.\n\nRight one."
    headed = "<table><tr><td>Before it.</td><td><h2>The wheel</h2><p>It turns.</p></td></tr></table>"
    assert page(headed).text == "Before it.\n\nThe wheel\n\nIt turns."
    listed = "<tr><td>Mill</td><td><ul><li>rye</li><li>oats</li></ul></td></tr>"
    listed = f"<table><tr><th>a</th><th>b</th></tr>{listed}</table>"
    assert page(listed).text == "a | b\nMill | rye; oats"
    deep = "<table><tr><td>" * 60 + "The mill" + "</td></tr></table>" * 60
    assert page(deep).text == "The mill"


def test_a_page_that_is_nested_beyond_bounds_is_refused() -> None:
    with pytest.raises(UserError, match="nested too deeply"):
        page("<div>" * 5000 + "The mill" + "</div>" * 5000)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("<ol><li>one<li>two</ol>", "1. one\n2. two"),
        ("<ol start=3 type=a><li>one<li value=9>two</ol>", "c. one\ni. two"),
        ("<ol type=I reversed><li>one<li>two</ol>", "II. one\nI. two"),
        ("<ol><li>one<ul><li>in</ul><li>two</ol>", "1. one\n- in\n2. two"),
    ],
)
def test_the_numbers_of_a_list_are_written(given: str, text: str) -> None:
    assert page(given).text == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("built in 1841<sup>3</sup> of stone.<sup>[4]</sup>", "built in 1841 of stone."),
        ("built<sup><a href='#n'>12</a></sup> here", "built here"),
        ("<sup class='reference'>2</sup>of stone", "of stone"),
        (
            "10<sup>6</sup> litres, 3<sup>2</sup>, 40 km<sup>2</sup>, x<sup>-1</sup>",
            "10⁶ litres, 3², 40 km², x⁻¹",
        ),
        ("the 19<sup>th</sup> day, M<sup>me</sup> Arn", "the 19th day, Mme Arn"),
        ("E = mc<sup>2</sup>, H<sub>2</sub>O", "E = mc², H2O"),
        ("in<sup>7</sup> of<sup>8</sup>, 4 in<sup>2</sup>", "in of, 4 in²"),
        ("<math><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup><annotation>mc^2</annotation></math>", "mc²"),
        ("stone<a role='doc-noteref' href='#f'>5</a> here", "stone here"),
        ("Grey stone. <a role='doc-backlink' href='#r'>↩</a>", "Grey stone."),
    ],
)
def test_raised_marks_go_and_powers_stay(given: str, text: str) -> None:
    assert page(f"<p>{given}</p>").text == text


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ("<video><p>GONE</p></video>", "text in place of films, sound and frames left out"),
        ("<iframe>GONE</iframe>", "text in place of films, sound and frames left out"),
        ("<ruby>mill<rp>(</rp><rt>GONE</rt></ruby>", "readings above the text left out"),
        ("<noscript>GONE</noscript>", "text for browsers without scripts left out"),
        ("<p style='DISPLAY : none'>GONE</p>", "hidden text left out"),
        ("<div hidden>GONE</div>", "hidden text left out"),
        ("<select><option>GONE</option></select>", "controls of forms left out"),
        ("<button>GONE</button>", "controls of forms left out"),
        ("<svg><text>GONE</text></svg>", "labels of drawings left out"),
        ("<template>GONE</template>", "text that scripts may show left out"),
    ],
)
def test_what_is_not_shown_is_named(given: str, note: str) -> None:
    found = page(f"<p>Before.</p>{given}<p>After.</p>")
    assert found.text.startswith("Before.")
    assert found.text.endswith("After.")
    assert "GONE" not in found.text
    assert found.notes == [note]


@pytest.mark.parametrize(
    "more",
    [
        "<ul><li>It ground rye</li><li>It ground oats</li></ul>",
        "<table><tr><td>It ground rye</td><td>It ground oats</td></tr></table>",
        "<div><span>It ground rye</span><span> It ground oats</span></div>",
        "<dl><dt>It ground rye</dt><dd>It ground oats</dd></dl>",
        "<pre>It ground rye\nIt ground oats</pre>",
        "<details><summary>It ground rye</summary>It ground oats</details>",
        "<figure><img><figcaption>It ground rye. It ground oats</figcaption></figure>",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "<main>{}</main>", "<div class=w><aside class=content>{}</aside></div>"]
)
def test_an_article_keeps_all_of_its_parts(more: str, around: str) -> None:
    body = f"<h1>The mill</h1><p>{PROSE}</p>{more}<p>{PROSE.replace('mill', 'wheel')}</p>"
    menu = "<nav><a href='/a'>Home</a> <a href='/b'>Imprint</a></nav>"
    found = web(menu + around.format(body))
    for words in ("The mill", "It ground rye", "It ground oats", "The wheel on the Arn"):
        assert words in found.text
    assert "Imprint" not in found.text
    assert "menus and other parts around the article left out" in found.notes


@pytest.mark.parametrize(
    "message",
    [
        "<div><i class='date'>10:3{0}</i><div class='from_name'>{1}</div><div class='text'>{2}</div></div>",
        "<div><h2 class='_2pim _a6-h'>{1}</h2><div class='_a6-p'>{2}</div><div class='_a6-o'>10:3{0}</div></div>",
    ],
)
def test_an_exported_chat_is_read_as_turns_with_times(message: str) -> None:
    said = [("Ann", "Does it turn?"), ("Ben", "It turns, <b>slowly</b>."), ("Ann", "Good.")]
    body = "".join(message.format(number, *one) for number, one in enumerate(said))
    found = web(f"<h1>GONE</h1>{body}")
    assert found.text == "Ann: Does it turn?\nBen: It turns, slowly.\nAnn: Good."
    assert [place.time for place in found.places] == ["10:30", "10:31", "10:32"]
    assert found.notes == ["lines of the chat program left out"]


def test_what_stands_around_an_article_is_left_out_and_named() -> None:
    links = "".join(f"<li><a href='/{n}'>Another text of ours, number {n}</a></li>" for n in range(6))
    around = f"<div class='related-posts'><ul>{links}</ul></div>"
    around += "<div id='privacy-text'><p>We store your choices.</p></div>"
    found = web(f"<div><h1>The mill</h1><p>{PROSE}</p><p>{PROSE}</p></div>{around}")
    assert "Another text" not in found.text
    assert "your choices" not in found.text
    assert found.notes == ["menus and other parts around the article left out"]


@pytest.mark.parametrize(
    ("charset", "codec", "words"),
    [
        ("gb2312", "gb18030", "镕基路的磨坊"),
        ("shift_jis", "cp932", "①水車小屋"),
        ("ks_c_5601-1987", "cp949", "똠방각하 물레방아"),
        ("iso-8859-1", "cp1252", "the “mill” – it’s old…"),
        ("us-ascii", "utf-8", "Mühle"),
        ("utf-8", "utf-8-sig", "Mühle"),
        ("koi8-r", "koi8-r", "мельница"),
        ("latin9", "iso-8859-15", "12 € für Mühlen"),
    ],
)
def test_a_character_set_is_what_browsers_take_it_for(charset: str, codec: str, words: str) -> None:
    content = f"<html><head><meta charset='{charset}'></head><body><p>{words}</p></body></html>".encode(codec)
    found = web_page.read(content)
    assert (found.text, found.notes) == (words, [])


def test_a_character_set_that_is_wrong_or_unknown_is_said() -> None:
    for declared, why in (
        ("utf-8", "is not UTF-8 as declared"),
        ("x-mill", "'x-mill' is unknown"),
        ("", "is not declared"),
    ):
        content = f"<html><head><meta charset='{declared}'></head><body><p>Mühle</p></body></html>".encode(
            "cp1252"
        )
        found = web_page.read(content)
        assert found.text == "Mühle"
        assert found.notes == [f"its character set {why} and was read as Western European"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("A Map<Key> of mills.\n\nMore.", "A Map<Key> of mills.\n\nMore."),
        ("Use <style> or <select> here.\n\nMore.", "Use <style> or <select> here.\n\nMore."),
        ("Write <name of the mill> down.", "Write <name of the mill> down."),
        ("<new-server>\n\nMore.", "<new-server>\n\nMore."),
        ("The <b>big</b> mill<br>turns.", "The big mill\nturns."),
        ("<div align=center>\n\nThe mill\n\n</div>\n\nMore.", "The mill\n\nMore."),
        ("<details><summary>The mill</summary>\n\nIt turns.\n\n</details>", "The mill\n\nIt turns."),
        ("<!-- remark -->\n\nMore.", "More."),
        ("`List<Object>` and `[[x]]`", "List<Object> and [[x]]"),
        ("See [[Old mill|the mill]] and [[Arn]].", "See the mill and Arn."),
        ("> [!NOTE] Hours\n> It opens at ten.", "Hours\n\nIt opens at ten."),
        ("- [ ] grind\n- [x] wash", "- grind\n- ☑ wash"),
        ("The ==bright== mill[^1].\n\n[^1]: Grey stone.", "The bright mill.\n\nGrey stone."),
        ("3. three\n4. four", "3. three\n4. four"),
    ],
)
def test_markdown_keeps_what_its_writer_typed(given: str, text: str) -> None:
    assert md(given).text == text


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ("---\ntitle: GONE\n---\nKept.", "front matter left out"),
        ('+++\ntitle = "GONE"\n+++\n\nKept.', "front matter left out"),
        ("Kept.\n\n%% GONE\nGONE %%", "remarks left out"),
        ("Kept. ^gone1", "anchors left out"),
        ("Kept.\n\n#gone #gone/x", "lines of tags left out"),
        ("Kept.\n\n![[gone.png]]", "embedded files left out"),
    ],
)
def test_markdown_names_what_it_leaves_out(given: str, note: str) -> None:
    found = md(given)
    assert (found.text, found.notes) == ("Kept.", [note])


def test_rules_around_a_text_are_no_settings() -> None:
    assert (
        md("---\nA rule is above.\n\nIt turns.\n\n---\n\nEnd.").text
        == "A rule is above.\n\nIt turns.\n\nEnd."
    )


def test_percent_signs_of_a_text_are_no_remark() -> None:
    assert md("It is 100%% sure that 20%% stay.").text == "It is 100%% sure that 20%% stay."


def test_a_chapter_is_read_in_the_encoding_that_it_names() -> None:
    chapter = '<?xml version="1.0" encoding="iso-8859-1"?><html><body><p>Mühle</p></body></html>'.encode(
        "latin-1"
    )
    book = epub({"a.xhtml": ""}, more={"OEBPS/a.xhtml": chapter})  # type: ignore[dict-item]
    assert epub_reader.read(book).text == "Mühle"


def test_one_damaged_chapter_does_not_end_the_book() -> None:
    book = bytearray(
        epub({"a.xhtml": "<p>First words.</p>", "b.xhtml": "<p>Second words.</p>", "c.xhtml": ""})
    )
    place = book.find(b"OEBPS/b.xhtml") + len("OEBPS/b.xhtml") + 8
    book[place : place + 6] = b"\xff" * 6
    found = epub_reader.read(bytes(book))
    assert found.text == "First words."
    assert found.notes[1:] == ["1 of its chapters is damaged and not read; download the book again"]


def test_a_chapter_of_an_unknown_format_gives_way_to_its_fallback() -> None:
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf'><manifest><item id='x' href='x.bin' "
        "media-type='application/x-mill' "
        "fallback='y'/><item id='y' href='Y.xhtml' media-type='application/xhtml+xml'/><item id='z' href='z.bin' "
        "media-type='application/x-mill'/></manifest><spine><itemref idref='x'/><itemref idref='z'/>"
        "<itemref idref='none'/></spine></package>"
    )
    book = epub({"y.xhtml": "<p>It turns.</p>"}, more={"OEBPS/book.opf": package})
    found = epub_reader.read(book)
    assert found.text == "It turns."
    assert found.notes == [
        "1 of its chapters is missing from the file",
        "1 of its chapters is in a format that is not read",
    ]


def test_pages_outside_the_reading_order_of_a_book_are_named() -> None:
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf'><manifest><item id='a' href='a.xhtml' "
        "media-type='application/xhtml+xml'/><item id='b' href='b.xhtml' media-type='application/xhtml+xml'/>"
        "<item id='c' href='c.svg' media-type='image/svg+xml'/></manifest><spine><itemref idref='a'/>"
        "<itemref idref='c'/></spine></package>"
    )
    found = epub_reader.read(
        epub({"a.xhtml": "<p>It turns.</p>", "b.xhtml": "<p>GONE</p>"}, more={"OEBPS/book.opf": package})
    )
    assert found.text == "It turns."
    assert found.notes == [
        "pages outside the reading order left out",
        "1 of its chapters is in a format that is not read",
    ]


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def docx(body: str, **parts: str) -> Passages:
    """Read a .docx with this body; `parts` are styles and numbering."""
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = "".join(
        f'<Relationship Id="{name}" Type="{kinds}/{name}" Target="{name}.xml"/>' for name in parts
    )
    files: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {W} {M}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships>{relations}</Relationships>",
        **{f"word/{name}.xml": f"<w:{name} {W}>{content}</w:{name}>" for name, content in parts.items()},
    }
    return word_file.read(archive(files))


DIAGRAM = (
    "<w:p><w:r><w:drawing><a:graphicData xmlns:a='a'><d:relIds xmlns:d='d' xmlns:r='r' r:dm='diagramData'/>"
    "</a:graphicData></w:drawing></w:r></w:p>"
)
BOX = "<w:txbxContent><w:p><w:r><w:t>It turns.</w:t></w:r></w:p></w:txbxContent>"
CHUNK = "<w:altChunk xmlns:r='r' r:id='aFChunk'/>"


@pytest.mark.parametrize(
    ("body", "part", "content"),
    [
        (DIAGRAM, "diagramData", "<m xmlns:a='a'><a:p><a:r><a:t>It turns.</a:t></a:r></a:p></m>"),
        ("<w:p><w:r><w:pict><v:textpath xmlns:v='v' string='It turns.'/></w:pict></w:r></w:p>", "", ""),
        (
            f"<w:p><w:r><AlternateContent><Choice>{BOX}</Choice><Fallback>{BOX}</Fallback></AlternateContent></w:r></w:p>",
            "",
            "",
        ),
        (
            f"<w:p><w:r><AlternateContent><Choice/><Fallback>{BOX}</Fallback></AlternateContent></w:r></w:p>",
            "",
            "",
        ),
        (CHUNK, "aFChunk", "<html><body><p>It turns.</p></body></html>"),
        (CHUNK, "aFChunk", "It turns."),
        (CHUNK, "aFChunk", r"{\rtf1 It turns.}"),
        (
            CHUNK,
            "aFChunk",
            archive(
                {
                    "word/document.xml": f"<w:document {W}><w:p><w:r><w:t>It turns.</w:t></w:r></w:p></w:document>"
                }
            ),
        ),
        (
            "<w:p><w:r><w:fldChar><w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='GONE'/>"
            "<w:listEntry w:val='It turns.'/></w:ddList></w:ffData></w:fldChar></w:r></w:p>",
            "",
            "",
        ),
        ("<w:unknown>It turns.</w:unknown>", "", ""),
    ],
)
def test_word_reads_text_in_other_parts_and_in_attributes_once(
    body: str, part: str, content: str | bytes
) -> None:
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relation = f'<Relationship Id="{part}" Type="{kinds}/{part}" Target="part.bin"/>'
    files: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships>{relation if part else ''}</Relationships>",
        "word/part.bin": content,
    }
    assert word_file.read(archive(files)).text == "It turns."


def test_word_names_charts_objects_and_notes_without_a_mark() -> None:
    note = "<w:footnote w:id='1'><w:p><w:r><w:t>GONE</w:t></w:r></w:p></w:footnote>"
    found = docx(par("Kept."), chart="<c:v xmlns:c='c'>GONE</c:v>", package="", footnotes=note)
    assert (found.text, found.notes) == (
        "Kept.",
        ["footnotes without a mark left out", "charts left out", "1 embedded object not read"],
    )


def par(text: str, properties: str = "", run: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr><w:t>{text}</w:t></w:r></w:p>"


@pytest.mark.parametrize(
    ("wrapped", "text"),
    [
        ("<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>", "It turns."),
        ("<w:customXml>{}</w:customXml>", "It turns."),
        ("<w:unknown>{}</w:unknown>", "It turns."),
        ("<w:p><w:r><w:pict><w:txbxContent>{}</w:txbxContent></w:pict></w:r></w:p>", "It turns."),
        ("<w:tbl><w:sdt><w:tr><w:sdt><w:tc>{}</w:tc></w:sdt></w:tr></w:sdt></w:tbl>", "It turns."),
        ("<w:tbl><w:tr><w:tc><w:tbl><w:tr><w:tc>{}</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>", "It turns."),
    ],
)
def test_word_keeps_text_whatever_it_is_wrapped_in(wrapped: str, text: str) -> None:
    assert docx(wrapped.format(par(text))).text == text


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("<w:ins><w:r><w:t>mill</w:t></w:r></w:ins>", "mill"),
        ("<w:smartTag><w:hyperlink><w:r><w:t>mill</w:t></w:r></w:hyperlink></w:smartTag>", "mill"),
        ("<w:fldSimple><w:r><w:t>mill</w:t></w:r></w:fldSimple>", "mill"),
        ("<w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r>", "a-b c"),
        (
            "<w:r><w:ruby><w:rt><w:r><w:t>GONE</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>mill</w:t></w:r>"
            "</w:rubyBase></w:ruby></w:r>",
            "mill",
        ),
        (
            "<m:oMath><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
            "</m:oMath>",
            "x²",
        ),
        (
            "<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f>"
            "</m:oMath>",
            "a/b",
        ),
        ("<m:oMath><m:d><m:e><m:r><m:t>a</m:t></m:r></m:e></m:d></m:oMath>", "(a)"),
        (
            "<m:oMath><m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val='}'/></m:dPr><m:e><m:r><m:t>a</m:t></m:r>"
            "</m:e></m:d></m:oMath>",
            "[a}",
        ),
        ("<m:oMath><m:nary><m:e><m:r><m:t>a</m:t></m:r></m:e></m:nary></m:oMath>", "∫a"),
        (
            "<m:oMath><m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:e><m:r><m:t>a</m:t></m:r></m:e></m:nary>"
            "</m:oMath>",
            "∑a",
        ),
        (
            "<w:r><w:t>1841</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>4</w:t></w:r>",
            "1841",
        ),
        (
            "<w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>6</w:t></w:r>",
            "10⁶",
        ),
    ],
)
def test_a_paragraph_of_word_keeps_its_runs(inside: str, text: str) -> None:
    assert docx(f"<w:p>{inside}</w:p>").text == text


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (par("GONE", run="<w:vanish/>"), "hidden text left out"),
        (par("GONE", run="<w:rStyle w:val='h'/>"), "hidden text left out"),
        (par("GONE", properties="<w:pStyle w:val='h'/>"), "hidden text left out"),
        ("<w:p><w:del><w:r><w:delText>GONE</w:delText></w:r></w:del></w:p>", "deleted text left out"),
        ("<w:p><w:moveFrom><w:r><w:t>GONE</w:t></w:r></w:moveFrom></w:p>", "deleted text left out"),
        (par("GONE", properties="<w:pStyle w:val='t'/>"), "table of contents left out"),
    ],
)
def test_word_names_what_it_does_not_show(body: str, note: str) -> None:
    styles = (
        "<w:style w:styleId='h'><w:name w:val='secret'/><w:rPr><w:vanish/></w:rPr></w:style>"
        "<w:style w:styleId='t'><w:name w:val='toc 2'/></w:style>"
    )
    found = docx(par("Kept.") + body + par("Shown.", run="<w:vanish w:val='0'/>"), styles=styles)
    assert (found.text, found.notes) == ("Kept.\n\nShown.", [note])


def test_word_writes_the_numbers_that_it_shows() -> None:
    levels = "".join(
        f"<w:lvl w:ilvl='{level}'><w:start w:val='{start}'/><w:numFmt w:val='{kind}'/><w:lvlText "
        f"w:val='{pattern}'/></w:lvl>"
        for level, (start, kind, pattern) in enumerate(
            (("1", "decimal", "%1."), ("3", "lowerLetter", "%1.%2)"), ("1", "upperRoman", "%3"))
        )
    )
    numbering = (
        f"<w:abstractNum w:abstractNumId='7'>{levels}</w:abstractNum><w:num w:numId='1'><w:abstractNumId "
        f"w:val='7'/></w:num>"
        "<w:num w:numId='2'><w:abstractNumId w:val='7'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='5'/>"
        "</w:lvlOverride></w:num>"
    )

    def at(level: int, name: int = 1) -> str:
        return f"<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{name}'/></w:numPr>"

    styles = (
        f"<w:style w:styleId='base'><w:name w:val='List Number'/><w:pPr>{at(0)}</w:pPr></w:style>"
        "<w:style w:styleId='own'><w:name w:val='own'/><w:basedOn w:val='base'/></w:style>"
    )
    body = (
        par("one", at(0))
        + par("in", at(1))
        + par("in", at(1))
        + par("deep", at(2))
        + par("two", "<w:pStyle w:val='own'/>")
        + par("in", at(1))
        + par("five", at(0, 2))
        + par("six", at(0, 2))
        + par("none", "<w:pStyle w:val='own'/><w:numPr><w:numId w:val='0'/></w:numPr>")
    )
    assert docx(body, styles=styles, numbering=numbering).text == (
        "1. one\n1.c) in\n1.d) in\nI deep\n2. two\n2.c) in\n5. five\n6. six\n\nnone"
    )


def test_word_reads_cells_in_their_order_with_headings() -> None:
    def fill(document: WordDocument) -> None:
        table = document.add_table(1, 2)
        table.cell(0, 0).text = "Before it."
        cell = table.cell(0, 1)
        cell.paragraphs[0].text = "The wheel"
        cell.paragraphs[0].style = document.styles["Heading 2"]
        cell.add_paragraph("It turns.")

    found = word_file.read(word(fill))
    assert found.text == "Before it.\n\nThe wheel\n\nIt turns."
    assert found.at(found.text.index("It turns")).heading == "The wheel"


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (lambda text: docx(f"<w:p>{text}</w:p>"), "<w:r><w:t>mill </w:t></w:r>" * 20_000),
        (md, "a %%b c " * 40_000),
        (page, "<p>" + "<span>mill</span><span>Wheel</span>" * 20_000),
    ],
)
def test_many_small_parts_take_no_longer_for_each(read: Callable[[str], Passages], content: str) -> None:
    began = time.process_time()
    assert len(read(content).text) > 90_000
    assert time.process_time() - began < 3.0  # took more than 20 seconds where each part looked at all others


def test_a_page_of_words_without_sentences_is_read_whole() -> None:
    found = web("<p>" + "<i>mill</i> wheel " * 200 + "</p>")
    assert len(found.text.split()) == 400


def test_an_address_without_a_domain_is_text_as_it_was_typed() -> None:
    found = markdown.read(b"Send it to <office@archive> and to <ann@example.org>.")
    assert found.text == "Send it to <office@archive> and to ann@example.org."


LINES = """---
title: Mill
---
# The *mill*

%% a remark
of two lines %% It was built in stone
and ground rye. The flood
took it.

> [!note] Flood
> The water rose
> in one night.

- [x] the wheel is new,
  the roof is not
- see [the list](http://example.org
  'of all parts') behind `the
  door` and below
  the stairs

Part | Year
-----|-----
Wheel| 1911

```py
stones = 2

ground = stones
```

<details>
<!-- a remark
of two lines --> Rye and barley.
Wheat <b>too</b>.
</details>
Hard\\
break, and the wheel
and the roof and the wheel
"""


def test_markdown_gives_the_line_of_each_part_in_its_file() -> None:
    found = markdown.read(LINES.encode())
    lines = LINES.split("\n")
    for shown, begins in {
        "The mill": "# The",
        "It was": "of two lines %%",
        "and ground": "and ground",
        "took it": "took it",
        "Flood": "> [!note]",
        "The water": "> The water",
        "in one": "> in one",
        "- ☑ the wheel": "- [x]",
        "the roof is": "  the roof is",
        "- see": "- see",
        "and below": "  door",
        "the stairs": "  the stairs",
        "Part": "Part",
        "Wheel |": "Wheel|",
        "stones = 2": "stones",
        "ground = ": "ground = ",
        "Rye": "of two lines -->",
        "Wheat": "Wheat",
        "Hard": "Hard",
        "break": "break",
        "and the roof and": "and the roof and",
    }.items():
        place = found.at(found.text.index(shown))
        assert lines[place.line - 1].startswith(begins), (shown, place)
        assert place.heading == "The mill"
    assert found.text.replace("☑", "").isascii()
    assert found.describe_places(range(len(found.text))) == '"The mill"'


def test_a_line_of_markdown_that_has_marks_like_our_own_is_kept_without_them() -> None:
    found = markdown.read("One \ue020\ue010day.\n\nIt\ue011 rains.".encode())
    assert found.text == "One day.\n\nIt rains."
    assert [place.line for place in found.places] == [1, 3]


@pytest.mark.long
@pytest.mark.parametrize("text", ["&amp;\n" * 60_000, "<b>\n" * 60_000, "- a\n" * 60_000, "`a\n" * 60_000])
def test_the_lines_of_long_markdown_are_found_in_time(text: str) -> None:
    began = time.process_time()
    markdown.read(text.encode())
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("**Describe the bug**\nThe mill stops.\n\n__Expected__\n“It turns.”", "Describe the bug\n\nThe mill stops.\n\n"
         "Expected\n\n“It turns.”"),
        ("**Ann:**\nThe mill stops.", "Ann: The mill stops."),
        ("**Ann Lee**\nruns the mill.", "Ann Lee runs the mill."),
        ("**Ann** and **Ben**\nRun it.", "Ann and Ben Run it."),
        ("They met\n**Ann Lee**\nIn Olm.", "They met Ann Lee In Olm."),
        ("**The mill**\n---\nIt stops.", "The mill\n\nIt stops."),
    ],
)  # fmt: skip
def test_a_bold_line_above_text_is_a_line_of_its_own(given: str, text: str) -> None:
    found = markdown.read(given.encode())
    assert found.text == text
    assert found.places[-1].line == given.count("\n") + 1


def test_an_empty_task_does_not_take_the_next_line() -> None:
    assert markdown.read(b"- [ ]\n- [x] done\n").text == "- ☑ done"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("One %% hidden %% two.", "One two."),
        ("One %%hidden%% w", "One w"),
        ("One %% a%%b %% two.", "One two."),
        ("a %%hidden%%", "a"),
        ("%% hidden %%\nTwo.", "Two."),
        ("One%% not %% two.", "One%% not %% two."),
        ("One %%not%%x two", "One %%not%%x two"),
        ("100 %% of it", "100 %% of it"),
    ],
)
def test_a_remark_begins_behind_a_space_and_ends_before_one(given: str, text: str) -> None:
    found = read_content(given.encode(), name="a.md")
    assert found.text == text
    assert found.notes == ([] if given == text else ["remarks left out"])
