"""Each factor can be switched off, and one that matters changes an extract."""

import numpy as np
import pytest

from benchmarks.worth_factors import OFF, Scored, table, without
from precis.generation.model_location import default_model
from precis_text.unit_ranker import UnitRanker

DOCUMENT = "\n".join(
    [
        "Ann: Um, so the uh pump of the village costs four hundred euros.",
        "Ben: The wall keeps water in and",
        "Ann: We decided that the club buys the pump in May.",
        "Ben: Yeah, good.",
    ]
)


@pytest.fixture(scope="module")
def ranker() -> UnitRanker:
    return UnitRanker.load(default_model())


@pytest.mark.parametrize("name", OFF)
def test_a_factor_is_off_inside_and_back_outside(name: str) -> None:
    place, attribute, value = OFF[name]
    before = getattr(place, attribute)
    with without(name):
        assert getattr(place, attribute) is value
    assert getattr(place, attribute) is before


def test_pauses_are_in_the_extract_if_they_are_not_left_out(ranker: UnitRanker) -> None:
    assert "Um" not in Scored.of(DOCUMENT, 30, ranker).extract()
    with without("pauses are left out"):
        assert "Um, so the uh pump" in Scored.of(DOCUMENT, 30, ranker).extract()


def test_the_table_compares_with_the_present_choice() -> None:
    found = {name: (["a", "b"], np.array([2.0, 3.0])) for name in (None, *OFF)}
    found["a question"] = (["a", "c"], np.array([2.0, 2.0]))
    rows = {row.split(" | ")[0].strip("| "): row for row in table([found]).splitlines()}
    assert rows["a question"] == "| a question | 2.00 | +0.5 (+0.0 to +1.0) | 1 | 0 | 50% |"
    assert rows["nothing"] == "| nothing | 2.50 | +0.0 (+0.0 to +0.0) | 0 | 0 | 0% |"
