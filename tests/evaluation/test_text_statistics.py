"""Length, novelty, repetition, coverage and density on examples worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.evaluation.text_statistics import STATISTICS, Source, extractive_fragments, shape_statistics
from precis_text.errors import UserError

_DOCUMENT = "The old mill burned down last night. Nobody was hurt, the fire brigade said."
_WORDS = st.lists(st.sampled_from("abcd"), max_size=14)


def _one(prediction: str, document: str = _DOCUMENT) -> dict[str, float]:
    return {
        name: float(values[0])
        for name, values in shape_statistics({"": [prediction]}, [document])[""].items()
    }


def test_a_partly_copied_summary() -> None:
    # words: the old mill burned | yesterday | nobody was hurt -> fragments 4 and 3 of 8 words
    found = _one("The old mill burned yesterday; nobody was hurt.")
    assert found["length"] == 8
    assert found["novelty_1"] == pytest.approx(100 * 1 / 8)
    assert found["novelty_2"] == pytest.approx(100 * 2 / 7)
    assert found["novelty_3"] == pytest.approx(100 * 3 / 6)
    assert found["repetition"] == 0
    assert found["coverage"] == pytest.approx(7 / 8)
    assert found["density"] == pytest.approx((16 + 9) / 8)


def test_a_repeating_summary() -> None:
    # trigrams: abc bca cab abc bca cab abc: 4 of 7 occurred before
    assert _one("a b c a b c a b c")["repetition"] == pytest.approx(100 * 4 / 7)


def test_a_copied_document_is_one_fragment() -> None:
    found = _one(_DOCUMENT)
    assert found["coverage"] == 1
    assert found["density"] == 14
    assert found["novelty_1"] == found["novelty_2"] == found["novelty_3"] == 0


@pytest.mark.parametrize("prediction", ["", "  ", "..."])
def test_an_empty_summary_scores_0_everywhere(prediction: str) -> None:
    assert _one(prediction) == dict.fromkeys(STATISTICS, 0.0)


def test_a_summary_too_short_for_an_ngram_scores_0_there() -> None:
    found = _one("Smoke everywhere")
    assert (found["novelty_2"], found["novelty_3"]) == (100, 0)


def test_novelty_and_coverage_work_without_spaces() -> None:
    found = _one("水車が燃えた", "古い水車が夜に燃えた。")
    assert found["length"] == 6
    assert found["novelty_1"] == 0
    assert found["coverage"] == 1
    assert found["density"] == (9 + 9) / 6


@given(_WORDS, _WORDS)
@settings(deadline=None, max_examples=200)
def test_fragments_equal_the_papers_scan_of_the_whole_document(
    summary: list[str], document: list[str]
) -> None:
    expected, i = [], 0
    while i < len(summary):  # Grusky et al. (2018), Figure 3
        best = 0
        for j in range(len(document)):
            k = 0
            while i + k < len(summary) and j + k < len(document) and summary[i + k] == document[j + k]:
                k += 1
            best = max(best, k)
        expected += [best] if best else []
        i += max(best, 1)
    assert extractive_fragments(summary, Source(" ".join(document))) == expected


def test_several_systems_get_the_figures_of_each_alone() -> None:
    documents = [_DOCUMENT, "Rain is expected."]
    systems = {"one": ["The mill burned.", "Rain."], "two": ["", "Snow is expected today."]}
    together = shape_statistics(systems, documents)
    for name, predictions in systems.items():
        alone = shape_statistics({"": predictions}, documents)[""]
        assert all((together[name][key] == alone[key]).all() for key in STATISTICS)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(UserError, match="1 predictions for 2 documents"):
        shape_statistics({"": ["a"]}, ["a", "b"])


def test_compression_is_words_of_the_document_for_each_of_the_summary() -> None:
    assert _one("The mill burned, nobody was hurt.")["compression"] == pytest.approx(14 / 6)
