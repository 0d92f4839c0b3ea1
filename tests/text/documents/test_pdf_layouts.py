"""The places of letters in a PDF show forms, tables, columns, contents, and words of letters set one by one."""

from __future__ import annotations

import textwrap
import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from precis_text.documents import pdf_paragraphs
from precis_text.documents.pdf_contents import without_contents
from precis_text.documents.pdf_lines import Line, _forms_words, is_right_to_left
from precis_text.documents.pdf_paragraphs import paragraphs_of
from precis_text.documents.reader import read_content
from tests.document_files import lines_of, pdf, typed

STORY = (
    "The ferry over the sound was built in 1904 and repaired twice since then. Its boilers leak, and the island "
    "has asked for money to mend them before the winter. The council will learn the cost in the end."
)
OTHER = (
    "The council meets again in May. Until then cars take the bridge in the north, which is narrow and long. "
    "People who live there have complained of noise at night."
)


def field(kind: str, value: str, box: str, more: str = "") -> str:
    return f"/Subtype /Widget /FT /{kind} /T ({box}) /V {value} /Rect [{box}] {more}"


def text_of(page: str, **more: Any) -> str:
    return read_content(pdf([page], **more), name="a.pdf").text


# ---- forms


def test_answers_of_a_form_follow_their_labels() -> None:
    page = typed(["Name:"], x=40, y=700) + typed(["Reason:"], x=40, y=660) + typed([STORY[:60]], x=40, y=500)
    answers = [
        field("Tx", "(Ann Ode)", "100 696 300 712"),
        field("Tx", "(The boat leaks.)", "100 656 300 672"),
    ]
    assert text_of(page, annotations=answers).startswith(
        "Name: Ann Ode\n\nReason: The boat leaks.\n\nThe ferry"
    )


def test_two_answers_in_a_row_stand_behind_their_own_labels() -> None:
    page = typed(["Name:"], x=40, y=700) + typed(["Date:"], x=300, y=700)
    answers = [field("Tx", "(Ann Ode)", "80 696 280 712"), field("Tx", "(3 May)", "340 696 500 712")]
    text = text_of(page, annotations=answers)
    assert "Name: Ann Ode" in text
    assert "Date: 3 May" in text


def test_an_answer_without_a_label_in_its_row_stands_below_the_text_above() -> None:
    page = typed(["Why do you ask?"], x=40, y=700) + typed(["Signed in Olm."], x=40, y=560)
    answers = [field("Tx", "(It leaks.\\nIt is old.)", "40 600 300 690")]
    assert text_of(page, annotations=answers) == "Why do you ask?\n\nIt leaks.\nIt is old.\n\nSigned in Olm."


def test_chosen_boxes_and_choices_are_read_and_others_are_not() -> None:
    page = typed(["Yes"], x=60, y=700) + typed(["No"], x=160, y=700) + typed(["Colour:"], x=40, y=660)
    states = "/AP << /N << /On 3 0 R /Off 3 0 R >> >> /AS"
    answers = [
        field("Btn", "/On", "40 698 52 710", f"{states} /On"),
        field("Btn", "/Off", "140 698 152 710", f"{states} /Off"),
        field("Ch", "(red)", "100 656 200 672", "/Ff 131072 /Opt [(red) (blue)]"),
    ]
    text = text_of(page, annotations=answers)
    assert "[x] Yes" in text
    assert "[x] No" not in text
    assert "Colour: red" in text
    assert "blue" not in text


def test_texts_that_readers_wrote_on_a_page_are_read_and_comments_and_passwords_are_named() -> None:
    notes = [
        "/Subtype /FreeText /Contents (Paid in June.) /Rect [40 600 200 620]",
        "/Subtype /Text /Contents (Really?) /Rect [40 500 60 520]",
        "/Subtype /Highlight /Contents () /Rect [40 500 60 520]",
        field("Tx", "(secret)", "40 400 300 420", f"/Ff {1 << 13}"),
        "/Subtype /FreeText /F 2 /Contents (Hidden.) /Rect [40 300 200 320]",
    ]
    found = read_content(pdf([typed(["A bill."], x=40, y=700)], annotations=notes))
    assert found.text == "A bill.\n\nPaid in June."
    assert found.notes == ["1 comment left out", "1 password left out"]


