"""What a page of HTML shows is what is read: blocks, lists, tables, raised text, and what browsers hide."""

from __future__ import annotations

from typing import Any

import pytest

from precis_text.documents.html_text import numbered, parse_page, write_page, write_tree
from precis_text.documents.passages import CUT, Passages, Writer


def page(body: str, **more: Any) -> Passages:
    writer = Writer()
    write_page(body, writer, **more)
    return writer.finished()


def text(body: str, **more: Any) -> str:
    return page(body, **more).text


@pytest.mark.parametrize("empty", ["", "  \n", "<!-- -->", "<?xml version='1.0'?>"])
def test_an_empty_page_is_empty(empty: str) -> None:
    assert text(empty) == ""


@pytest.mark.parametrize("begin", ["", "<?xml version='1.0'?>", "<!DOCTYPE html>"])
@pytest.mark.parametrize("tag", ["script", "title", "textarea", "iframe", "noscript", "p", "td"])
def test_an_element_that_is_closed_at_once_holds_nothing(begin: str, tag: str) -> None:
    assert text(f"{begin}<{tag}/><p>The mill<br/> turns.</p>") == "The mill\nturns."


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("<p>The form asks <textarea cols='3'/> for a name</p>", "The form asks for a name"),
        ("<p>one <TEXTAREA rows = '1'\n/> two <textarea/> three</p>", "one two three"),
        ("<p>one <textarea title='a > b'/> two</p>", "one two"),
        ("<p>one <svg><title/><path/></svg> two</p>", "one two"),
    ],
)
def test_what_is_closed_at_once_does_not_end_its_paragraph(given: str, shown: str) -> None:
    assert text(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("<p>one<!-- a --><p>two<!-- b", "one\n\ntwo b"),
        ("<p>one<!-- a --!><p>two", "one\n\ntwo"),
        ("<!--<p>one</p>", "one"),
        ("<p>one</p><textarea>two", "one\n\ntwo"),
        ("<title>one</title><title>two", "two"),
        ("<title>one</title><p>two</p>", "two"),
        ("<p><![CDATA[a & b]]> and <![CDATA[c < d]]></p>", "a & b and c < d"),
    ],
)
def test_what_never_ends_is_read_and_what_ends_is_not(given: str, shown: str) -> None:
    assert text(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("<p>a  b\n c\t d</p>", "a b c d"),
        ("<p>a<br>b</p>", "a\nb"),
        ("a<p>b</p>c", "a\n\nb\n\nc"),
        ("<pre>a  b\n  c\n</pre><p>a  b</p>", "a  b\n  c\n\na b"),
        ("<pre>a<pre>b  c</pre>d  e</pre><p>f  g</p>", "a\n\nb  c\n\nd  e\n\nf g"),
        ("</pre><p>a  b</p><pre>c  d</pre>", "a b\n\nc  d"),
        ("<p>a</p><h2>b</h2><p>c</p>", "a\n\nb\n\nc"),
        ("<p>a</p><h2> </h2><p>c</p>", "a\n\nc"),
        ("<div>a<video>GONE</video>b</div><div>c<table hidden><tr><td>GONE</table>d</div>", "ab\n\nc\n\nd"),
    ],
)
def test_blocks_are_paragraphs_and_white_space_is_one_space(given: str, shown: str) -> None:
    assert text(given) == shown


def test_a_heading_is_the_place_of_what_follows_unless_it_is_quoted_or_in_a_cell() -> None:
    found = page("<h1>Mill</h1><p>a</p><blockquote><h2>Old</h2><p>b</p></blockquote><p>c</p>")
    assert [found.at(found.text.index(sign)).heading for sign in "abc"] == ["Mill"] * 3
    assert text("<ul><li><h3>Mill</h3>It turns.</li></ul><p>c</p>") == "Mill\n\nIt turns.\n\nc"


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("Rent", "Euros", "Rent Euros"),
        ("Rent", "12", "Rent 12"),
        ("12", "Euros", "12 Euros"),
        ("12", "euros", "12 euros"),
        ("12", "13", "1213"),
        ("12", ",", "12,"),
        ("Rent", "s", "Rents"),
        ("RENT", "Euros", "RENTEuros"),
    ],
)
@pytest.mark.parametrize("tag", ["span", "a", "label"])
def test_words_side_by_side_stay_apart(first: str, second: str, shown: str, tag: str) -> None:
    assert text(f"<{tag}>{first}</{tag}><{tag}>{second}</{tag}>") == shown
    assert text(f"<pre><{tag}>{first}</{tag}><{tag}>{second}</{tag}></pre>") == first + second
    assert text(f"<{tag}>{first}</{tag}>-<{tag}>{second}</{tag}>") == f"{first}-{second}"
    assert text(f"<i>{first}</i><{tag}>{second}</{tag}>") == first + second


