"""Of the texts of a row only those that say something are summaries and references."""

from typing import Any

import pytest

from precis.data.pairs.pair import BadRowError, Columns, Pair, pair_of
from precis.evaluation.sacrebleu_scores import bleu
from precis_text.row import Row


def read(**values: Any) -> Pair:
    return pair_of(Row("line 1", {"document": "d", **values}), Columns(), need_summary=True)


@pytest.mark.parametrize("blank", ["", " \n", None])
@pytest.mark.parametrize("column", ["summary", "summaries"])
def test_a_blank_text_in_a_list_is_no_reference(column: str, blank: str | None) -> None:
    texts = [blank, "A long sentence here.", blank, "Another."]
    pair = read(**{"summary": "x", column: texts})
    assert pair.all_references == ("A long sentence here.", "Another.")
    assert pair.summary == ("x" if column == "summaries" else "A long sentence here.")


@pytest.mark.parametrize("references", [[""], [None], ["  ", None], []])
def test_where_all_references_are_blank_the_summary_is_the_reference(references: list[str | None]) -> None:
    assert read(summary="x", summaries=references) == Pair("d", "x")


def test_one_summary_beside_blank_ones_is_a_summary_alone() -> None:
    assert read(summary=["A long sentence here.", None]) == Pair("d", "A long sentence here.")


def test_bleu_counts_no_empty_reference() -> None:
    pair = read(summary="x", summaries=["A long sentence here.", None])
    assert "nrefs:1|" in bleu([pair.summary], [pair.all_references]).signature


@pytest.mark.parametrize("values", [{"summary": ["", None]}, {"summary": " ", "summaries": [""]}])
def test_blank_texts_alone_are_no_summary(values: dict[str, Any]) -> None:
    with pytest.raises(BadRowError, match=r"the summary .* is empty"):
        read(**values)
