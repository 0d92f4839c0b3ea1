"""Sentences that can be read alone, and those that need the one before them."""

import math

import pytest

from precis_text.length import make_length
from precis_text.selection import choose
from precis_text.standalone import STANDALONE_FEATURES, Readability
from precis_text.unit_worth import read_worth
from precis_text.units import extraction_units
from tests.text.test_selection import Read

REPORT = (
    "The harbour office of Olm closed the old bridge in March because a pillar had cracked. "
    "It does that whenever they think this is really needed. "
    "Engineers of the harbour office will replace the cracked pillar of the bridge by June. "
    "So we kind of did that too, I guess."
)


def shares(document: str, *chosen: int) -> list[float]:
    units = extraction_units(document)
    return Readability(units).shares([(place, ()) for place in range(len(units))], chosen)


def feature(document: str, place: int, name: str, *chosen: int, beside: tuple[int, ...] = ()) -> float:
    units = extraction_units(document)
    (row,) = Readability(units).features([(place, beside)], chosen)
    return float(row[STANDALONE_FEATURES.index(name)])


def test_what_names_its_subject_can_be_read_alone_better_than_what_points_to_it() -> None:
    alone = shares(REPORT)
    assert min(alone[0], alone[2]) > max(alone[1], alone[3]) + 0.2


def test_after_the_sentence_before_it_a_sentence_can_be_read_better() -> None:
    alone, after = shares(REPORT), shares(REPORT, 0, 1, 2, 3)
    assert all(0 < one < 1 for one in alone)
    assert after[1] > alone[1]
    assert after[3] > alone[3]


def test_other_languages_than_english_are_not_judged() -> None:
    german = "Das Hafenamt schloss die alte Brücke im März. Es tut das, wenn sie das für nötig halten."
    assert shares(german) == [1.0, 1.0]


def test_only_chosen_units_before_a_unit_help_to_read_it() -> None:
    assert shares(REPORT, 3)[0] == shares(REPORT)[0]
    assert feature(REPORT, 2, "is_first", 3) == 1
    assert feature(REPORT, 2, "is_first", 0) == 0


@pytest.mark.parametrize(
    ("name", "chosen", "value"),
    [
        ("is_after", (), 0),
        ("is_after", (0,), 0),
        ("is_after", (1,), 1),
        ("gap", (), -1),
        ("gap", (0,), math.log(3)),
        (
            "given",
            (),
            5 / 8,
        ),  # harbour, office, cracked, pillar, bridge; "engineers", "replace" and "June" are new
        ("given", (0,), 0),
        ("shown", (0,), 5 / 8),
        ("definites", (), 3),
        ("definites_given", (), 3),
        ("definites_shown", (0,), 3),
        ("definites_new", (0,), 0),
        ("place", (), 0.5),
    ],
)
def test_what_the_document_said_and_the_summary_did_not(
    name: str, chosen: tuple[int, ...], value: float
) -> None:
    assert feature(REPORT, 2, name, *chosen) == pytest.approx(value)
    assert feature(REPORT, 2, name, beside=chosen) == pytest.approx(value)


def test_a_reader_remembers_what_was_shown_last_in_a_long_summary() -> None:
    many = " ".join(
        f"The mast of boat number {chr(97 + place)}{chr(98 + place)} broke there." for place in range(20)
    )
    assert feature(f"The keel cracked. {many} The keel sank.", 21, "definites_given", *range(21)) == 1
    assert feature(f"The keel cracked. {many} The keel sank.", 21, "definites_shown", *range(0, 21, 2)) == 1


def test_of_two_sentences_with_one_score_the_one_that_can_be_read_alone_is_chosen() -> None:
    units = extraction_units(
        "Engineers of the harbour office will replace the cracked pillar of the bridge. Ann asked them about the time. "
        "Whenever he needs one of those, somebody else will really have to bring it down there."
    )
    for scores in ([0.5, 0.1, 0.5], [0.5, 0.1, 0.6]):
        assert choose(Read(units), scores, make_length(words=16), words=16) == [0]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("the cat of the house", "the", 0.4),
        ("I said that it fell.", "pointing_place", 0.4),
        ("Ann Lee of Olm said it fell.", "names_before", 2.0),
        ("The quay rose", "ended", 0.0),
        ("- The quay rose.", "item", 1.0),
        ("and the quay rose.", "small", 1.0),
    ],
)
def test_what_the_trees_see(text: str, name: str, value: float) -> None:
    assert feature(text, 0, name) == value


def test_what_readers_understand_counts_less_in_a_short_summary_of_prose() -> None:
    def worth(limit: float, *, is_spoken: bool = False) -> float:
        return read_worth(0.8, 0.5, limit=limit, is_spoken=is_spoken)

    assert (worth(49), worth(50), worth(49, is_spoken=True)) == (0.2, 0.05, 0.05)