# ---- lists


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a<ul><li>b<li>c</ul>d", "a\n\n- b\n- c\n\nd"),
        ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", "- a\n- b\n- c\n- d"),
        ("<ul><li>a<p>b</p></ul>", "- a\n\nb"),
        ("<ul><li></ul><p>b</p>", "b"),
        ("<ul><li></li><li>b</ul>", "- b"),
        ("<ol><li>a</ol><ol><li>b</ol>", "1. a\n\n1. b"),
        ("<ol start=' 4 '><li>a<li value=x>b<li value=' 9 '>c<li>d</ol>", "4. a\n5. b\n9. c\n10. d"),
        ("<ol start=x><li>a</ol>", "1. a"),
        ("<ol start=12345678901><li>a</ol>", "123456789. a"),
        ("<ol reversed><li>a<li>b<li>c</ol>", "3. a\n2. b\n1. c"),
        ("<ol reversed start=9><li>a<li>b</ol>", "9. a\n8. b"),
        ("<ol type=x><li>a</ol>", "1. a"),
        ("<ol type=A><li>a<li>b</ol>", "A. a\nB. b"),
        ("<ol type=i><li>a<li>b</ol>", "i. a\nii. b"),
        ("<ol><li>a<ol type=a><li>b</ol><li>c</ol>", "1. a\na. b\n2. c"),
        ("<menu><li>a</menu><dir><li>b</dir>", "- a\n\n- b"),
        ("<ul><li data-label='* '>a<li>b</ul>", "* a\n- b"),
        ("<li>a</li>", "- a"),
    ],
)
def test_items_are_lines_with_their_numbers(given: str, shown: str) -> None:
    assert text(given) == shown


@pytest.mark.parametrize(
    ("number", "kind", "shown"),
    [
        (399, "i", "cccxcix"),
        (400, "i", "400"),
        (0, "i", "0"),
        (1, "I", "I"),
        (44, "I", "XLIV"),
        (98, "i", "xcviii"),
        (1, "a", "a"),
        (26, "A", "Z"),
        (27, "a", "aa"),
        (0, "a", "0"),
        (12, "1", "12"),
    ],
)
def test_numbers_are_written_as_letters_where_the_letters_last(number: int, kind: str, shown: str) -> None:
    assert numbered(number, kind) == shown


# ---- tables


def table(*rows: str, more: str = "") -> str:
    return f"<table{more}>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


VALUES = ("<th>Mill<th>Rye", "<td>Arn<td>12")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a" + table(*VALUES) + "b", "a\n\nMill | Rye\nArn | 12\n\nb"),
        (table(*VALUES) + table(*VALUES), "Mill | Rye\nArn | 12\n\nMill | Rye\nArn | 12"),
        (table("<td><td>", *VALUES), "Mill | Rye\nArn | 12"),
        (table("<td>Arn;<td>", VALUES[1]), "Arn | \nArn | 12"),
        (table(*VALUES, more=" role=presentation"), "Mill\n\nRye\n\nArn\n\n12"),
        (table(*VALUES, more=" role=none"), "Mill\n\nRye\n\nArn\n\n12"),
        (table(*VALUES, more=" role=grid"), "Mill | Rye\nArn | 12"),
        (table("<td>Mill", "<td>Rye"), "Mill\n\nRye"),
        (table("<td>Mill", "<td>Rye<td>12"), "Mill\nRye | 12"),
        (table("<td>Mill<td><h3>Rye</h3>12"), "Mill\n\nRye\n\n12"),
        (table("<td><p>a</p><p>b</p><td>c"), "a b | c"),
        (table("<td><ul><li>a<li>b</ul><td>c"), "a; b | c"),
        (table("<td><ol><li>a<li>b</ol><td>c"), "1. a; 2. b | c"),
        (table("<td><ol><li><p>a</p><li><p>b</p><p>c</p><li></ol><td><p>d<p>e"), "1. a; 2. b; c | d e"),
        (table("<td><ul><li>a</ul>b<p>c</p><td><li>d"), "a; b c | d"),
        ("<table><tr>a<td>b<td>c</tr><tr><td>d<td>e", "a b | c\nd | e"),
        (table("<td>x<ul><li>a</ul><td>c"), "x; a | c"),
        ("<ul><li>x" + table(*VALUES) + "<li>y</ul>", "- x\n\nMill; | Rye;\nArn; | 12;\n\n- y"),
    ],
)
def test_rows_of_values_are_lines_and_tables_for_layout_are_paragraphs(given: str, shown: str) -> None:
    if "Mill;" in shown:
        shown = shown.replace(";", "")
    assert text(given) == shown


