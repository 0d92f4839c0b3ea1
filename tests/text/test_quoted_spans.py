"""Short quotations and brackets, and what only looks like one."""

import pytest

from precis_text.quoted_spans import QuotedSpans, straight_quotes, without_smileys


def covered(text: str) -> bool:
    """Check whether the full stop and the space after it are in a quotation or a bracket."""
    place = text.index(". ")
    return QuotedSpans(text).cover(place, place + 2)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('"a. b" c', True),
        ('a "b. c" d', True),
        ('a ("b. c") d', True),
        ('a ["b. c"] d', True),
        ('a—"b. c" d', True),
        ('a–"b. c" d', True),
        ('a-"b. c" d', True),
        ('a"b. c" d', False),
        ('a " b. c" d', False),
        ('a ". b" d', False),
        ('a "b" c. d "e" f', False),
        ('a "b "c. d" e', True),
        ('a "b" c" d. e" f', False),
        ('a. b "c" d', False),
        ('a "b" c. d', False),
        ("a “b. c” d", True),
        ("a „b. c“ d", True),
        ("a «b. c» d", True),
        ("a (b. c) d", True),
        ("a (b) c. d (e)", False),
        ("a :( b. c :) d", False),
        ("a (b. c :) d", False),
    ],
)
def test_a_quotation_opens_after_a_space_before_a_letter_and_closes_at_the_next_mark(
    text: str, inside: bool
) -> None:
    assert covered(text) == inside


@pytest.mark.parametrize("marks", ['""', "()", "“”"])
def test_a_quotation_of_200_characters_is_short_and_a_longer_one_is_not(marks: str) -> None:
    opened, closed = marks[0], marks[1]
    most = 199 if marks == '""' else 200  # between straight marks one character fewer
    for size, inside in ((most, True), (most + 1, False)):
        text = f"{opened}{'x' * (size - 2)}. {closed} y"
        spans = QuotedSpans(text)
        assert spans.cover(size - 1, size + 1) == inside
        assert not spans.cover(0, size)
        assert not spans.cover(size, size + 3)


def test_smileys_are_no_brackets_and_keep_their_length() -> None:
    text = ":) It (the pump :-) runs ;D x:)"
    assert without_smileys(text) == "   It (the pump     runs    x:)"


@pytest.mark.parametrize(
    ("text", "count"), [('a "b" c', 2), ('27" wide', 0), ('27" and "x"', 2), ('27" by 28"', 2), ('"x', 1)]
)
def test_marks_of_inches_are_left_out_of_an_odd_number(text: str, count: int) -> None:
    assert straight_quotes(text) == count
