"""BLEU: sacrebleu's own figure, and the same figure from sentence statistics."""

import numpy as np
import pytest
import sacrebleu

from precis.evaluation.sacrebleu_scores import bleu
from precis_text.errors import UserError

_PREDICTIONS = [
    "The Anchor is a cheap pub near the river.",
    "Blue Door serves Italian food in the city centre.",
    "",
    "The Mill , a family friendly café , costs £20-25 .",
]
_REFERENCES = [
    [
        "The Anchor is a cheap pub by the river.",
        "Near the river is a cheap pub, The Anchor.",
        "A pub: The Anchor.",
    ],
    ["Blue Door serves Italian food in the centre of the city."],
    ["There is a bar called Hall."],
    ["The Mill is a family-friendly café for £20-25.", "the mill, a café for families, costs £20-25."],
]
_PADDED = [[targets[i] if i < len(targets) else None for targets in _REFERENCES] for i in range(3)]


@pytest.mark.parametrize("lowercase", [False, True])
def test_unequal_references_give_sacrebleus_corpus_bleu(lowercase: bool) -> None:
    ours = bleu(_PREDICTIONS, _REFERENCES, lowercase=lowercase)
    theirs = sacrebleu.corpus_bleu(_PREDICTIONS, _PADDED, lowercase=lowercase)
    assert ours.score == theirs.score


def test_sentence_statistics_of_all_rows_give_the_corpus_score() -> None:
    ours = bleu(_PREDICTIONS, _REFERENCES)
    assert ours.resampled(np.arange(4)) == ours.score


def test_statistics_of_a_resample_equal_scoring_the_resampled_texts() -> None:
    rows = np.array([0, 0, 3, 1, 3])
    resampled = bleu([_PREDICTIONS[i] for i in rows], [_REFERENCES[i] for i in rows])
    assert bleu(_PREDICTIONS, _REFERENCES).resampled(rows) == resampled.score


def test_order_of_references_is_irrelevant_and_identity_is_100() -> None:
    turned = [targets[::-1] for targets in _REFERENCES]
    assert bleu(_PREDICTIONS, turned).score == bleu(_PREDICTIONS, _REFERENCES).score
    perfect = [targets[-1] for targets in _REFERENCES]
    assert bleu(perfect, _REFERENCES).score == pytest.approx(100)


def test_only_empty_predictions_score_0() -> None:
    assert bleu(["", ""], [["a b c d"], ["e"]]).score == 0


def test_the_signature_is_sacrebleus() -> None:
    signature = bleu(_PREDICTIONS, _REFERENCES, lowercase=True).signature
    assert signature == f"bleu|nrefs:var|case:lc|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_no_prediction_is_an_error() -> None:
    with pytest.raises(UserError, match="at least one"):
        bleu([], [])