@pytest.mark.parametrize(
    ("more", "value", "text", "notes"),
    [
        ("/Ff 131072 /Opt [[(r) (red)] [(b) (blue)]]", "(b)", "Colour: blue", []),
        ("/Ff 393216 /Opt [(red) (blue)]", "(green)", "Colour: green", []),
        (
            "/Ff 131072 /Opt [(red) (blue)]",
            "null",
            "Colour:",
            ["choices of the form that are not marked left out"],
        ),
        ("/Opt [(red) (blue)]", "(red)", "Colour: red", ["choices of the form that are not marked left out"]),
    ],
)
def test_choices_are_read_as_shown_and_unmarked_ones_are_named(
    more: str, value: str, text: str, notes: list[str]
) -> None:
    answers = [field("Ch", value, "100 656 200 672", more)]
    found = read_content(pdf([typed(["Colour:"], x=40, y=660)], annotations=answers))
    assert (found.text, found.notes) == (text, notes)


def test_files_that_are_attached_to_a_pdf_are_named() -> None:
    note = "/Subtype /FileAttachment /Rect [40 500 60 520] /Contents (wheel.doc)"
    content = pdf([typed(["A bill."], x=40, y=700)], annotations=[note])
    file = b"<< /Names [(a) << /Type /Filespec /F (bill.csv) /EF << /F 11 0 R >> >>] >>"
    content = content.replace(b"/Type /Catalog", b"/Type /Catalog /Names << /EmbeddedFiles " + file + b" >>")
    assert read_content(content).notes == ["attachments not read: wheel.doc, bill.csv"]


# ---- tables and columns


@pytest.mark.parametrize("by_columns", [True, False])
def test_a_table_is_read_in_rows_in_whatever_order_the_file_has_its_cells(by_columns: bool) -> None:
    table = [("Year", "Cost", "Boats"), ("2020", "40", "12"), ("2021", "35", "9")]
    cells = (
        [(x, y) for x in range(3) for y in range(3)]
        if by_columns
        else [(x, y) for y in range(3) for x in range(3)]
    )
    page = "".join(typed([table[y][x]], x=40 + 150 * x, y=600 - 14 * y) for x, y in cells)
    intro = typed(textwrap.wrap(OTHER, 60), x=40, y=700)
    assert text_of(intro + page).split("\n\n")[-1] == "Year | Cost | Boats\n2020 | 40 | 12\n2021 | 35 | 9"


def test_columns_whose_file_goes_from_row_to_row_follow_one_another() -> None:
    left, right = textwrap.wrap(STORY, 40), textwrap.wrap(OTHER, 40)
    rows = zip(left[:4], right[:4], strict=True)
    page = "".join(
        typed([a], x=40, y=700 - 12 * k) + typed([b], x=320, y=700 - 12 * k) for k, (a, b) in enumerate(rows)
    )
    assert text_of(page).startswith(" ".join(left[:4]))


def test_two_columns_with_a_footnote_below_each_read_on_past_the_notes() -> None:
    lines = textwrap.wrap(STORY, 40)
    page = typed(lines[:3], x=40, y=700) + typed(["1 See the report of 2020."], x=40, y=60, size=7)
    page += typed(lines[3:], x=320, y=700) + typed(["2 Without tax."], x=320, y=60, size=7)
    assert text_of(page) == f"{STORY}\n\n1 See the report of 2020.\n\n2 Without tax."


# ---- contents


def entries(*lines: str) -> list[Line]:
    return [Line(text, base=700 - 14 * k, right=400) for k, text in enumerate(lines)]


@pytest.mark.parametrize(
    "name", ["Contents", "Table of contents", "Inhaltsverzeichnis", "SOMMAIRE", "Índice", "目 录"]
)
def test_a_named_list_of_contents_without_dots_is_left_out(name: str) -> None:
    lines = entries(
        name, "The old wall 3", "Who pays for the new quay and", "for its lamps 12", "Noise 40", "It leaks."
    )
    assert [line.text for line in without_contents([lines])[0]] == [name, "It leaks."]


