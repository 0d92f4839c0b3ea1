"""What of a document is no whole: announcements, halves of quotations, questions, the rest of a cut sentence."""

from dataclasses import replace

import pytest

from precis_text.cohesion import announces, asks, goes_on, halves, holed, is_aim, is_part, needs_next, unended
from precis_text.units import TextUnit


def unit(text: str, *, heading: bool = False) -> TextUnit:
    speaker = text.partition(":")[0] if text.startswith(("Ann:", "bob:")) else ""
    return TextUnit(text, 0, len(text), heading, speaker=speaker)


@pytest.mark.parametrize(
    "text",
    [
        "In a clone of this repository:",
        "适用于：",
        "\u201cGet into debt at your peril!",
        "I said so before.\u201d",
        'He said "come in.',
        "The hall (built by Ann",
        "We released the first version of our [API",
        "\u201eKomm herein, sagte sie.",
    ],
)
def test_short_announcements_and_halves_of_quotations_are_parts(text: str) -> None:
    assert is_part(unit(text))


@pytest.mark.parametrize(
    "text",
    [
        "To enable vector support on an old machine, you must do two things:",
        "\u201cCome in,\u201d he said.",
        "\u201eKomm herein\u201c, sagte sie.",
        "\u201eWejd\u017a\u201d, powiedzia\u0142a.",
        "\u201dKom in\u201d, sa hon.",
        "1) Meet at eight.",
        "Ann: he said \u201ccome in :(",
        "The hall (built by Ann) is cold.",
        "The hall [of Ann] is cold :]",
        "The rate is in the half-open range [0.0, 1.0) here.",
    ],
)
def test_long_announcements_whole_quotations_items_and_turns_are_no_parts(text: str) -> None:
    assert not is_part(unit(text))


@pytest.mark.parametrize(
    "text", ["It works as follows.", "Below are hints.", "The parts:", "The map is shown below."]
)
def test_a_unit_that_points_to_the_next_one_announces_it(text: str) -> None:
    assert announces(unit(text))
    assert not announces(unit("The quay follows the wall below the hill."))


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("Before we pay, you must send us three of these papers within 14 days:", True),
        ("Bitte senden Sie uns dazu bis zum 3. Mai die folgenden Papiere:", True),
        ("Se le requiere para que en el plazo de diez días aporte los papeles:", True),
        ("Après cela, nous vous proposons une somme de 3 114 euros pour le mur :", True),
        ("La preghiamo di mandarci entro il 3 maggio i fogli che seguono:", True),
        ("You must do these three things in the order that is given here:", False),
        ("We offer pumps from 30 euros on, and the following kinds of walls:", False),
        ("You must pay by 3 May:", False),
        ("Nous vous proposons une visite du mur et du port avec le guide :", False),
    ],
)
def test_a_demand_with_its_deadline_and_an_offer_with_its_amount_say_something_without_a_list(
    text: str, is_told: bool
) -> None:
    assert announces(unit(text))
    assert needs_next(unit(text)) is not is_told


def test_a_small_letter_goes_on_with_a_sentence_that_nothing_ended() -> None:
    cut = unit("This lets you make spans and")
    assert goes_on(cut, unit("metrics for your code."))
    assert not goes_on(cut, unit("Metrics for your code."))
    assert not goes_on(cut, unit("bob: see you there"))
    assert not goes_on(unit("precis", heading=True), unit("precis summarizes documents."))
    assert not goes_on(unit("It rains."), unit("precis summarizes documents."))


def test_a_question_of_the_text_asks_and_one_of_a_dialogue_does_not() -> None:
    assert asks(unit("Who came?"))
    assert asks(unit("\u201cWho came?\u201d"))
    assert not asks(unit("Nobody came."))
    assert not asks(unit("Ann: Who came?"))


def test_a_half_starts_small_in_a_text_of_capitals() -> None:
    texts = ["The bridge is closed.", "and the river rose.", *["It rains today."] * 8]
    units = [TextUnit(text, 0, len(text)) for text in texts]
    assert halves(units) == [False, True, *[False] * 8]
    small = [TextUnit("so we meet at six", 0, 17)] * 3
    assert halves(small) == [False] * 3


@pytest.mark.parametrize(
    ("text", "is_holed"),
    [
        ("With , we find it.", True),
        ("This was shown by.", True),
        ("It is greater than.", True),
        ("He stood by it.", False),
        ("As shown in, the rate rose.", True),
        ("The code for provides a lock.", True),
        ("It rose with of the old wall.", True),
        ("It lies in the, where it rains.", True),
        ("The power of the whole field may be written as", True),
        ("For the field of the first wave, the power is", True),
        ("We may then write for the power of the wave,", True),
        ("The response of plants to cold was first seen in a study by.", True),
        *[
            (good, False)
            for good in (
                "Who we are",
                "He wrote as well as you",
                "The shop I work for is closed.",
                "The car I paid for is red.",
                "The ship NATO waits for has sunk.",
                "The shop dad works for is closed.",
                "The boat paid for is red.",
                "This I long for is gone.",
                "The knife was found in, or near, the car.",
                "The rule is defined in, and applies to, all member states.",
                "It was discussed by, among others, the board.",
                "He was last seen in, of all places, Rome.",
                "It was reported by, say, ten people.",
                "She was born in the, then, British town.",
                "It was won by of course Ann.",
                "He came with of all people Ann.",
                "A man of will power won.",
                "A question of will has arisen.",
                "A can of must is open.",
                "The days passed by.",
                "The harbour has a hotel near by.",
                "Aarhus er Danmarks næststørste by.",
                "Thanks for stopping by.",
                "It is the rule that we live by.",
                "- Ben agreed to come back to the board in June on that",
                "a) the seller delivers the boat in May,",
            )
        ],
    ],
)
def test_a_formula_or_a_source_that_is_lost_leaves_a_hole(text: str, is_holed: bool) -> None:
    texts = [text, *["It rains, and it pours."] * 30]
    assert holed([TextUnit(each, 0, len(each)) for each in texts]) == [is_holed, *[False] * 30]


def test_notes_without_end_marks_lost_nothing() -> None:
    notes = ["Ann does not know who the owners of the hall are", "We shall all look into that", "Ann came by"]
    assert not any(holed([*map(unit, notes)]))


def test_headings_and_asides_do_not_decide_whether_sentences_have_an_end_mark() -> None:
    told = [
        unit("The mill turns."),
        unit("It grinds."),
        unit("It rains."),
        unit("The wheel is"),
        unit("- flour and salt"),
    ]
    others = [unit("Opening times", heading=True), replace(unit("Photo: the quay"), aside=True)] * 4
    assert unended([*told, *others])[:5] == [False, False, False, True, False]


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("Next, we measured the roots of the plants in the wet soil.", True),
        ("To test the new pump, the water of the well was measured.", True),
        ("In order to find out why, we examined the wall from within.", True),
        ("The water of both wells was carefully collected in a tank.", True),
        ("Next, we measured the roots and found them dry.", False),
        ("To test the new pump, we measured the water, which rose by 3 cm.", True),
        ("The water of both wells was measured at 14 litres.", False),
        ("No water was measured in any of the two wells.", False),
        ("The water of both wells was sold.", False),
        ("The water of both wells was tested and is unsafe to drink.", False),
        ("The mayor and two aides were tested positive on Friday.", False),
    ],
)
def test_what_was_done_is_no_finding(text: str, is_said: bool) -> None:
    assert is_aim(unit(text)) is is_said
    assert not is_aim(replace(unit(text), speaker="Ann"))
