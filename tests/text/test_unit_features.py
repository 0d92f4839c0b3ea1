"""What the words of a unit tell without a model."""

import numpy as np

from precis.models.unit_scorer import UNIT_FEATURES
from precis_text.unit_features import unit_features


def test_there_are_as_many_facts_as_the_scorer_reads() -> None:
    assert unit_features(["Ann: Hello?", "- bread", ""], [3, 2, 1]).shape == (3, UNIT_FEATURES)


def test_facts_tell_place_form_and_shared_words() -> None:
    first, second, third = unit_features(
        ["Ann: Where is the committee?", "The committee met 12 times.", "Nobody came."], [7, 6, 3]
    )
    assert first[3] == 1
    assert third[4] == 1
    assert first[9] == 1
    assert second[9] == 0
    assert first[10] == 1
    assert second[11] == 1
    assert second[13] > 0 == third[13]  # digits
    assert second[16] > third[16]  # words that stand in other units
    assert first[17] == 1 > second[17]  # new words


def test_one_unit_alone_has_finite_facts() -> None:
    assert np.isfinite(unit_features(["?"], [1])).all()
