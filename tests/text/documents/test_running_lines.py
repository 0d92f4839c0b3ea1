"""Lines that repeat at the edge of pages are running lines; what changes from page to page is text."""

from __future__ import annotations

import pytest

from precis_text.documents.pdf_lines import Line
from precis_text.documents.running_lines import running_lines


def left_out(*pages: list[str]) -> list[str]:
    """The running lines of pages whose lines are 20 points apart; "a / b" stand side by side in a row."""
    made = [
        [
            Line(text, page=number, base=800 - 20 * place, left=float(column))
            for place, row in enumerate(page)
            for column, text in enumerate(row.split(" / "))
        ]
        for number, page in enumerate(pages)
    ]
    found = running_lines(made)
    return [line.text for page in made for line in page if line in found]


def body(number: int, lines: int = 5) -> list[str]:
    return [f"Boat {chr(97 + number)}{chr(97 + k)} leaks." for k in range(lines)]


def pages(count: int, head: dict[int, str], place: int = 0) -> list[list[str]]:
    """Pages of five lines of their own, some with a further line at a place."""
    return [[*body(n)[:place], head[n], *body(n)[place:]] if n in head else body(n) for n in range(count)]


def test_a_line_on_three_pages_of_five_is_left_out_and_on_three_of_six_it_stays() -> None:
    assert left_out(*pages(5, dict.fromkeys((0, 1, 4), "Report"))) == ["Report"] * 3
    assert left_out(*pages(6, dict.fromkeys((0, 1, 5), "Report"))) == []
    assert left_out(*pages(2, dict.fromkeys((0, 1), "Report"))) == []
    assert left_out(*pages(3, dict.fromkeys((0, 2), "Report"))) == []


def test_a_line_on_most_left_pages_is_left_out() -> None:
    assert left_out(*pages(10, dict.fromkeys((0, 4, 8), "Report"))) == ["Report"] * 3
    assert left_out(*pages(10, dict.fromkeys((0, 4, 9), "Report"))) == []
    assert left_out(*pages(11, dict.fromkeys((1, 5, 9), "Report"))) == []  # three of five and a half


@pytest.mark.parametrize(
    ("place", "is_edge"), [(0, True), (1, True), (2, False), (3, False), (4, True), (5, True)]
)
def test_running_lines_stand_in_the_two_outer_rows(place: int, is_edge: bool) -> None:
    assert left_out(*pages(4, dict.fromkeys(range(4), "Report"), place)) == ["Report"] * 4 * is_edge


def test_the_head_of_a_chapter_repeats_on_three_pages_in_a_row_as_the_outermost_line() -> None:
    assert left_out(*pages(20, dict.fromkeys((7, 8, 9), "The quay"))) == ["The quay"] * 3
    assert left_out(*pages(20, dict.fromkeys((6, 8, 10), "The quay"))) == ["The quay"] * 3
    assert left_out(*pages(20, dict.fromkeys((6, 8, 11), "The quay"))) == []
    assert left_out(*pages(20, dict.fromkeys((6, 7, 10, 11), "The quay"))) == []
    assert left_out(*pages(20, dict.fromkeys((7, 8, 9), "The quay"), place=1)) == []
    both = pages(20, dict.fromkeys((3, 7, 8, 9), "The quay"))
    both[12].insert(1, "The quay")  # not the outermost: text
    assert left_out(*both) == ["The quay"] * 4


def test_page_numbers_alone_or_beside_words_are_left_out() -> None:
    assert left_out(*pages(6, {n: str(n + 9) for n in range(6)})) == [str(n + 9) for n in range(6)]
    some = {**{n: f"{n + 1}" for n in range(5)}, 7: "8 Harbour", 13: "14 Harbour"}
    assert left_out(*pages(9, some)) == ["1", "2", "3", "4", "5"]
    assert left_out(*pages(14, {**{n: f"{n + 1}" for n in range(7)}, **dict.fromkeys((8,), "9 Quay")})) == [
        "1", "2", "3", "4", "5", "6", "7",
    ]  # fmt: skip


def numbered(count: int, more: dict[int, str]) -> list[list[str]]:
    """Pages of which each has its number below, and some a head."""
    return [[*page, str(n + 1)] for n, page in enumerate(pages(count, more))]


def test_a_head_with_the_page_number_is_left_out_on_two_pages() -> None:
    numbers = [str(n + 1) for n in range(9)]
    for heads in ({2: "Quay 3", 7: "Quay 8"}, {2: "3 Quay", 7: "8 Quay"}):
        assert left_out(*numbered(9, heads)) == sorted(
            [*heads.values(), *numbers], key=lambda t: (int(t.strip(" Quay")), t.isdigit())
        )
    for stays in ({2: "Quay 3"}, {2: "Quay 3", 7: "Quay 9"}, {2: "Quay 3 of", 7: "Quay 8 of"}):
        assert left_out(*numbered(9, stays)) == numbers


