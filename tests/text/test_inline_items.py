"""Items of a list within a line: markers of one form that count up, or bullets."""

from itertools import pairwise

import pytest

from precis_text.inline_items import item_starts


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("1. The quay. 2. The wall.", ["1. The quay. ", "2. The wall."]),
        ("1. The quay.", []),
        ("1. The quay 2. The wall 3. The mill", ["1. The quay ", "2. The wall ", "3. The mill"]),
        ("5. The quay. 6. The wall.", ["5. The quay. ", "6. The wall."]),
        ("Two are left: 1) The quay 2) The wall", ["1) The quay ", "2) The wall"]),
        ("Two are left: 5) The quay 6) The wall", []),  # neither opens the line nor counts from 1
        ("Two are left 1) The quay 2) The wall", []),
        ("1. The quay (2) The wall", []),
        ("1. The quay 3. The wall", []),
        ("a) The quay b) The wall", ["a) The quay ", "b) The wall"]),
        ("(a) The quay (b) The wall", ["(a) The quay ", "(b) The wall"]),
        ("1. One. 2. Two. 1. Three. 2. Four.", ["1. One. ", "2. Two. ", "1. Three. ", "2. Four."]),
        ("1. One. a) Two. b) Three. 2. Four.", ["1. One. ", "a) Two. ", "b) Three. ", "2. Four."]),
        ("A. The quay. B. The wall.", ["A. The quay. ", "B. The wall."]),
        ("A. Lund met B. Moe.", []),  # initials
        ("1. the quay. 2. the wall.", []),
        ("Section 1. The quay. Section 2. The wall.", []),
        ("1. The quay. Section 2. The wall.", []),
        ("No. 1. The quay. 2. The wall.", []),
        (": 1. The quay 2. The wall", ["1. The quay ", "2. The wall"]),
        ("• quay • wall", ["• quay ", "• wall"]),
        ("• quay", []),
        ("quay • wall • mill", []),
    ],
)  # fmt: skip
def test_items_are_cut_where_their_markers_count_up(text: str, items: list[str]) -> None:
    starts = [*item_starts(text, counted=frozenset(["section", "no."]))]
    assert [text[start:end] for start, end in pairwise([*starts, len(text)])] == items
