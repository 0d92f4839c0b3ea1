"""Numbers of a text and their values."""

import pytest

from precis_text.support.numbers import agrees, numbers_of


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("II", 2),
        ("III", 3),
        ("IV", 4),
        ("VI", 6),
        ("IX", 9),
        ("XI", 11),
        ("XIV", 14),
        ("XIX", 19),
        ("XXXIX", 39),
    ],
)
def test_a_letter_before_a_larger_one_is_subtracted(numeral: str, value: float) -> None:
    (found,) = numbers_of(f"Henry {numeral} came", None)
    assert (found.text, found.values) == (numeral, frozenset([value]))


@pytest.mark.parametrize(
    ("known", "written", "agreed", "agreed_if_rounded"),
    [
        ("3.57", "3.5", True, True),  # cut off
        ("3.57", "3.6", True, True),  # rounded
        ("3.57", "3.4", False, False),
        ("3.57", "3", False, True),
        ("3.57", "4", False, True),
        ("3.57", "5", False, False),
        ("1,987", "1,900", True, True),
        ("1,987", "2,000", False, True),
        ("1,987", "2,100", False, False),
        ("0.0357", "0.036", True, True),
        ("3.57", "36", False, False),
        ("3.57", "357", False, False),
        ("3.5", "3.57", False, False),
    ],
)
def test_a_number_agrees_with_one_that_it_cuts_off_or_rounds_to_2_digits_or_1_if_said_to_be_inexact(
    known: str, written: str, agreed: bool, agreed_if_rounded: bool
) -> None:
    (number,), others = numbers_of(written, None), numbers_of(known, None)
    assert agrees(number, others, rounded=False) == agreed
    assert agrees(number, others, rounded=True) == agreed_if_rounded
