"""A text in UTF-16 without its mark is known by its zeros, which stand in one place of each letter only."""

import pytest

from precis_text.documents.character_sets import _unmarked


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("The mill turns.".encode("utf-16-le"), "utf-16-le"),
        ("The mill turns.".encode("utf-16-be"), "utf-16-be"),
        ("The \0mill turns.".encode("utf-16-le"), ""),
        ("The \1mill turns.".encode("utf-16-le"), "utf-16-le"),
        (b"The mill turns on Friday.", ""),
        ("A mill.".encode("utf-16-le"), ""),  # too few letters to tell
        ("The mill turns.".encode("utf-16-le")[:-1], ""),
    ],
)
def test_every_second_byte_is_zero_and_no_other(content: bytes, kind: str) -> None:
    assert _unmarked(content) == kind
