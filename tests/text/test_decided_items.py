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
        "- Boat and sails are sold in May.": 0.8,
        "- The new mast costs 400 euros.": 0.8,
        "- Ann asks the bank for a loan.": 0.4,
    }


@pytest.mark.parametrize(
    "head",
    [
        *HEADS,
        "After the break we agreed:",
        "At last the following was decided:",
        "Es wurde Folgendes beschlossen:",
    ],
)
def test_the_head_of_a_list_may_be_a_heading_or_end_with_a_colon(head: str) -> None:
    document = MINUTES.replace("Decisions:", head)
    assert shares(document)["- Boat and sails are sold in May."] == 0.8


def test_the_head_of_a_list_may_be_a_line_above_its_items_without_a_colon() -> None:
    document = MINUTES.replace("Boat and sails are", "The boat is").replace(
        "Ann asks the bank for", "Ann gets"
    )
    assert shares(document.replace("Decisions:", "Decisions").replace("To do:", "To do")) == {
        "- The boat is sold in May.": 0.8,
        "- The new mast costs 400 euros.": 0.8,
        "- Ann gets a loan.": 0.4,
    }
    assert shares(document.replace("Decisions:", "Agreed.")) == {}


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
        ("Al final decidimos vender el barco.", True),
        ("Nach kurzer Aussprache wurde beschlossen, das Boot zu verkaufen.", True),
        ("Decision: Ann sells the boat for 400 euros.", True),
        ("Beschluss 3: Anna verkauft das Boot für 400 Euro.", True),
        ("We decided not to sell the boat.", True),
        ("The committee agreed to sell the boat.", True),
        ("Der Vorstand beschließt einstimmig den Verkauf.", True),
        ("Le conseil approuve la vente du bateau.", True),
        ("La junta aprobó la venta del barco.", True),
        ("Wir haben entschieden, das Boot nicht zu verkaufen.", True),
        ("Nous avons décidé de ne pas vendre le bateau.", True),
        ("Se acordó no vender el barco.", True),
        ("Tras un debate, se acuerda por mayoría vender el barco.", True),
        ("Se acuerda no vender el barco.", True),
        ("Se aprueban las cuentas del barco con un voto en contra.", True),
        ("Se nombra presidenta a la Sra. Ruiz.", True),
        ("Se decide vender el barco.", True),
        ("Se rechaza la propuesta de vender el barco.", True),
        ("Il est décidé de vendre le bateau.", True),
        ("Ana se acuerda de su viejo barco.", False),
        ("Ana se acordó de su viejo barco.", False),
        ("Ana se decidió a vender el barco.", False),
        ("Se acuerda del barco de su abuela.", False),
        ("Se aprueba cada año la venta del barco.", False),
        ("Se decide cada mes si se vende el barco.", False),
        ("Have we agreed on the price of the boat?", False),
        ("We talked about the price of the boat.", False),
    ],
)
def test_what_a_note_says_was_agreed_is_worth_more(said: str, is_told: bool) -> None:
    note = "At the meeting the tea was cold. "
    assert (shares(f"{note}\n{said}").get(said) == 0.9) is is_told
    assert shares(500 * "Tea. " + note + said) == shares(f"The tea was cold.\n{said}") == {}


@pytest.mark.parametrize(
    "said",
    [
        "It would have been better if we agreed on a date.",
        "Wir haben am Montag noch nichts beschlossen.",
        "No se acordó vender el barco.",
        "We had agreed to sell the boat, and it is gone.",
        "At that meeting we decided to sell the boat.",
        "We agreed last year that Ann sells the boat.",
        "The committee decided in 2019 to sell the boat.",
        "The committee had decided to sell the boat.",
        'Ann read aloud: "It was agreed to sell the boat."',
        "“We decided to sell it,” Ann said.",
    ],
)
def test_what_was_not_agreed_or_long_ago_or_by_others_is_worth_no_more(said: str) -> None:
    assert shares(f"At the meeting the tea was cold.\n{said}") == {}


def test_minutes_of_time_name_no_meeting() -> None:
    said = "We agreed to sell the boat."
    assert (
        shares(f"The tea was cold within ten minutes.\n{said}")
        == shares(f"Minutes later it rained.\n{said}")
        == {}
    )
    assert shares(f"Minutes, 4 May\n\nThe tea was cold.\n{said}") == {said: 0.9}


@pytest.mark.parametrize("head", ["Rejected:", "Not decided:", "Wishes"])
def test_another_head_ends_the_list(head: str) -> None:
    document = MINUTES.replace("To do:", head)
    assert shares(document.replace("Minutes of", "About")) == {}
    assert shares(document) == {
        "- Boat and sails are sold in May.": 0.8,
        "- The new mast costs 400 euros.": 0.8,
    }


@pytest.mark.parametrize(
    "document",
    [
        "The crane is old and red.\n\nResolved:\n- A typo in the help.\n\nUsers must run the migration first.",
        "# Manual\n\n## Resolutions\n\n- 1920 x 1080 at 60 Hz\n",
        "* Introduction\n* Decisions\n* Next steps\n\nThe crane is old.",
    ],
)
def test_release_notes_manuals_and_contents_list_no_decisions(document: str) -> None:
    assert shares(document) == {}


@pytest.mark.parametrize(
    "end", ["Decisions:", "## Decisions", "Decisions:\n\nAction items:\n", "- [ ] x\n\n## To do"]
)
def test_a_head_without_a_list_is_never_shown(end: str) -> None:
    for form in ("paragraph", "tldr", "key-points", "headline", "teaser", "outline", "minutes"):
        told = precis.summarize(f"At the meeting the tea was cold. The cake was gone.\n\n{end}\n", type=form)
        assert form in ("outline", "minutes") or "ecisions" not in told


def test_a_second_sentence_of_an_item_does_not_end_the_list() -> None:
    document = MINUTES.replace("sold in May.", "sold in May. Cem signs for it.")
    assert shares(document)["- The new mast costs 400 euros."] == 0.8


def test_numbered_decisions_count_although_their_numbers_are_not_shown() -> None:
    document = MINUTES.replace("- Boat", "1. Boat").replace("- The new", "2. The new")
    assert shares(document) == {
        "Boat and sails are sold in May.": 0.8,
        "The new mast costs 400 euros.": 0.8,
        "- Ann asks the bank for a loan.": 0.4,
    }


def test_a_short_summary_has_the_decisions() -> None:
    told = precis.summarize(MINUTES, words=32).splitlines()
    assert told[-2:] == ["- Boat and sails are sold in May.", "- The new mast costs 400 euros."]


def test_a_summary_without_a_length_has_room_for_all_decisions_and_eighty_words_of_them_at_most() -> None:
    assert "400 euros" in precis.summarize(MINUTES)
    units = extraction_units(MINUTES)
    sizes = [len(unit.text.split()) for unit in units]
    assert decided_words(units, sizes) == 8 + 7
    assert decided_words(units, [50] * len(units)) == 80
    units = extraction_units("At the meeting the tea was cold.\nWe agreed to sell the boat.")
    assert decided_words(units, [7, 6]) == 6
