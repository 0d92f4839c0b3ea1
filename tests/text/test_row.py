"""Rows of data files: what is skipped is counted whole, and values are named and written plainly."""

from __future__ import annotations

import datetime
import decimal

import pytest

from precis_text.row import SkippedRows, invalid_text, kind_of, list_names, plain, pluralize


def test_the_first_twenty_skipped_rows_and_unread_names_are_kept_and_all_are_counted() -> None:
    report = SkippedRows()
    assert report.told_unread() == ""
    for number in range(25):
        report.skip(f"line {number}: is bad")
    report.leave_unread(f"{number}.doc" for number in range(25))
    assert (report.skipped_count, report.unread_count) == (25, 25)
    assert report.skipped == [f"line {number}: is bad" for number in range(20)]
    assert report.unread == [f"{number}.doc" for number in range(20)]
    assert report.told_unread() == "25 files not read: 0.doc, 1.doc, 2.doc and 22 more"


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "1 file not read: 0.doc"),
        (3, "3 files not read: 0.doc, 1.doc, 2.doc"),
        (4, "4 files not read: 0.doc, 1.doc, 2.doc and 1 more"),
    ],
)
def test_three_unread_files_are_named(count: int, told: str) -> None:
    report = SkippedRows()
    report.leave_unread(f"{number}.doc" for number in range(count))
    assert report.told_unread() == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the mill", ""),
        ("a\udc80", "invalid UTF-8 (byte 0x80 at character 2)"),
        ("\udcff", "invalid UTF-8 (byte 0xFF at character 1)"),
        ("\udc7f", "invalid Unicode (lone surrogate U+DC7F at character 1)"),
        ("\udd00", "invalid Unicode (lone surrogate U+DD00 at character 1)"),
    ],
)
def test_a_text_that_is_no_unicode_is_told_with_its_place(text: str, told: str) -> None:
    assert invalid_text(text).split(";")[0] == told


def test_values_are_named_by_their_type() -> None:
    day = datetime.date(2020, 5, 3)
    values = ["a", [1], (1,), {"a": 1}, True, 1, 1.5, b"a", None, day]
    assert [kind_of(value) for value in values] == [
        "a string", "a list", "a list", "an object", "a boolean", "a number", "a number", "bytes", "null",
        "a date or time",
    ]  # fmt: skip
    assert [pluralize(count, "row") for count in (0, 1, 2, 1200)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,200 rows",
    ]


def test_twelve_columns_are_named_up_to_forty_letters_each() -> None:
    assert list_names([]) == "none"
    assert list_names(["a" * 40, "b" * 41]) == repr("a" * 40) + ", " + repr("b" * 40 + "...")
    assert "more" not in list_names(map(str, range(12)))
    assert list_names(map(str, range(13))).endswith("'11' and 1 more")


def test_values_become_those_of_json() -> None:
    assert plain(float("nan")) is plain(float("inf")) is None
    assert plain([1.5, True, 3, None, ("a",)]) == [1.5, True, 3, None, ["a"]]
    assert plain({1: datetime.date(2020, 5, 3)}) == {"1": "2020-05-03"}
    assert plain(decimal.Decimal("1.50")) == "1.50"
    assert plain(datetime.timedelta(hours=1)) == "1:00:00"
    assert plain("a\ud800") == "a\\ud800"
    assert plain(b"a") == "b'a'"
