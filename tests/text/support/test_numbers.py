"""Numbers of a text and their values."""

import pytest

from precis_text.support.numbers import numbers_of


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
