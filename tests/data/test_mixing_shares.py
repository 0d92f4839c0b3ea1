"""Shares of a mixture: by size at temperature 1, alike at a high one, as T5 and mT5 write them."""

import pytest

from precis.data.mixing_shares import BySize
from precis_text.errors import UserError


def test_shares_are_powers_of_the_sizes() -> None:
    assert BySize().shares([30, 10]) == (0.75, 0.25)
    assert BySize(temperature=2).shares([90, 10]) == pytest.approx((0.75, 0.25))
    assert BySize(temperature=1e6).shares([10**9, 1]) == pytest.approx((0.5, 0.5), abs=1e-4)
    assert BySize(limit=10).shares([1000, 10]) == (0.5, 0.5)
    english, other = BySize(temperature=1 / 0.3).shares([1000, 1])
    assert english / other == pytest.approx(1000**0.3)


def test_counts_take_the_largest_part_once_and_repeat_small_ones() -> None:
    assert BySize().counts([100, 25]) == (100, 25)
    assert BySize(temperature=2).counts([100, 25]) == (100, 50)
    assert BySize(temperature=2, limit=64).counts([100, 16]) == (64, 32)


@pytest.mark.parametrize("wrong", [0.5, 0.0, -1.0, float("nan"), float("inf")])
def test_temperatures_below_one_are_refused(wrong: float) -> None:
    with pytest.raises(UserError, match=r"--temperature .*: use 1 \(by size\) or more"):
        BySize(temperature=wrong)