@pytest.mark.parametrize(
    ("parts", "words", "is_layout"), [(1, 41, False), (2, 40, False), (2, 42, True), (3, 42, True)]
)
def test_cells_of_several_long_paragraphs_are_no_values(parts: int, words: int, is_layout: bool) -> None:
    part = "<p>" + "rye " * (words // parts) + "</p>"
    rest = "<p>" + "oats " * (words % parts) + "</p>" if words % parts else ""
    found = text(table(f"<td>{part * parts}{rest}<td>12"))
    assert ("| 12" not in found) == is_layout


# ---- raised text


@pytest.mark.parametrize(
    ("given", "shown", "marks"),
    [
        ("in 1841<sup>3</sup> and<sup>4</sup>", "in 1841 and", 2),
        ("in 1841<sup>3</sup>", "in 1841", 1),
        ("10<sup><a href=#a>3</a></sup>", "10", 1),
        ("10<a href=#a><sup>3</sup></a>", "10", 1),
        ("10<sup class=footnote>3</sup> 10<sup class=a-reference>3</sup>", "10 10", 2),
        ("10<sup>3</sup>", "10³", 0),
        ("19<sup data-power=1>12</sup>", "19¹²", 0),
        ("19<sup>th <b>a</b></sup>", "19th a", 0),
        ("<i>1</i><b>0</b><sup>3</sup>", "10³", 0),
        ("<math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>", "x1²", 0),
        ("a<a class=noteref>123456</a>", "a", 1),
        ("a<a class=noteref>1234567</a>", "a1234567", 0),
        ("a<a role=doc-noteref>1</a><a class='x footnote-ref'>2</a>", "a", 2),
        ("a <a>↩</a><a>↵\ufe0e</a><a class=backlink>b</a><a class='footnote-back'>c</a>", "a", 0),
        ("a <a>b</a>", "a b", 0),
    ],
)
def test_marks_of_notes_are_left_out_and_counted(given: str, shown: str, marks: int) -> None:
    found = page(f"<p>{given}</p>")
    assert found.text == shown
    told = {0: [], 1: ["1 mark of footnotes left out"]}.get(marks, [f"{marks} marks of footnotes left out"])
    assert [*found.notes] == told


# ---- what is left out

FORMS, FILMS, DRAWN = "controls of forms", "text in place of films, sound and frames", "labels of drawings"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("<button>{}</button>".format("a " * 8), FORMS),
        ("<button>{}</button>".format("a " * 9), None),
        ("<select><option>a</option></select>", FORMS),
        ("<textarea>a</textarea>", FORMS),
        ("<option>a</option>", None),
        ("<object data=x>a</object>", FILMS),
        ("<object type=x>a</object>", FILMS),
        ("<object classid=x>a</object>", FILMS),
        ("<object>a</object>", None),
        ("<svg><text>a</text></svg>", DRAWN),
        ("<svg><title>a</title><foreignObject>b</foreignObject></svg>", DRAWN),
        ("<desc>a</desc>", None),
        ("<template shadowroot=open>a</template>", None),
        ("<template>a</template>", "text that scripts may show"),
        ("<p hidden>a</p>", "hidden text"),
        ("<p style='Visibility: hidden'>a</p>", "hidden text"),
        ("<p style='font-size: 0'>a</p>", "hidden text"),
        ("<p style='font-size: 0.9em'>a</p>", None),
        ("<p style='max-height:0px'>a</p>", "hidden text"),
        ("<p class='mw-editsection x'>a</p>", "links to edit"),
        ("<style>a</style>", ""),
    ],
)
def test_what_a_page_does_not_show_is_left_out_and_named(given: str, what: str | None) -> None:
    found = page(f"<p>Mill</p>{given}<p>Rye</p>")
    assert ("a" in found.text) == (what is None)
    assert [*found.notes] == ([f"{what} left out"] if what else [])
    assert ("b" in found.text) == ("foreign" in given)


def test_others_may_leave_out_more() -> None:
    assert text("<p>a</p><nav>b</nav>c", leave=lambda e: "menus" if e.tag == "nav" else None) == "a\n\nc"
    root = parse_page("<div><p>a</p></div> tail")
    writer = Writer()
    write_tree(root.find(".//p"), writer)
    assert writer.finished().text == "a"


# ---- mail


def test_quotations_are_marked_in_mail_alone() -> None:
    given = "<p>a</p><blockquote>b<br>c<blockquote>d</blockquote></blockquote><p>e</p>"
    assert text(given) == "a\n\nb\nc\n\nd\n\ne"
    assert text(given, quotes=True) == "a\n\n> b\n> c\n\n> > d\n\ne"


@pytest.mark.parametrize("begin", ["id=divRplyFwdMsg", "class='x yahoo_quoted'", "id=appendonsend"])
def test_the_beginning_of_an_old_mail_is_marked(begin: str) -> None:
    given = f"<p>a</p>x<div {begin}>b</div>"
    assert text(given, quotes=True) == f"a\n\nx\n\n{CUT}\n\nb"
    assert text(given) == "a\n\nx\n\nb"


def test_the_summary_of_details_is_a_heading() -> None:
    found = page("<details><summary>Can I cancel?</summary><p>Until May, yes.</p></details><p>It rains.</p>")
    assert found.text.startswith("Can I cancel?\n\nUntil May, yes.")
    assert found.at(found.text.index("Until")).heading == "Can I cancel?"
