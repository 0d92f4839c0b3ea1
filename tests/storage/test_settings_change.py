"""Resumed work has the settings that it was started with; the first that differs is named."""

import pytest

from precis.storage.settings_change import first_change, refuse_change
from precis_text.errors import UserError


def test_the_first_change_is_named_with_both_values_and_the_remedy() -> None:
    before = {"model": "a", "train": {"seed": 1, "steps": 4}}
    with pytest.raises(UserError, match=r"^runs/a was started with train\.seed=1, now 2; start again$"):
        refuse_change(
            "runs/a", before, {"model": "a", "train": {"seed": 2, "steps": 5}}, remedy="start again"
        )


@pytest.mark.parametrize("before", [{}, {"seed": None}])
def test_none_counts_as_absent(before: dict[str, None]) -> None:
    refuse_change("runs/a", before, {"seed": None}, remedy="")
    assert first_change(before, {"seed": 3}) == ("seed", None, 3)
    with pytest.raises(UserError, match=r"^a was started without seed, now 3; again$"):
        refuse_change("a", before, {"seed": 3}, remedy="again")
    assert first_change({"seed": 3}, before) == ("seed", 3, None)


def test_a_value_in_the_place_of_several_is_a_change_of_that_name() -> None:
    several, one = {"train": {"seed": 1}}, {"train": 3}
    assert first_change(several, one) == ("train", {"seed": 1}, 3)
    assert first_change(one, several) == ("train", 3, {"seed": 1})
    assert first_change(several, several) is None
