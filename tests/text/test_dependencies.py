"""A unit that points to a neighbour is not chosen without it."""

import pytest

from precis_text.partners import Partners
from precis_text.selection import Dependencies
from precis_text.units import extraction_units

FIRST, LAST = "The wall of the town moved.", "Snow fell on the road."
DEMAND = "You must send us the following papers by 3 May, or we will close the claim:"
HEAD = "The council of the old town and of the whole harbour decided this on the day:"


def depends(*texts: str) -> Dependencies:
    units = extraction_units("\n\n".join(texts))
    assert len(units) == len(texts), [unit.text for unit in units]
    return Dependencies.of(units, Partners.of(units))


@pytest.mark.parametrize(
    ("texts", "free", "needs"),
    [
        ((FIRST, LAST), {0, 1}, [None, None]),
        ((FIRST, "It rose again in May.", LAST), {0, 2}, [None, 0, None]),
        ((FIRST, HEAD, "The quay is built."), {0, 2}, [None, 2, None]),
        ((FIRST, DEMAND, "- It rose again."), {0, 1}, [None, None, 1]),
        ((FIRST, DEMAND.replace(" by 3 May", ""), "- Proof of it."), {0, 2}, [None, 2, None]),
        ((FIRST, HEAD), {0}, [None, 1]),
        ((FIRST, HEAD, "It rose again in May."), {0}, [None, 1, 1]),
        ((FIRST, HEAD.replace("The council", "It"), LAST), {0, 2}, [None, 1, None]),
        ((FIRST, "Thus:", LAST), {0, 2}, [None, None, None]),
    ],
)
def test_a_unit_needs_what_it_refers_to_or_announces(
    texts: tuple[str, ...], free: set[int], needs: list[int | None]
) -> None:
    found = depends(*texts)
    assert ({*found.free}, [*found.needs]) == (free, needs)


def test_a_unit_that_refers_back_is_paired_with_what_may_be_chosen() -> None:
    assert depends(FIRST, "It rose again in May.", "This made it famous.").pairs == [(0, 1)]
    assert depends(FIRST, HEAD, "It rose again in May.").pairs == [(1, 2)]
    assert depends("Thus:", "It rose again in May.", LAST).pairs == []


def test_some_unit_is_free_in_every_document() -> None:
    assert depends("Thus:").free == depends("Thus:", "North | 12 | 14").free == {0}
    told = depends("Walls", "It rose again in May:")
    assert ({*told.free}, [*told.needs]) == ({1}, [None, None])
