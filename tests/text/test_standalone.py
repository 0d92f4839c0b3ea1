"""Sentences that can be read alone, and those that need the one before them."""

import math

import pytest

from precis_text.length import make_length
from precis_text.selection import choose
from precis_text.standalone import STANDALONE_FEATURES, Readability, Told, standalone_features
from precis_text.units import TextUnit, extraction_units
from precis_text.word_patterns import WordPatterns
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


def of_unit(units: list[TextUnit], place: int, name: str) -> float:
    """Return a feature of a unit without a summary."""
    return float(
        standalone_features(units, [*map(Told.of, units)], WordPatterns(frozenset(), {}))[
            place, STANDALONE_FEATURES.index(name)
        ]
    )


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
        ("is_after", (0, 1), 1),
        ("is_first", (2,), 1),  # with itself, as a part of the group that is chosen together
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
        ("definites_new", (), 0),
        ("definites_new", (0,), 0),
        ("place", (), 0.5),
    ],
)
def test_what_the_document_said_and_the_summary_did_not(
    name: str, chosen: tuple[int, ...], value: float
) -> None:
    assert feature(REPORT, 2, name, *chosen) == pytest.approx(value)
    assert feature(REPORT, 2, name, beside=chosen) == pytest.approx(value)


def test_a_reader_remembers_the_last_16_sentences_of_a_summary() -> None:
    many = " ".join(
        f"The mast of boat number {chr(97 + place)}{chr(98 + place)} broke there." for place in range(20)
    )
    document = f"The keel cracked. {many} The keel sank."
    assert feature(document, 21, "definites_given", 0, *range(5, 21)) == 1
    assert feature(document, 21, "definites_shown", 0, *range(6, 21)) == 1


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
        ("Stop.", "words", 1),
        ("I said that it fell.", "pointing_place", 0.4),
        ("The quay rose.", "pointing_place", 1.5),  # as if behind the end
        ("An ox and men say that it fell.", "content_before", 2),
        ("Ann Lee of Olm said it fell.", "names_before", 2.0),
        ("The quay rose", "ended", 0.0),
        ("- The quay rose.", "item", 1.0),
        ("Set <b> and [c] now", "marks", 4 / 5),
        ("The quay – old and grey -- rose.", "dashes", 2 / 6),
        ("The Big Quay rose.", "title", 0.5),  # "Quay" of "Quay" and "rose"
        ("The Big Quay.", "title", 1.0),
        ("The Quay of Olm rose.", "capitals", 2 / 5),
        ("Ann, Ben and I left.", "commas", 1 / 5),
        ("He called it “old”.", "quotation", 1.0),
        ("He called it old.", "quotation", 0.0),
        ("and the quay rose.", "small", 1.0),
        ("eBay sold the quay.", "small", 1.0),
        ("It will rain.", "verb", 1.0),
        ("Ann cracked it.", "verb", 1.0),
        ("Boats for hire", "verb", 0.0),
    ],
)
def test_what_the_trees_see(text: str, name: str, value: float) -> None:
    assert of_unit(extraction_units(text), 0, name) == value


TALK = [
    TextUnit(text, 0, 0, heading=not speaker, speaker=speaker)
    for speaker, text in (
        ("", "Night ferry"),
        ("Ann", "Ann: The ferry needs another repair."),
        ("Ann", "Repairs cost the harbour thousands."),
        ("Ben", "Ben: The repairers left the harbour."),
        ("Ben", "The icy night was up."),
        ("Ben", "It is a ferry."),
        ("Ann", "Ann: It is."),
        ("Ann", "It sank."),
    )
]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("speaker", [0, 1, 1, 1, 1, 1, 1, 1]),
        ("other_speaker", [0, 1, 0, 1, 0, 0, 1, 0]),
        ("starts_turn", [0, 1, 0, 1, 0, 0, 1, 0]),
        ("below_heading", [0, 1, 0, 0, 0, 0, 0, 0]),
        ("first", [1, 0, 0, 0, 0, 0, 0, 0]),
        # content words: night ferry, ferry needs repair, repairs cost harbour thousands, repairers left harbour,
        # night icy, ferry, none, sank; those of the first three units are known
        ("known_at_start", [1, 1, 1, 2 / 3, 1 / 2, 1, 0, 0]),
        ("new", [1, 2 / 3, 3 / 4, 1 / 3, 1 / 2, 0, 0, 1]),
        ("like_before", [0, 1 / 3, 1 / 4, 2 / 3, 0, 0, 0, 0]),
        ("pattern", [2, 12, 5, 5, 5, 5, 5, 5]),
    ],
)
def test_what_a_unit_has_of_the_units_around_it(name: str, values: list[float]) -> None:
    weights = {"after:.": 1.0, "after:": 2.0, "spoken": 4.0, "after:c": 8.0}
    found = standalone_features(TALK, [*map(Told.of, TALK)], WordPatterns(frozenset(), weights))
    assert found[:, STANDALONE_FEATURES.index(name)].tolist() == pytest.approx(values)


def test_who_speaks_first_starts_a_turn() -> None:
    assert of_unit(TALK[1:], 0, "starts_turn") == 1


@pytest.mark.parametrize(
    ("place", "name", "chosen", "value"),
    [
        (1, "given_lately", (), 1 / 3),
        (2, "given_lately", (), 1 / 4),
        (3, "given_lately", (), 2 / 3),
        (3, "given_lately", (2,), 0),
        (4, "given_lately", (), 0),  # "night" was said four units before
        (4, "given", (), 1 / 2),
        (5, "given", (), 1),
        (6, "given", (), 0),
        (3, "same_speaker", (), 0),
        (3, "same_speaker", (1, 2), 0),
        (4, "same_speaker", (1, 3), 1),
    ],
)
def test_what_was_just_said_and_who_said_what_the_summary_has(
    place: int, name: str, chosen: tuple[int, ...], value: float
) -> None:
    (row,) = Readability(TALK).features([(place, ())], chosen)
    assert row[STANDALONE_FEATURES.index(name)] == pytest.approx(value)
