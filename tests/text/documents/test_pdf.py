"""A PDF gives its paragraphs, not its lines, with pages and headings, and says what it leaves out."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence

import pytest

from precis_text.documents import pdf as pdf_reader
from precis_text.documents.passages import Passages, Place
from precis_text.documents.reader import read_content
from precis_text.errors import UserError
from tests.document_files import lines_of, pdf, typed

BODY = [
    "Die Straße über die Brücke wird im Mai für zwei",
    "Wochen gesperrt, weil die Träger rosten. Die Zusam-",
    "menarbeit mit Köln geht weiter.",
]
STORY = (
    "The bridge over the river was built in 1904 and repaired twice since then. Its beams rust, and the town "
    "has asked for money to mend them before the winter. Nobody knows what all of it will cost in the end."
)
OTHER = (
    "The council meets again in May. Until then lorries take the road over the hill, which is narrow and long. "
    "People who live there have complained of noise at night."
)
WIDTH = 40  # letters of a column


def place_of(found: Passages, words: str) -> Place:
    return found.at(found.text.index(words))


def refused(content: bytes) -> str:
    with pytest.raises(UserError) as error:
        read_content(content, name="a.pdf")
    assert "\n" not in str(error.value)
    return str(error.value)


def column(*paragraphs: str, x: float = 40, y: float = 700, indent: str = "   ") -> str:
    """Paragraphs set in lines of `WIDTH` letters, each with an indent and no space between."""
    lines = [line for text in paragraphs for line in textwrap.wrap(text, WIDTH, initial_indent=indent)]
    return typed(lines, x=x, y=y)


def test_a_pdf_gives_umlauts_whole_words_and_pages() -> None:
    found = read_content(pdf([lines_of(BODY), lines_of(["Second page (with marks)."])]), name="a.pdf")
    assert "über die Brücke wird im Mai für zwei Wochen" in found.text
    assert "Die Zusammenarbeit mit Köln" in found.text
    assert place_of(found, "Straße").page == 1
    assert place_of(found, "Second page (with marks).").page == 2


def test_columns_of_a_pdf_follow_one_another_and_a_sentence_goes_on_over_them() -> None:
    lines = textwrap.wrap(STORY, WIDTH)
    left, right = typed(lines[:2], x=40, y=700), typed(lines[2:], x=320, y=700)
    assert read_content(pdf([left + right])).text == STORY


def test_paragraphs_are_told_apart_by_indents_space_and_short_lines() -> None:
    assert read_content(pdf([column(STORY, OTHER)])).text == f"{STORY}\n\n{OTHER}"
    assert read_content(pdf([column(STORY, OTHER, indent="")])).text == f"{STORY}\n\n{OTHER}"
    apart = column(STORY, indent="") + column(OTHER, y=700 - 12 * 6 - 8, indent="")
    assert read_content(pdf([apart])).text == f"{STORY}\n\n{OTHER}"


def test_lines_of_two_spaces_are_joined_as_well() -> None:
    lines = textwrap.wrap(STORY, WIDTH)
    assert read_content(pdf([typed(lines, x=40, y=700, step=2.4)])).text == STORY


def test_items_of_a_list_and_rows_of_a_table_stand_in_lines() -> None:
    items = ["• the beams", "• the road over the hill, which is long", "and narrow", "• the winter"]
    rows = ["Year Cost", "2020 40", "2021 35"]
    found = read_content(pdf([typed([*items, ""], x=40, y=700) + typed(rows, x=40, y=600)]))
    assert found.text == (
        "• the beams\n• the road over the hill, which is long and narrow\n• the winter\n\nYear Cost\n2020 40\n2021 35"
    )


def test_a_hyphen_stays_where_the_word_has_one() -> None:
    def joined(end: str, start: str, more: str = "") -> str:
        return read_content(
            pdf([lines_of([f"They saw the river and its {end}-", f"{start} from the hill {more}"])])
        ).text

    assert "its bridges from" in joined("brid", "ges")
    assert "its Anglo-Saxon from" in joined("Anglo", "Saxon")
    assert "its 1904-1910 from" in joined("1904", "1910")
    assert "its well-known from" in joined("well", "known", "as the well-known one.")
    assert "its well-known from" in joined("well", "known")
    assert "its state-of-the-art from" in joined("state-of-the", "art")


def test_larger_and_bold_lines_are_headings_without_an_outline() -> None:
    page = typed(["The bridge"], x=40, y=750, size=18) + column(STORY, y=720)
    page += typed(["2 Costs"], x=40, y=600, bold=True) + column(OTHER, y=580)
    found = read_content(pdf([page]))
    assert found.text == f"The bridge\n\n{STORY}\n\n2 Costs\n\n{OTHER}"
    assert str(place_of(found, "1904")) == 'page 1, "The bridge"'
    assert str(place_of(found, "council")) == 'page 1, "2 Costs"'


def table(rows: Sequence[tuple[str, ...]], *, places: tuple[float, ...], y: float, size: float = 10) -> str:
    """The stream of a table, whose head is bold; words of a cell are 0.6 `size` a letter."""
    return "".join(
        typed([cell], x=x, y=y - 20 * number, size=size, bold=not number)
        for number, row in enumerate(rows)
        for x, cell in zip(places, row, strict=True)
    )


def test_the_bold_head_of_a_table_is_a_row_and_no_heading() -> None:
    rows = [
        ("Step", "Date"),
        ("Visit (voluntary)", "24 May 2026, 10:00"),
        ("Last day to ask us", "6 June 2026"),
        ("Award", "17 June 2026"),
    ]
    page = column(STORY, y=720) + table(rows, places=(40, 172), y=600, size=11) + column(OTHER, y=500)
    found = read_content(pdf([page]))
    told = "\n\n".join(" | ".join(row) for row in rows)
    assert found.text == f"{STORY}\n\n{told}\n\n{OTHER}"
    assert str(place_of(found, "council")) == "page 1"


def test_a_row_whose_cells_are_close_is_divided_where_its_neighbours_are() -> None:
    rows = [("Part", "Size", "Cost"), ("Removal of boats", "11 tons", "40"), ("Quay", "640 m", "236000")]
    found = read_content(pdf([table(rows, places=(40, 150, 205), y=600)]))
    assert found.text.replace("\n\n", "\n").split("\n") == [" | ".join(row) for row in rows]
    rows[1] = ("Removal of boats", "It is one of the longer texts here", "")
    assert (
        "Removal of boats It is one of" in read_content(pdf([table(rows, places=(40, 150, 205), y=600)])).text
    )


def test_headings_whose_numbers_stand_apart_are_no_table() -> None:
    def heads(number: str, title: str, y: int) -> str:
        return "".join(typed([text], x=x, y=y, size=14, bold=True) for text, x in ((number, 40), (title, 90)))

    page = (
        column(STORY, y=720) + heads("2", "Methods", 600) + heads("2.1", "Data", 580) + column(OTHER, y=540)
    )
    found = read_content(pdf([page]))
    assert "2 Methods" in found.text
    assert " | " not in found.text
    assert "Data" in str(place_of(found, "council"))


def test_a_bold_sentence_is_no_heading() -> None:
    page = column(STORY, y=720) + typed(["Nobody pays."], x=40, y=600, bold=True) + column(OTHER, y=580)
    assert str(place_of(read_content(pdf([page])), "council")) == "page 1"


def test_a_paragraph_goes_on_past_a_footnote_on_the_next_page() -> None:
    lines = textwrap.wrap(STORY, WIDTH)
    first = typed(lines[:3], x=40, y=700) + typed(["1 See the report of 2020."], x=40, y=60, size=7)
    found = read_content(pdf([first, typed(lines[3:], x=40, y=700)]))
    assert found.text == f"{STORY}\n\n1 See the report of 2020."
    assert place_of(found, "built").page == 1
    assert place_of(found, "cost in the end").page == 2
    assert place_of(found, "See").page == 1


def test_a_sentence_goes_on_over_a_page() -> None:
    found = read_content(pdf([lines_of(["Ann went home on"]), lines_of(["monday evening."])]))
    assert found.text == "Ann went home on monday evening."
    parted = read_content(pdf([lines_of(["Ann went to the gar-"]), lines_of(["den."])]))
    assert parted.text == "Ann went to the garden."
    assert place_of(parted, "den.").page == 2


def test_a_page_that_is_turned_is_read_like_others() -> None:
    lines = textwrap.wrap(STORY, WIDTH)
    turned = "BT /F2 10 Tf\n" + "".join(
        f"0 1 -1 0 {100 + 12 * number} 40 Tm ({line}) Tj\n" for number, line in enumerate(lines)
    )
    assert read_content(pdf([turned + "ET"])).text == STORY


def test_letters_that_are_moved_together_stay_a_word() -> None:
    kerned = "BT /F1 10 Tf 1 0 0 1 40 700 Tm (W) Tj 8.6 0 Td (e mo) Tj 21.2 0 Td (v) Tj 4.7 0 Td (ed.) Tj ET"
    assert read_content(pdf([kerned])).text == "We moved."


def test_the_outline_of_a_pdf_gives_headings() -> None:
    page = lines_of(["1 Brücken", "They rust.", "2 Budget", "It is 40 euros."])
    found = read_content(pdf([lines_of(["Foreword."]), page], outline=[("Brücken", 1), ("Budget", 1)]))
    assert place_of(found, "Foreword").heading == ""
    assert str(place_of(found, "rust")) == 'page 2, "Brücken"'
    assert str(place_of(found, "40")) == 'page 2, "Budget"'


def test_a_title_whose_page_begins_no_paragraph_stands_at_the_next_one() -> None:
    pages = [lines_of(["They rust."]), "", lines_of(["It is 40 euros."])]
    found = read_content(pdf(pages, outline=[("Bridges", 0), ("Budget", 1)]))
    assert place_of(found, "rust").heading == "Bridges"
    assert place_of(found, "40").heading == "Budget"


def test_a_roman_number_on_one_page_alone_is_no_page_number() -> None:
    pages = [
        lines_of([f"Point {word} is here.", *extra])
        for word, extra in zip("abcd", [["x"], [], [], []], strict=True)
    ]
    assert "x" in read_content(pdf(pages)).text.split()


def test_running_heads_and_page_numbers_are_left_out_and_said() -> None:
    pages = [lines_of(["Annual report", f"Point {word} is here.", str(n)]) for n, word in enumerate("abcd")]
    found = read_content(pdf(pages))
    assert found.text == "Point a is here.\n\nPoint b is here.\n\nPoint c is here.\n\nPoint d is here."
    assert found.notes == ["running heads and page numbers left out"]


def test_the_list_of_contents_is_left_out_and_said() -> None:
    contents = ["Contents", "1 Bridges . . . . . . . . 1", "2 Budget ............ iv"]
    found = read_content(pdf([lines_of(contents), lines_of(["They rust."])]))
    assert found.text == "Contents\n\nThey rust."
    assert found.notes == ["table of contents left out"]


def told(number: int) -> str:
    """A sentence of its own for each page."""
    return (
        " ".join(random.Random(number).sample(f"{STORY} {OTHER}".replace(".", "").split(), 30)).capitalize()
        + "."
    )


def test_sixty_pages_in_two_columns_give_what_was_set() -> None:
    pages = []
    for number in range(1, 61):
        head = f"{number}   A. N. Author" if number % 2 == 0 else f"A study of bridges   {number}"
        lines = textwrap.wrap(told(number), WIDTH, initial_indent="   ")
        page = typed([head], x=40, y=770, size=8) + typed([f"Part {200 - number}"], x=40, y=740, bold=True)
        pages.append(page + typed(lines[:3], x=40, y=720) + typed(lines[3:], x=320, y=720))
    found = read_content(pdf(pages))
    assert found.text == "\n\n".join(f"Part {200 - number}\n\n{told(number)}" for number in range(1, 61))
    assert str(found.at(len(found.text) - 9)) == 'page 60, "Part 140"'


def test_pages_without_text_are_named_and_a_scan_is_refused() -> None:
    found = read_content(pdf([lines_of(["Text."]), "", ""]))
    assert found.notes == ["pages 2, 3 lack text"]
    assert "contains only images, no text, on 2 pages; " in refused(pdf(["", ""]))


def test_fonts_that_name_no_letters_are_said() -> None:
    signs = "BT /F1 10 Tf 1 0 0 1 40 700 Tm (\x01\x02\x03\x04\x05\x06) Tj ET"
    differences = b"/Encoding << /Differences [1 /g1 /g2 /g3 /g4 /g5 /g6] >>"
    content = pdf([signs]).replace(b"/Helvetica /Encoding /WinAnsiEncoding", b"/Unknown " + differences)
    assert "its fonts do not identify their letters" in refused(content)


def test_locked_broken_and_empty_pdfs_say_so() -> None:
    locked = "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O ({}) /U ({}) >> /ID [(a) (a)]".format(
        "x" * 32, "y" * 32
    )
    assert "is locked; save it without a password" in refused(pdf([lines_of(BODY)], trailer=locked))
    assert refused(b"%PDF-1.4\nnonsense").startswith("is damaged: ")
    assert refused(b"") == "is empty"
    assert refused(pdf([])).startswith("is damaged: ")
    content = pdf([lines_of(["First."]), lines_of(["Second."])])
    assert "none of its pages" in refused(content.replace(b"[10 0 R 12 0 R]", b"[90 0 R 92 0 R]"))
    found = read_content(content.replace(b"[10 0 R 12 0 R]", b"[10 0 R 92 0 R]"))
    assert (found.text, found.notes) == ("First.", ["page 2 is damaged"])


def test_all_pages_together_have_as_many_characters_as_the_limit_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = pdf([typed(["Twelve signs"], x=60, y=700), typed(["Ten signs."], x=60, y=700)])
    monkeypatch.setattr(pdf_reader, "_MOST_TEXT", 20)
    assert pdf_reader.read(content).text.split() == ["Twelve", "signs", "Ten", "signs."]
    monkeypatch.setattr(pdf_reader, "_MOST_TEXT", 19)
    with pytest.raises(UserError, match="contains more than 19 characters, the limit; split it"):
        pdf_reader.read(content)
