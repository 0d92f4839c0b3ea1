"""A unit that a reader cannot use alone is worth less than its score, a decision more."""

import pytest

from precis_text.exchanges import questions_of_answers
from precis_text.unit_worth import worths
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words


def worth(units: list[TextUnit]) -> list[float]:
    sizes = [length_in_words(unit.text) for unit in units]
    return worths(units, [1.0] * len(units), sizes, questions_of_answers(units))


def of_message(message: str) -> float:
    document = (
        f"Ann: The old pump of the village costs money.\nBen: {message}\nAnn: The new wall is dry and high."
    )
    return worth(extraction_units(document))[1]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("The pump lifts water from the well.", "Yeah, okay, that is really great, you know."),
        ("The pump lifts water from the well.", "The pump lifts water from the well and"),
        ("The pump lifts water from the well.", "The pump lifts [inaudible] from the well."),
        ("The pump lifts water from the well.", "The pump lifts."),
        ("We decided that the pump lifts water.", "We know that the pump lifts water."),
        ("We know that the pump lifts water.", "Yeah."),
    ],
)
def test_a_message_is_worth_less_if_it_says_little(better: str, worse: str) -> None:
    assert of_message(better) > of_message(worse)


@pytest.mark.parametrize(
    "chair",
    ["Let's move on to the pump and the wall of the well.", "We'll see the pump and the wall of the well."],
)
def test_who_leads_through_a_meeting_decides_nothing(chair: str) -> None:
    assert of_message(chair) == of_message("They talk about the pump and the wall of the well.")
    assert of_message("Let's buy the pump and the wall of the well.") > of_message(chair)


def test_a_line_without_an_end_is_worth_less_where_sentences_end() -> None:
    prose = "The pump lifts water. The wall keeps it in. The well is deep. "
    units = extraction_units(f"{prose}\nFor Ann and Ben of the club were\n- For Ann and Ben of the club")
    assert worth(units) == [0.3, 1.0, 0.3, 0.5, 1.0]


def test_these_samples_of_another_sentence_are_worth_less_than_named_ones() -> None:
    document = "We found that these samples fell. We found that samples of water fell in our well."
    assert worth(extraction_units(document)) == [0.5, 1.0]
