"""Kinds of sentences that cannot be read alone; a neighbour that is chosen too excuses what points to it."""

import pytest

from benchmarks.dangling import KINDS, kinds_of
from precis_text.units import TextUnit

EXAMPLES = {
    "points back": "This was the reason.",
    "points back inside": "We prefer the latter plan.",
    "answer": "Yes, on Monday.",
    "question": "Who pays?",
    "colon": "The town needs three things:",
    "filler": "The roof is, um, open.",
    "transcriber's sign": "The roof is open {vocalsound} now.",
    "reference number": "The roof is open [12].",
    "list number": "2. Open the roof.",
    "broken formula": "The area is =, as before.",
}


def unit(text: str) -> TextUnit:
    return TextUnit(text, 0, len(text))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found(kind: str) -> None:
    assert kind in [found for found, _ in kinds_of([unit(EXAMPLES[kind])], [None])]


def test_a_sentence_with_content_is_of_no_kind() -> None:
    assert not [*kinds_of([unit("The town opens the roof in May.")], [None])]


def test_a_chosen_neighbour_excuses_what_points_to_it_but_not_a_filler() -> None:
    first, second = unit("Who pays, um, for it?"), unit("It is the town.")
    assert [kind for kind, _ in kinds_of([first, second], [None, first])] == ["filler"]
