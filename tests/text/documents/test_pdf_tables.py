"""Lines of a PDF page side by side: rows of a table keep their cells, and columns of text follow one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from precis_text.documents.pdf_lines import Line
from precis_text.documents.pdf_tables import in_reading_order

LEFT = (
    "The ferry leaves from Olm",
    "at nine and comes back",
    "at noon with the post",
    "and a doctor for all",
)
RIGHT = (
    "Nobody knows who pays now",
    "for the lamps on it",
    "since the mayor left them",
    "to the old harbour guild",
)


def cell(text: str, x: float, y: float, **more: Any) -> Line:
    """A line whose letters are 10 points high and 5 wide."""
    return Line(text, left=x, right=x + 5 * len(text), base=y, **more)


def grid(*rows: tuple[str, ...], by_columns: bool = False, step: float = 150) -> list[Line]:
    """Cells in rows 14 points apart, in the order of a file that goes by rows or by columns."""
    cells = [
        (x, y, cell(text, 40 + step * x, 600 - 14 * y))
        for y, row in enumerate(rows)
        for x, text in enumerate(row)
        if text
    ]
    return [line for *_, line in (sorted(cells, key=lambda c: c[:2]) if by_columns else cells)]


def read(lines: list[Line]) -> list[str]:
    return [line.text for line in in_reading_order(lines)]


def test_two_rows_are_a_table_and_one_is_not() -> None:
    rows = [("Year", "Cost"), ("2020", "40")]
    found = in_reading_order(grid(*rows))
    assert [(line.text, line.is_row) for line in found] == [("Year | Cost", True), ("2020 | 40", True)]
    assert [(line.text, line.is_row) for line in in_reading_order(grid(*rows[:1]))] == [("Year Cost", False)]


def test_cells_stand_two_letters_apart_and_a_fifth_of_one_above_each_other() -> None:
    name = "The two old boats of the harbour"

    def rows(gap: float = 20, up: float = 0, **more: Any) -> list[str]:
        x = 40 + 5 * len(name) + gap
        right = [replace(cell("12", x, y + up), **more) for y in (600, 580)]
        return read([cell(name, 40, 600), right[0], cell(name, 40, 580), right[1]])

    assert rows() == rows(up=2) == rows(up=-2) == [f"{name} | 12"] * 2
    for other in ({"gap": 19.9}, {"up": 2.1}, {"up": -2.1}, {"direction": 90}, {"page": 1}):
        assert rows(**other) == [name, "12"] * 2
    assert in_reading_order([cell("Cod", 40, 600, parted="-"), cell("12", 90, 600)])[0].parted == "-"


def test_a_joined_row_ends_where_its_last_cell_ends_and_keeps_its_hyphen() -> None:
    (line,) = in_reading_order(
        [cell("Cod", 40, 600), cell("her", 90, 600), cell("ring", 140, 600, parted="-")]
    )
    assert (line.text, line.left, line.right, line.parted) == ("Cod her ring", 40, 160, "-")
    assert [each.text for each in line.cells] == ["Cod", "her", "ring"]
    rows = [cell("Cod", 40, 600), cell("her", 90, 600, parted="-"), cell("Eel", 40, 580), cell("12", 90, 580)]
    assert read(rows) == ["Cod | her-", "Eel | 12"]


def columns(left: tuple[str, ...] = LEFT, right: tuple[str, ...] = RIGHT, indent: float = 0) -> list[Line]:
    return [
        cell(text, x, 700 - 12 * k)
        for k, pair in enumerate(zip(left, right, strict=True))
        for x, text in zip((40, 320 + indent * (k == 1)), pair, strict=True)
    ]


def test_four_long_rows_side_by_side_are_two_columns() -> None:
    assert read(columns()) == [*LEFT, *RIGHT]
    table = [f"{left} | {right}" for left, right in zip(LEFT, RIGHT, strict=True)]
    assert read(columns()[:6]) == table[:3]  # too few
    assert read(columns(indent=19.9)) == [*LEFT, *RIGHT]
    assert read(columns(indent=20)) == table  # the right edges of a table vary
    third = [cell("12", 600, 700 - 12 * k) for k in range(4)]
    wide = [line for k in range(4) for line in (*columns()[2 * k : 2 * k + 2], third[k])]
    assert read(wide) == [f"{row} | 12" for row in table]


@pytest.mark.parametrize("side", [0, 1])
def test_cells_have_fewer_than_four_words_in_most_lines_of_one_side(side: int) -> None:
    sides: list[tuple[str, ...]] = [LEFT, RIGHT]
    sides[side] = tuple(" ".join(text.split()[:4]) for text in sides[side])
    assert read(columns(sides[0], sides[1])) == [*sides[0], *sides[1]]
    sides[side] = tuple(" ".join(text.split()[:3]) for text in sides[side])
    assert read(columns(sides[0], sides[1])) == [
        f"{left} | {right}" for left, right in zip(*sides, strict=True)
    ]


def test_a_table_by_columns_is_read_in_rows_from_its_first_full_row_to_its_last() -> None:
    rows = [("Boats",), ("Year", "Cod", "Eel"), ("2020", "40", "7"), ("2021", "35", "9"), ("Source: Olm",)]
    told = ["Boats", "Year | Cod | Eel", "2020 | 40 | 7", "2021 | 35 | 9", "Source: Olm"]
    assert read(grid(*rows, by_columns=True)) == told
    found = in_reading_order(grid(*rows, by_columns=True))
    assert [line.is_row for line in found] == [False, True, True, True, False]
    assert (found[1].left, found[1].right) == (40, 355)
    few = grid(rows[0], rows[1][:2], rows[4], by_columns=True)
    assert read(few) == ["Boats", "Year", "Source: Olm", "Cod"]


def test_a_row_may_lack_a_cell_but_rows_of_three_lengths_are_no_table() -> None:
    rows = [("Year", "Cod", "Eel"), ("2020", "40", ""), ("2021", "35", "9")]
    assert read(grid(*rows, by_columns=True)) == ["Year | Cod | Eel", "2020 | 40", "2021 | 35 | 9"]
    for broken in ([*rows, ("2022",), ("2023", "3")], [("Year", "Cod", "Eel", "Ray"), *rows]):
        lines = grid(*broken, by_columns=True)
        assert read(lines) == [line.text for line in lines]


def test_cells_of_a_row_by_columns_stand_apart_and_on_one_line() -> None:
    def lines(step: float = 150, up: float = 0) -> list[Line]:
        rows = grid(("Year", "Cod"), ("2020", "40"), by_columns=True, step=step)
        return [*rows[:2], *(replace(line, base=line.base + up) for line in rows[2:])]

    for same in (lines(), lines(up=2), lines(up=-2), lines(step=20)):
        assert read(same) == ["Year | Cod", "2020 | 40"]
    for other in (lines(up=2.1), lines(step=19)):
        assert read(other) == ["Year", "2020", "Cod", "40"]


@pytest.mark.parametrize(
    "left",
    [
        ("the old ferry", "and the quay"),
        ("The old ferry of Olm", "Its wall is old"),
        ("One two three four five six seven", "Its wall"),
    ],
)
def test_short_lines_of_text_beside_each_other_are_no_table(left: tuple[str, str]) -> None:
    lines = grid(
        *zip(left, ("that leaks and rusts", "is not safe now"), strict=True), by_columns=True, step=300
    )
    assert read(lines) == [line.text for line in lines]


def test_a_cell_has_up_to_six_words_and_is_neither_rotated_nor_broken_off() -> None:
    names = [("One two three four five six", "40"), ("Cod", "35"), ("Eel", "9")]
    lines = grid(*names, by_columns=True, step=300)
    assert read(lines) == [" | ".join(row) for row in names]
    for other in ({"parted": "-"}, {"direction": 90}, {"text": "One two three four five six seven"}):
        changed = [replace(lines[0], **other), *lines[1:]]
        assert read(changed)[0] == changed[0].text
    half = grid(("Cod", "and"), ("Eel", "ray"), by_columns=True)
    assert read(half) == ["Cod | and", "Eel | ray"]  # half of the lines begin with a small letter


def test_a_row_of_words_in_both_directions_stays_as_it_is_in_the_file() -> None:
    rows = [cell("Cod", 200, 600), cell("Eel", 200, 580), cell("דג", 40, 600), cell("ים", 40, 580)]
    assert read(rows) == ["Cod | דג", "Eel | ים"]
    latin = [replace(line, text="Ray") if line.left == 40 else line for line in rows]
    assert read(latin) == ["Ray | Cod", "Ray | Eel"]
