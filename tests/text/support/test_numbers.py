"""Numbers of a text and their values."""

import pytest

from precis_text.language import languages
from precis_text.support.numbers import agrees, month_of, months_in_dates, numbers_of
from precis_text.support.placed_words import words_of


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
        ("1,950,000", "1,000,000", False, True),
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


@pytest.mark.parametrize(
    ("language", "written", "value"),
    [
        ("en", "two hundred", 200),
        ("en", "hundred", 100),
        ("en", "one hundred and five", 105),
        ("en", "a thousand and one", 1001),
        ("en", "ten thousand", 10_000),
        ("en", "two hundred thousand", 200_000),
        ("en", "two million three hundred thousand and six", 2_300_006),
        ("en", "twenty-five", 25),
        ("en", "ninety nine", 99),
        ("de", "zwei hundert", 200),
        ("de", "fünfundzwanzig", 25),
        ("fr", "vingt et un", 21),
        ("es", "treinta y cinco", 35),
    ],
)
def test_words_that_belong_to_one_number_multiply_and_add_up(
    language: str, written: str, value: float
) -> None:
    (found,) = numbers_of(f"... {written}.", languages()[language])
    assert (found.values, found.spelled, found.span) == (frozenset([value]), True, None)
    assert written.endswith(found.text)


def test_a_share_in_words_may_be_given_in_percent() -> None:
    values = [number.values for number in numbers_of("half, zero or two", languages()["en"])]
    assert values == [{0.5, 50}, {0}, {2}]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two three", [2, 3]),
        ("twenty, five", [20, 5]),
        ("twenty twenty", [20, 20]),
        ("thirty zero", [30, 0]),
        ("nineteen one", [19, 1]),
        ("five and twenty", [5, 20]),
        ("two hundred and", [200]),
        ("one hundred and men", [100]),
    ],
)
def test_number_words_that_do_not_continue_each_other_are_numbers_of_their_own(
    text: str, values: list[float]
) -> None:
    assert [max(number.values) for number in numbers_of(text, languages()["en"])] == values
    assert not any(number.text.endswith(("and", " ")) for number in numbers_of(text, languages()["en"]))


@pytest.mark.parametrize(
    ("text", "is_idle"),
    [
        ("one", True),
        ("second", True),
        ("thousand", True),
        ("half", True),
        ("two", False),
        ("one million", False),
    ],
)
def test_a_word_alone_that_mostly_does_not_count_is_idle(text: str, is_idle: bool) -> None:
    (found,) = numbers_of(f"the {text} of", languages()["en"])
    assert found.idle == is_idle


@pytest.mark.parametrize(
    ("text", "written", "values"),
    [
        ("3.5 million people", "3.5 million", {3.5e6}),
        ("2-million houses", "2-million", {2e6}),
        ("3k runs", "3", {3, 3000}),
        ("5bn people", "5", {5, 5e9}),
        ("3 k", "3", {3}),
        ("3十", "3", {3, 30}),
        ("50% of", "50", {50, 0.5}),
        ("50 percent of", "50", {50, 0.5}),
        ("7 per cent of", "7", {7, 0.07}),
        ("1.000", "1.000", {1, 1000}),
        ("1,000,000", "1,000,000", {1e6}),
        ("1.000.000,5", "1.000.000,5", {1_000_000.5}),
        ("1,000.50", "1,000.50", {1000.5}),
        ("10,50", "10,50", {10.5}),
        ("12'345", "12'345", {12345, 12.345}),
        ("1.2.3", "1.2.3", set()),
        ("10,50,60", "10,50,60", set()),
    ],
)
def test_digits_have_all_values_that_they_may_have(text: str, written: str, values: set[float]) -> None:
    (found,) = numbers_of(text, languages()["en"])
    assert (found.text, {*found.values}, found.spelled, found.idle) == (written, values, False, False)
    assert text[found.start : found.end] == written


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("the 1990s", (1990, 1999)),
        ("the 1990’s", (1990, 1999)),
        ("die 1990er", (1990, 1999)),
        ("the 1900s", (1900, 1999)),
        ("the 19th century", (1800, 1900)),
        ("the 1st century", (0, 100)),
        ("the 2nd  centuries", (100, 200)),
        ("the 1995s", None),
        ("the 990s", None),
        ("in 1990", None),
        ("the 19th", None),
    ],
)
def test_decades_and_centuries_are_ranges(text: str, span: tuple[float, float] | None) -> None:
    (found,) = numbers_of(text, languages()["en"])
    assert found.span == span


@pytest.mark.parametrize(
    ("written", "known", "agreed"),
    [
        ("the 1990s", "in 1990", True),
        ("the 1990s", "in 1999", True),
        ("the 1990s", "in 1989", False),
        ("the 1990s", "in 2000", False),
        ("in 1999", "the 1990s", True),
        ("in 2000", "the 1990s", False),
        ("the 19th century", "in 1800", True),
        ("the 19th century", "in 1901", False),
        ("1.2.3", "1.2.3", True),
        ("1.2.3", "1.2.4", False),
        ("50%", "half", True),
        ("1.000", "a thousand", True),
        ("III", "three", True),
    ],
)
def test_numbers_agree_whose_values_or_ranges_meet(written: str, known: str, agreed: bool) -> None:
    english = languages()["en"]
    (number,) = numbers_of(written, english)
    assert agrees(number, numbers_of(known, english), rounded=False) == agreed
    assert agrees(number, numbers_of(f"77.7 or {known} or 5.5.5", english), rounded=False) == agreed
    assert not agrees(number, [], rounded=True)


def test_a_number_that_rounds_to_one_of_several_agrees() -> None:
    english = languages()["en"]
    (number,) = numbers_of("3.6", english)
    assert agrees(number, numbers_of("77.7, 3.57 and 1.2.3", english), rounded=False)


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("on 2024-03-15", {3}),
        ("on 15.3.2024", {15, 3}),
        ("on 3/15/24", {3, 15}),
        ("on 3/15/2", set()),
        ("in 2024", set()),
    ],
)
def test_a_date_in_digits_may_name_each_of_its_months(text: str, months: set[int]) -> None:
    assert months_in_dates(text) == months


@pytest.mark.parametrize(
    ("language", "name", "month"),
    [
        ("en", "January", 1),
        ("en", "December", 12),
        ("en", "Sept", 9),
        ("en", "Mar", 3),
        ("en", "Ma", None),
        ("en", "Decem", None),
        ("en", "march", None),
        ("de", "dezember", 12),
        ("de", "Dez", 12),
        ("de", "dez", None),
    ],
)
def test_a_month_has_a_capital_or_its_whole_name(language: str, name: str, month: int | None) -> None:
    (word,) = words_of(name)
    assert month_of(word, languages()[language]) == month
