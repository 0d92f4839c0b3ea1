"""Sentences that can be read alone, and those that need the one before them."""

import pytest

from precis_text.length import make_length
from precis_text.selection import choose
from precis_text.standalone import STANDALONE_FEATURES, standalone, standalone_features
from precis_text.units import extraction_units
from tests.text.test_selection import Read

REPORT = (
    "The harbour office of Olm closed the old bridge in March because a pillar had cracked. "
    "It does that whenever they think this is really needed. "
    "Engineers of the harbour office will replace the cracked pillar of the bridge by June. "
    "So we kind of did that too, I guess."
)


def test_what_names_its_subject_can_be_read_alone_better_than_what_points_to_it() -> None:
    alone, _ = standalone(extraction_units(REPORT))
    assert min(alone[0], alone[2]) > max(alone[1], alone[3]) + 0.2


def test_after_the_sentence_before_it_a_sentence_can_be_read_better() -> None:
    alone, after = standalone(extraction_units(REPORT))
    assert all(0 < one < two < 1 for one, two in zip(alone, after, strict=True))


def test_other_languages_than_english_are_not_judged() -> None:
    units = extraction_units(
        "Das Hafenamt schloss die alte Brücke im März. Es tut das, wenn sie das für nötig halten."
    )
    assert standalone(units) == ([1.0, 1.0], [1.0, 1.0])


def test_there_is_a_row_for_each_unit_without_the_column_of_its_neighbour() -> None:
    units = extraction_units(REPORT)
    assert standalone_features(units).shape == (len(units), len(STANDALONE_FEATURES) - 1)


def test_of_two_sentences_with_one_score_the_one_that_can_be_read_alone_is_chosen() -> None:
    units = extraction_units(
        "Engineers of the harbour office will replace the cracked pillar of the bridge. Ann asked them about the time. "
        "Whenever he needs one of those, somebody else will really have to bring it down there."
    )
    for scores in ([0.5, 0.1, 0.5], [0.5, 0.1, 0.6]):
        assert choose(Read(units), scores, make_length(words=16), words=16) == [0]


@pytest.mark.parametrize(
    ("text", "feature", "value"),
    [
        ("the cat of the house", "the", 0.4),
        ("I said that it fell.", "pointing_place", 0.4),
        ("Ann Lee of Olm said it fell.", "names_before", 2.0),
        ("The quay rose", "ended", 0.0),
        ("- The quay rose.", "item", 1.0),
        ("and the quay rose.", "small", 1.0),
    ],
)
def test_what_the_trees_see(text: str, feature: str, value: float) -> None:
    (row,) = standalone_features(extraction_units(text))
    assert row[STANDALONE_FEATURES.index(feature)] == value
