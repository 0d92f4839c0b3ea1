"""An extract has room for what its abbreviations mean, and is within its cap."""

from dataclasses import dataclass

import pytest

from precis_text.extracts import extract_units
from precis_text.length import Length, make_length
from precis_text.selection import join_units
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words

PAPER = """Sites of alternative polyadenylation (APA) are many in the genes of each mouse.
APA changes with the age of a mouse and with its food.
The food of the mice was bought from a firm in Leeds.
Old mice ate less of it than young ones."""


@dataclass(frozen=True)
class _Read:
    units: list[TextUnit]

    @property
    def tokens(self) -> list[int]:
        return [length_in_words(unit.text) for unit in self.units]


@pytest.fixture(autouse=True)
def _unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scores alone choose."""
    monkeypatch.setattr("precis_text.standalone.language_of", lambda _: None)


def extract(length: Length, scores: tuple[float, ...] = (0.1, 0.9, 0.8, 0.7), document: str = PAPER) -> str:
    read = _Read(extraction_units(document))
    units = extract_units(document, read, scores, length, words=30, count=length_in_words)
    return join_units(document, units)


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_units_leave_room_for_what_their_abbreviations_mean(unit: str) -> None:
    told = "APA [alternative polyadenylation] changes with the age of a mouse and with its food."
    full = extract(make_length(words=28) if unit == "words" else make_length(tokens=28))
    assert full.startswith(told)
    assert "Leeds" in full
    short = extract(make_length(words=24) if unit == "words" else make_length(tokens=24))
    assert short == f"{told}\nOld mice ate less of it than young ones."
    assert length_in_words(short) <= 24


def test_meanings_that_would_take_much_of_a_short_extract_are_left_out() -> None:
    assert extract(make_length(words=12)) == "APA changes with the age of a mouse and with its food."


def test_an_extract_in_sentences_or_without_a_cap_has_all_meanings() -> None:
    for length in (make_length(sentences=2), make_length()):
        assert extract(length).startswith("APA [alternative polyadenylation] changes")


def test_the_best_unit_stays_also_if_its_abbreviation_has_no_room() -> None:
    best = (0.1, 0.9, 0.2, 0.2)
    assert extract(make_length(words=12), best) == "APA changes with the age of a mouse and with its food."
    assert extract(make_length(words=13), best) == "APA changes with the age of a mouse and with its food."


def test_a_choice_that_is_much_shorter_or_too_short_is_not_taken() -> None:
    second = "The food of the mice was bought from a firm in Leeds."
    first = f"APA changes with the age of a mouse and with its food.\n{second}"
    assert extract(make_length(words=24), document=PAPER.replace(" than young ones", "")) == first
    assert extract(make_length(words=24, min_words=24)) == first
