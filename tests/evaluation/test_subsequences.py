"""Bit-parallel LCS against the tables of rouge-score."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from precis.evaluation.subsequences import lcs_length, union_hits

_TOKENS = st.lists(st.sampled_from("abcde"), max_size=90)
_SENTENCES = st.lists(st.lists(st.sampled_from("abcd"), max_size=12), min_size=1, max_size=5)


@given(_TOKENS, _TOKENS)
@settings(deadline=None, max_examples=100)
def test_length_equals_the_last_cell_of_rouge_scores_table(
    reference: list[str], candidate: list[str]
) -> None:
    assert lcs_length(reference, candidate) == rouge_scorer._lcs_table(reference, candidate)[-1][-1]


@given(_SENTENCES, _SENTENCES)
@settings(deadline=None, max_examples=300)
def test_union_hits_equal_rouge_scores_summary_level_lcs(
    references: list[list[str]], candidates: list[list[str]]
) -> None:
    wanted, given_tokens = sum(map(len, references)), sum(map(len, candidates))
    expected = rouge_scorer._summary_level_lcs(references, candidates)
    hits = union_hits(references, candidates)
    assert hits == (round(expected.recall * wanted) if wanted and given_tokens else 0)
