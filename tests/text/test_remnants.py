"""Units that state nothing by themselves."""

import pytest

from precis_text.remnants import halves, is_remnant, remnants
from precis_text.units import TextUnit


@pytest.mark.parametrize(
    "text",
    [
        "© Copyright Olm Corp. 2014.",
        "Copyright (c) 2019 the authors. All rights reserved.",
        "Smith, J. A postmortem for a bridge. Comm. ACM 12, 8 (1969).",
        "[12] Lee, A. B., Olm, C. Bridges and rivers. J. Hydrol. 12(3), 45–67, 2004.",
        "doi:10.1000/182",
        "Table 2: Characteristics of two clusters",
        "Figure 1. The bridge from above.",
        "Appendix C: Track geometry record, kilometre 22",
        "Posted: Thursday 3 May",
        "Sent: 11 March 2026 16:42",
        "To get started with swimming, you first need these things:",
    ],
)
def test_what_has_the_form_of_a_remnant_is_one(text: str) -> None:
    assert is_remnant(text)


@pytest.mark.parametrize(
    "text",
    [
        "Smith said in 1969 that the bridge was safe.",
        "J. Smith built 12 (8 of them new) bridges.",
        "The copyright of the report belongs to the council, which gave all rights to the town.",
        "Table 2 shows what the clusters have in common.",
        "Ann: We meet at six.",
        "To repair the bridge takes nine weeks: the pillar comes first.",
        "In 2014 the yield rose by 12 (3) percent, as Lee et al. found.",
    ],
)
def test_a_statement_is_none(text: str) -> None:
    assert not is_remnant(text)


def _units(*texts: str) -> list[TextUnit]:
    return [TextUnit(text, 0, len(text), heading=not text.endswith(".")) for text in texts]


def test_the_sentences_of_a_reference_are_remnants_together() -> None:
    texts = (
        "It rains.",
        "Smith, J.",
        "A postmortem for a bridge.",
        "Comm.",
        "ACM 12, 8 (1969).",
        "Ann sings.",
    )
    assert remnants(_units(*texts)) == [False, True, True, True, True, False]
    names = ("Smith, J. agreed.", "The bridge was old.", "It rains.", "Ann sings.")
    assert remnants(_units(*names)) == [False] * 4


def test_what_stands_below_a_heading_of_references_is_a_remnant() -> None:
    texts = ("Results", "The bridge held.", "7. References", "Bridges and rivers.", "Annex", "It rains.")
    assert remnants(_units(*texts)) == [False, False, True, True, False, False]


def test_a_half_begins_small_in_a_text_of_capitals() -> None:
    texts = ["The bridge is closed.", "and the river rose.", *["It rains today."] * 8]
    units = [TextUnit(text, 0, len(text)) for text in texts]
    assert halves(units) == [False, True, *[False] * 8]
    small = [TextUnit("so we meet at six", 0, 17)] * 3
    assert halves(small) == [False] * 3