def test_growing_rows_of_a_table_are_no_page_numbers() -> None:
    assert left_out(*pages(6, {n: str(40 - n) for n in range(6)})) == []
    assert left_out(*pages(6, {n: str(n + 1) for n in range(2)})) == []
    assert left_out(*pages(8, {n: str(n + 1) for n in range(3)})) == []  # fewer than half of the pages
    assert left_out(*pages(6, {n: str(n + 1) for n in range(3)})) == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["{}.5", "1.{}", "{},5", "2,{}", "1234{}"])
def test_parts_of_other_numbers_are_no_page_numbers(text: str) -> None:
    assert left_out(*pages(6, {n: text.format(n + 10) for n in range(6)})) == []


def test_the_total_may_equal_the_page_number() -> None:
    feet = [f"Page {n + 1} of 6" for n in range(6)]
    assert left_out(*pages(6, dict(enumerate(feet)))) == feet


def test_roman_page_numbers_are_left_out_on_most_pages_only() -> None:
    assert left_out(*pages(3, {0: "i", 1: "ii", 2: "iii"})) == ["i", "ii", "iii"]
    assert left_out(*pages(9, {3: "mix", 4: "civil"})) == []


def test_all_lines_of_an_outer_row_are_running_lines() -> None:
    assert left_out(*pages(4, dict.fromkeys(range(4), "Report / Olm"))) == ["Report", "Olm"] * 4


def test_spaces_do_not_make_heads_different_and_numbers_do() -> None:
    assert left_out(*pages(4, {0: "The  quay", 1: "The quay", 2: "The quay", 3: "The quay"})) != []
    assert left_out(*pages(4, {n: f"Boat {9 - 2 * n}" for n in range(4)})) == []


def test_pages_of_nothing_but_running_lines_keep_them() -> None:
    assert left_out(["Report"], ["Report"], ["Report"]) == []
    assert left_out(["Report"], ["Report"], ["Report"], []) == []
    assert left_out(["Report"], ["Report"], ["Report", "a", "b", "c", "d"]) == ["Report"] * 3


def test_lines_that_run_across_the_page_are_no_edges() -> None:
    made = [
        [
            *(Line(text, n, base=700 - 20 * k) for k, text in enumerate(body(n))),
            Line("Draft", n, base=900, direction=90),
        ]
        for n in range(4)
    ]
    assert running_lines(made) == set()


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("11/27/26, 7:31 PM / The boats of Olm", "https://olm.example/boats / {}/2"),
        ("27.11.26, 19:31 / The boats of Olm", "file:///home/ann/boats.html / {}/2"),
    ],
)
def test_what_a_browser_prints_at_the_edges_of_a_page_is_left_out(head: str, foot: str) -> None:
    printed = [[head, *body(number), foot.format(number + 1)] for number in range(2)]
    expected = [
        part for number in range(2) for row in (head, foot.format(number + 1)) for part in row.split(" / ")
    ]
    assert left_out(*printed) == expected
    inside = [["Boats", head, *body(number), foot.format(number + 1), "Boats"] for number in range(2)]
    assert left_out(*inside) == []
    assert left_out(["7:31 PM", *body(0), "https://olm.example/boats"]) == []
    assert left_out([head, foot.format(1)]) == []  # nothing else is there


@pytest.mark.parametrize(
    "line",
    [
        "12/05/2024, 18:0{} - Ann: We will not sell the house",
        "2024-05-12 18:00:0{} ERROR disk full",
        "12.05.2024 18:0{} Der Rat lehnt den Haushalt ab.",
        "[12/05/24, 6:0{} PM] Ben: Not yet",
    ],
)
@pytest.mark.parametrize("foot", [[], ["https://olm.example/chat 1/2"]])
def test_messages_and_logs_at_the_edges_of_a_page_are_text(line: str, foot: list[str]) -> None:
    rows = [line.format(place) for place in range(9)]
    assert left_out(rows[:3] + foot, rows[3:6] + foot, rows[6:] + foot) == 3 * foot
    assert left_out(rows[:2] + foot, rows[2:4]) == foot
    assert left_out(rows[:1]) == []


def test_a_browser_prints_a_log_with_its_title() -> None:
    page = ["11/27/26, 7:31 PM Log of the boats", *(f"11/26/26, 7:3{n} PM disk full" for n in range(3))]
    feet = ["https://olm.example/log 1/2", "https://olm.example/log 2/2"]
    assert left_out([*page, feet[0]], [*page, feet[1]]) == [page[0], feet[0], page[0], feet[1]]