def test_an_unnamed_list_is_left_out_if_its_titles_follow() -> None:
    rows = [("The old wall", "3"), ("The new quay", "12"), ("Noise", "40")]
    page = "".join(
        typed([title], x=40, y=700 - 14 * k) + typed([number], x=400, y=700 - 14 * k)
        for k, (title, number) in enumerate(rows)
    )
    pages = [
        page,
        *(
            typed([title], x=40, y=700, bold=True) + typed([f"All of {title} leaks."], x=40, y=660)
            for title, _ in rows
        ),
    ]
    found = read_content(pdf(pages))
    assert found.text.startswith("The old wall\n\nAll of The old wall")
    assert "12" not in found.text
    assert found.notes == ["table of contents left out"]


def test_rows_with_growing_numbers_are_no_list_of_contents() -> None:
    lines = entries("Boats by year", "Cod 3", "Herring 12", "Crabs 40", "It leaks.")
    assert without_contents([lines]) == [lines]


# ---- lines


def test_lines_wrapped_at_a_number_of_letters_are_joined_before_capitals_and_behind_numbers() -> None:
    text = f"{STORY} It opens on the first of May in Olm. {OTHER} It costs 18.6 million euros a year."
    lines = textwrap.wrap(text, 60)
    wide = [
        Line(line, right=5 * len(line) + 40 * (k % 3), first_word=20, base=-12 * k)
        for k, line in enumerate(lines)
    ]
    assert len(paragraphs_of([wide])) == 1


def test_a_poem_stays_in_lines() -> None:
    poem = ["The ferry leaves", "Gulls cry above", "And nobody", "But the wall of the harbour answers"]
    lines = [Line(line, right=6 * len(line), first_word=20, base=-12 * k) for k, line in enumerate(poem)]
    assert len(paragraphs_of([lines])) == 4


def test_ragged_lines_from_right_to_left_are_one_paragraph() -> None:
    lines = textwrap.wrap("קבר הים הישן נבנה לפני מאה שנים והוא דולף מאוד בחורף וגם בקיץ " * 3, 40)
    shown = [
        Line(line, left=-540, right=-540 + 6 * len(line) - 30 * (k % 2), first_word=24, base=-12 * k)
        for k, line in enumerate(lines)
    ]
    assert is_right_to_left(lines[0])
    assert len(paragraphs_of([shown])) == 1


def test_letters_that_are_set_one_by_one_form_words() -> None:
    def spaced(text: str, letter: float, space: float) -> str:
        x, stream = 40.0, "BT /F2 10 Tf\n"
        for word in text.split():
            for sign in word:
                stream += f"1 0 0 1 {x:.2f} 700 Tm ({sign}) Tj\n"
                x += 6 + letter
            x += space - letter
        return stream + "ET\n"

    assert text_of(spaced("The old ferry leaks again.", 0.0, 6.0)) == "The old ferry leaks again."
    assert text_of(spaced("The old ferry leaks again.", 2.5, 9.0)) == "The old ferry leaks again."
    assert text_of(spaced("ANNUAL REPORT OF OLM", 4.0, 14.0)) == "ANNUAL REPORT OF OLM"


# ---- letters


def test_words_are_told_from_numbers_of_glyphs() -> None:
    assert _forms_words(STORY)
    assert _forms_words("Die Brücke über die Elbe ist gesperrt.")
    shifted = "".join(chr(ord(sign) - 29) for sign in STORY)  # the usual numbers of a TrueType font's glyphs
    assert not _forms_words(shifted)
    assert not _forms_words("".join(chr(0x21 + ord(sign) % 60) for sign in STORY if sign != " "))


def test_a_font_that_names_an_encoding_in_place_of_letters_is_read() -> None:
    # Each letter has the number of its character, and ToUnicode is the name Identity-H.
    shown = "".join(f"{ord(sign):04X}" for sign in STORY)
    page = f"BT /F1 5 Tf 1 0 0 1 10 700 Tm <{shown}> Tj ET"
    kind = b"/Subtype /Type0 /BaseFont /Helvetica /Encoding /Identity-H /ToUnicode /Identity-H /DescendantFonts [7 0 R]"
    content = pdf([page]).replace(b"/Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding", kind)
    descendant = (
        b"7 0 obj\n<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Helvetica /DW 500 "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>\nendobj\n"
    )
    content = content.replace(b"xref\n", descendant + b"xref\n", 1).replace(b"startxref", b"startxref\n9\n")
    assert read_content(content, name="a.pdf").text == STORY


