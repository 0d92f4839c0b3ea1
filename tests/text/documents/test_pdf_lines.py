"""The lines of a PDF page have the words, places, sizes, weights and directions that a reader sees."""

from __future__ import annotations

import pytest

from precis_text.documents.pdf_lines import Line, PageText, _forms_words, is_right_to_left, page_text
from tests.document_files import pdf, typed

pdfium = pytest.importorskip("pypdfium2")


def page(stream: str, number: int = 0) -> PageText:
    return page_text(pdfium.PdfDocument(pdf([stream]))[0], number)


def lines(stream: str) -> list[Line]:
    return page(stream).lines


def turned(text: str, matrix: str, *, x: float = 300, y: float = 400) -> str:
    return f"BT /F2 10 Tf {matrix} {x} {y} Tm ({text}) Tj ET\n"


def letters(text: str, step: float, *, space: float | None = None, size: float = 10, at: float = 40) -> str:
    """Letters that are set one by one, `step` points from one to the next."""
    stream, x = f"BT /F2 {size} Tf\n", at
    for sign in text:
        if sign != " ":
            stream += f"1 0 0 1 {x:.2f} 700 Tm ({sign}) Tj\n"
        x += step if sign != " " or space is None else space
    return stream + "ET\n"


def test_a_line_has_its_place_size_and_weight() -> None:
    (line,) = page(typed(["The ferry leaks"], x=40, y=700, size=20), 7).lines
    assert (line.text, line.page, line.size, line.direction, line.is_bold) == (
        "The ferry leaks",
        7,
        20,
        0,
        False,
    )
    assert line.left == pytest.approx(40, abs=3)
    assert line.right == pytest.approx(40 + 15 * 12, abs=3)
    assert line.first_word == pytest.approx(3 * 12, abs=3)
    assert line.base == pytest.approx(700, abs=0.1)
    assert (line.cells, line.parted, line.is_row) == ((), "", False)
    (one,) = lines(typed(["Ferry"], x=40, y=700, bold=True))
    assert one.is_bold
    assert one.first_word == pytest.approx(one.right - one.left)


@pytest.mark.parametrize(
    ("parts", "is_bold"),
    [(("The ferry ", "leaks"), False), (("", "The ferry leaks"), True), (("T", "he ferry leaks"), False)],
)
def test_a_line_is_bold_if_it_begins_and_ends_so(parts: tuple[str, str], is_bold: bool) -> None:
    stream = f"BT /F2 10 Tf 1 0 0 1 40 700 Tm ({parts[0]}) Tj /F3 10 Tf ({parts[1]}) Tj ET"
    assert [line.is_bold for line in lines(stream)] == [is_bold]


@pytest.mark.parametrize(
    ("matrix", "direction", "left", "base"),
    [
        ("1 0 0 1", 0, 300, 400),
        ("0 1 -1 0", 90, 400, -300),
        ("-1 0 0 -1", 180, -300, -400),
        ("0 -1 1 0", 270, -400, 300),
    ],
)
def test_a_line_is_measured_along_its_direction(
    matrix: str, direction: int, left: float, base: float
) -> None:
    (line,) = lines(turned("The ferry", matrix))
    assert (line.text, line.direction, line.size) == ("The ferry", direction, 10)
    assert line.left == pytest.approx(left, abs=2)
    assert line.right == pytest.approx(left + 9 * 6, abs=2)
    assert line.base == pytest.approx(base, abs=0.1)
    (large,) = lines(turned("The ferry", " ".join(str(3 * int(each)) for each in matrix.split())))
    assert large.size == pytest.approx(30)


@pytest.mark.parametrize(("gap", "is_wide"), [(19, False), (23, True)])
def test_a_space_of_two_letters_divides_cells(gap: float, is_wide: bool) -> None:
    row = typed(["Cod and"], x=40, y=700) + typed(["12"], x=40 + 7 * 6 + gap, y=700, bold=True)
    (line,) = lines(row)
    assert line.text == "Cod and 12"
    assert [cell.text for cell in line.cells] == (["Cod and", "12"] if is_wide else [])
    assert line.right == pytest.approx(40 + 9 * 6 + gap, abs=2)
    assert not line.is_bold
    if is_wide:
        first, last = line.cells
        assert (line.left, line.base, line.right) == (first.left, first.base, last.right)
        assert (first.is_bold, last.is_bold) == (False, True)
        assert first.right == pytest.approx(40 + 7 * 6, abs=2)


def test_a_jump_of_the_baseline_ends_a_line_and_a_raised_letter_does_not() -> None:
    def pair(up: float) -> list[str]:
        stream = f"BT /F2 10 Tf 1 0 0 1 40 700 Tm (The ferry ) Tj 1 0 0 1 100 {700 + up} Tm (a) Tj ET"
        return [line.text for line in lines(stream)]

    assert pair(0) == ["The ferry a"]
    assert len(pair(40)) == 2


@pytest.mark.parametrize("hyphen", ["-", "\xad"])
def test_a_hyphen_at_the_end_of_a_line_parts_a_word(hyphen: str) -> None:
    first, second = lines(typed([f"The old steam{hyphen}", "boat leaks"], x=40, y=700))
    assert (first.text, second.text) == ("The old steam", "boat leaks")
    assert first.parted
    assert not second.parted
    dash, _ = lines(typed(["-", "boat"], x=40, y=700))
    assert (dash.text, dash.parted) == ("-", "")


@pytest.mark.parametrize("step", [6, 8, 10, 12])
def test_letters_far_apart_are_words_where_spaces_are_wider(step: float) -> None:
    shown = [line.text for line in lines(letters("ANNUAL REPORT OF OLM", step, space=step + 10))]
    assert " ".join(shown) == "ANNUAL REPORT OF OLM"


def test_characters_are_counted_without_white_space() -> None:
    found = page(typed(["The ferry", "leaks"], x=40, y=700))
    assert (found.letters, found.unreadable) == (13, 0)
    empty = page("")
    assert (empty.lines, empty.letters, empty.unreadable) == ([], 0, 0)


@pytest.mark.parametrize(
    ("text", "is_mirrored"),
    [("קבר abc", False), ("קברי abc", True), ("abc", False), ("12", False), ("ק", True)],
)
def test_more_than_half_of_the_letters_tell_the_direction(text: str, is_mirrored: bool) -> None:
    assert is_right_to_left(text) == is_mirrored


@pytest.mark.parametrize(
    ("text", "is_words"),
    [
        ("abcdefghijkl", True),
        ("abcdefghijklm", False),  # no space in thirteen
        ("abCDe ab", True),
        ("abCDE", False),
        ("abcDE", True),
        ("abc12", True),
        ("ab123", False),
        ("abcdefgh,#", True),
        ("abcdefg,##", False),
        ("", True),
    ],
)
def test_words_are_short_small_letters_with_few_signs(text: str, is_words: bool) -> None:
    assert _forms_words(text) == is_words
