"""Raised characters: the mark of a footnote goes, a power or an ordinal stays."""

from __future__ import annotations

import pytest

from precis_text.documents.superscripts import power, raised_text


@pytest.mark.parametrize(
    ("before", "raised", "read"),
    [
        ("It cost 10", "6", "⁶"),
        ("It cost 10", "-12", "⁻¹²"),
        ("about 7", "1000", "¹⁰⁰⁰"),
        ("built in 1931", "4", None),
        ("it sank in 19", "4", None),
        ("it rose by 12", "n", "ⁿ"),
        ("it rose by 12", "-3", "⁻³"),
        ("of 40 m", "2", "²"),
        ("of 40 µm", "2", "²"),
        ("of 40 rad", "2", "²"),
        ("where x", "2", "²"),
        ("where xy", "+1", "⁺¹"),
        ("where xyz", "2", None),
        ("where é", "2", None),
        ("where _", "2", None),
        ("12 ft by 7 in", "2", "²"),
        ("as we wrote in", "2", None),
        ("As is shown in", "2", None),
        ("and so do we", "2", None),
        ("It is a", "2", None),
        ("so do I", "2", None),
        ("it is A", "2", "²"),
        ("As we wrote, In", "2", None),
        ("see the plan.", "3", None),
        ("by 0.m", "2", None),  # a dot before the letter: no word of its own
        ("m", "2", "²"),
        ("", "2", None),
    ],
)
def test_a_power_stands_behind_ten_a_digit_a_letter_or_a_unit(
    before: str, raised: str, read: str | None
) -> None:
    assert raised_text(raised, before) == read


@pytest.mark.parametrize(
    ("before", "raised", "read"),
    [
        ("y = (a+b)", "2", "²"),
        ("the plan (of 1904)", "2", None),  # no formula
        ("y = (a+b)", "12", None),
        ("y = (a+b.)", "2", None),
        ("y = [a]", "2", "²"),
        ("(see below)", "n", "ⁿ"),
        ("(see below)", "-1", "⁻¹"),
        ("y = " + "x" * 37 + ")", "2", "²"),
        ("y = " + "x" * 38 + ")", "2", None),  # the formula is long past
    ],
)
def test_behind_a_bracket_a_digit_is_a_power_only_in_a_formula(
    before: str, raised: str, read: str | None
) -> None:
    assert raised_text(raised, before) == read


@pytest.mark.parametrize("mark", ["3", "[3]", "(3)", "*", "††", "3, 4", "3–5", "123"])
def test_a_mark_of_a_footnote_is_left_out(mark: str) -> None:
    assert raised_text(mark, "The plan failed.") is None
    assert raised_text(f" {mark} ", "of 40 m", is_linked=True) is None


@pytest.mark.parametrize("text", ["th", "me", "a b", "1234", "3, x"])
def test_other_raised_text_stays_linked_or_not(text: str) -> None:
    spaced = text.replace(" ", " \n ")
    assert raised_text(spaced, "the year 19") == raised_text(spaced, "the year 19", is_linked=True) == text


@pytest.mark.parametrize(
    ("exponent", "written"), [("2", "²"), ("n + 1", "^(n + 1)"), ("-1", "⁻¹"), ("x", "^x"), ("2k", "^(2k)")]
)
def test_an_exponent_is_written_raised_if_all_its_signs_can_be(exponent: str, written: str) -> None:
    assert power(exponent) == written