def test_forms_of_letters_become_letters() -> None:
    from precis_text.documents.passages import clean

    assert clean("ﬁne ﬀ ﬅ ﻻ ﺑ") == "fine ff st لا ب"
    for first, last in ((0xFB00, 0xFBB1), (0xFBD3, 0xFD3D), (0xFD50, 0xFDFC), (0xFE80, 0xFEFC)):
        for form in (chr(first), chr(last)):
            assert clean(form) == unicodedata.normalize("NFKC", form)
    assert clean("\uf0b7 boats") == "• boats"


def test_lines_of_text_keep_parentheses() -> None:
    assert text_of(lines_of(["A ferry (of 1904)."])) == "A ferry (of 1904)."


@pytest.mark.parametrize("to_its_end", [True, False])
def test_a_heading_of_the_size_of_the_text_is_bold_to_its_end(to_its_end: bool) -> None:
    body = [Line("The ferry over the sound leaks again.", base=700 - 14 * k, right=400) for k in range(5)]
    head = Line("The old wall of the", base=560, right=200, is_bold=True)
    paragraph = paragraphs_of(
        [[*body, head, replace(head, text="quay in Olm", base=546, is_bold=to_its_end)]]
    )[-1]
    assert [line.text for line in paragraph.lines] == ["The old wall of the", "quay in Olm"]
    assert paragraph.is_heading == to_its_end


def wrapped(*texts: str) -> list[Line]:
    lines = enumerate(texts)
    return [Line(text, right=float(len(text)), base=-12.0 * place, first_word=5.0) for place, text in lines]


@pytest.mark.parametrize(
    ("texts", "letters"),
    [
        (("a mill of 16 ltr", "turns on the arn", "and grinds all r", "ye"), 16),
        (("a mill of 16 ltr", "turns on the arn", "and grinds"), None),  # too few lines to tell
        (
            ("a mill of 16 ltr", "turns", "on the arn", "and grinds all r", "ye"),
            None,
        ),  # two of four are explained
    ],
)
def test_lines_are_wrapped_at_a_number_of_letters_if_three_pairs_and_seven_in_ten_say_so(
    texts: tuple[str, ...], letters: int | None
) -> None:
    assert pdf_paragraphs._letters_of(wrapped(*texts), 1000.0) == letters
    assert pdf_paragraphs._letters_of(wrapped(*texts), 10.0) is None  # the edge explains as many


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (("Contents", "The wall 3", "The quay 12", "It leaks."), 4),  # two entries are no list
        (("Contents", "The wall 3", "The quay 12", "Noise 40", "It leaks.", "It rusts."), 3),
        (("Contents", "The wall 3", "The quay 12", "Noise 4", "It leaks."), 5),  # the numbers grow
        (("Contents", "The wall 3", "The quay 12", "Noise 12", "It leaks."), 2),
        (("Contents", "The wall 3", "Who pays", "in May", "The quay 12", "Noise 40", "It leaks."), 7),
        (("Contents", "by year", "The wall 3", "The quay 12", "Noise 40", "It leaks."), 3),
        (("Contents", "by year", "and place", "The wall 3", "The quay 12", "Noise 40", "It leaks."), 7),
        (("Contents", "The wall iv", "The quay 12", "Noise 40", "It leaks."), 2),
    ],
)
def test_a_named_list_has_three_entries_with_growing_numbers_each_of_up_to_two_lines(
    lines: tuple[str, ...], kept: int
) -> None:
    assert len(without_contents([entries(*lines)])[0]) == kept


def test_a_document_of_entries_alone_keeps_them() -> None:
    lines = entries("The wall ..... 3", "The quay ..... 12")
    assert without_contents([lines]) == [lines]
    (rest,) = without_contents([[*lines, *entries("It leaks.", "The wall ... 3")]])
    assert [line.text for line in rest] == ["It leaks.", "The wall ... 3"]
