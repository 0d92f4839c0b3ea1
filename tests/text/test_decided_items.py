"""Lists of decisions and tasks of written minutes come first, below what heads them; other lists do not."""

import pytest

import precis
from precis_text.decided_items import decided_words, least_worths
from precis_text.units import extraction_units

MINUTES = """Minutes of the boat club

The club met on Monday at the quay and talked for two hours about the old boat. Twelve members were there.

Decisions:
- Boat and sails are sold in May.
- The new mast costs 400 euros.

To do:
- Ann asks the bank for a loan.

The tea was cold and the cake was gone, so that all members went home before ten.
"""
HEADS = (
    "We decided:", "Decisions", "Decisions taken:", "Agreed:", "Beschlüsse:", "Nous avons décidé :", "Acuerdos:",
)  # fmt: skip


def shares(document: str) -> dict[str, float]:
    units = extraction_units(document)
    found = zip(units, least_worths(units), strict=True)
    return {unit.text: least for unit, least in found if least}


def test_decisions_are_worth_more_than_tasks_and_other_units_nothing() -> None:
    assert shares(MINUTES) == {
        "Decisions:": 0.8,
        "- Boat and sails are sold in May.": 0.8,
        "- The new mast costs 400 euros.": 0.8,
        "To do:": 0.4,
        "- Ann asks the bank for a loan.": 0.4,
    }


@pytest.mark.parametrize("head", HEADS)
def test_the_head_of_a_list_may_be_a_heading_or_end_with_a_colon(head: str) -> None:
    document = MINUTES.replace("Decisions:", head)
    assert shares(document)["- Boat and sails are sold in May."] == 0.8


@pytest.mark.parametrize(
    "document",
    [
        MINUTES.replace("Decisions:", "Boats:"),
        MINUTES.replace("Decisions:", "Ann: Decisions:"),
        MINUTES.replace("- ", ""),
    ],
)
def test_tasks_without_decisions_turns_and_lines_without_a_mark_count_like_others(document: str) -> None:
    assert {text for text in shares(document) if text.startswith("-")} == set()


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("We agreed that Ann sells the boat for 400 euros.", True),
        ("It was decided to sell the boat for 400 euros.", True),
        ("Wir haben am Montag den Verkauf beschlossen.", True),
        ("Nous avons décidé de vendre le bateau.", True),
        ("Se acordó vender el barco.", True),
        ("Have we agreed on the price of the boat?", False),
        ("We talked about the price of the boat.", False),
    ],
)
def test_what_a_note_says_was_agreed_is_worth_more(said: str, is_told: bool) -> None:
    note = "At the meeting the tea was cold. "
    assert (shares(f"{note}\n{said}").get(said) == 0.9) is is_told
    assert shares(500 * "Tea. " + note + said) == shares(f"The tea was cold.\n{said}") == {}


def test_a_short_summary_has_the_decisions_below_their_head() -> None:
    assert precis.summarize(MINUTES, words=16) == (
        "Decisions:\n- Boat and sails are sold in May.\n- The new mast costs 400 euros."
    )


def test_a_summary_without_a_length_has_room_for_all_decisions_and_eighty_words_of_them_at_most() -> None:
    assert "400 euros" in precis.summarize(MINUTES)
    units = extraction_units(MINUTES)
    sizes = [len(unit.text.split()) for unit in units]
    assert decided_words(units, sizes) == 1 + 8 + 7
    assert decided_words(units, [50] * len(units)) == 80


def test_key_points_are_without_the_heads() -> None:
    points = precis.summarize(MINUTES, type="key-points").splitlines()
    assert "- Boat and sails are sold in May." in points
    assert not any(point.endswith(":") for point in points)
