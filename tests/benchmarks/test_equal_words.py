"""Systems at equal words: what fits, and where it comes from."""

from pathlib import Path

import pytest

from benchmarks.equal_words import cached, fitting, lead, of_lede, of_sumy, statements, tenths
from precis.generation.summarizer import NOTHING, Summary
from precis_text.words import length_in_words

_DOCUMENT = (
    "The bridge of Olm\n\nA pillar of the bridge had cracked. It rains.\n\n"
    "Engineers found the cracked pillar near the bridge in the river. Tickets cost four euros."
)


def test_units_are_taken_in_their_order_of_worth_while_they_fit() -> None:
    units = statements(_DOCUMENT)
    assert [unit.text for unit in units][:2] == ["A pillar of the bridge had cracked.", "It rains."]
    assert (
        fitting(units, [2, 0, 1, 3], 13)
        == "It rains.\nEngineers found the cracked pillar near the bridge in the river."
    )
    assert fitting(units, [2, 0], 3) == "Engineers found the"


def test_lead_ends_before_the_first_unit_that_does_not_fit() -> None:
    assert lead(_DOCUMENT, 14) == "A pillar of the bridge had cracked.\nIt rains."
    assert lead(_DOCUMENT, 3) == "A pillar of"


@pytest.mark.parametrize("kind", ["LexRank", "TextRank", "Luhn", "LSA", "SumBasic"])
def test_systems_of_sumy_choose_whole_units_without_headings(kind: str) -> None:
    pytest.importorskip("sumy", reason="sumy is not installed: pip install --group benchmarks")
    lines = of_sumy(kind)(_DOCUMENT, 16).splitlines()
    assert lines
    assert {*lines} <= {unit.text for unit in statements(_DOCUMENT)}
    assert length_in_words(" ".join(lines)) <= 16


def test_lede_keeps_the_words() -> None:
    pytest.importorskip("lede", reason="lede is not installed: pip install --group benchmarks")
    assert 0 < length_in_words(of_lede(_DOCUMENT, 16)) <= 16


def test_tenths_count_where_units_of_long_documents_begin() -> None:
    document = "word " * 3000
    places = (
        (0, 4),
        (5, 9),
        (len(document) - 5, len(document)),
        (len(document) // 2, len(document) // 2 + 4),
    )
    summary = Summary(**{**vars(NOTHING), "places": places})
    assert tenths([document, "short"], [summary, summary]) == [50, 0, 0, 0, 0, 25, 0, 0, 0, 25]


def test_a_kept_text_is_not_made_again(tmp_path: Path) -> None:
    made: list[int] = []

    def system(document: str, words: int) -> str:
        made.append(words)
        return f"{document} {words}"

    first = cached("LEAD", system, tmp_path)
    assert [first("A quay.", 3), first("A quay.", 3), first("A quay.", 4)] == [
        "A quay. 3",
        "A quay. 3",
        "A quay. 4",
    ]
    assert made == [3, 4]
    assert cached("LEAD", system, tmp_path)("A quay.", 4) == "A quay. 4"
    assert cached("Luhn", system, tmp_path)("A quay.", 4) == "A quay. 4"
    assert made == [3, 4, 4]
