"""BERTScore equals the paper's formula, pair by pair, whatever the batch."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, PreTrainedModel

from precis.evaluation.bert_score import BertScore
from precis.phases.measure.support_models import load_bert_score
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer, documents

REFERENCES = documents(5)
PREDICTIONS = [text[: 20 + 12 * row] for row, text in enumerate(documents(5, seed=9))]


def encoder() -> PreTrainedModel:
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(bert_tokenizer()), initializer_range=0.5, **shape)
    return BertModel(config).eval()


def scorer(**options: int) -> BertScore:
    return BertScore(encoder(), bert_tokenizer(), name="tiny", **{"limit": 512, **options})


@torch.no_grad()
def by_formula(prediction: str, reference: str, layer: int) -> float:
    """Zhang et al. (2020), section 3, one pair at a time, with control tokens as in the authors' code."""
    states = []
    for text in (prediction, reference):
        read = bert_tokenizer()(text, return_tensors="pt")
        found = encoder()(**read, output_hidden_states=True).hidden_states[layer][0]
        states.append(found / found.norm(dim=-1, keepdim=True))
    cosines = (states[0] @ states[1].T).numpy()
    precision, recall = cosines.max(1)[1:-1].mean(), cosines.max(0)[1:-1].mean()
    return float(100 * 2 * precision * recall / (precision + recall))


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_scores_equal_the_formula_and_do_not_depend_on_the_batch(layer: int) -> None:
    alone = [by_formula(*texts, layer) for texts in zip(PREDICTIONS, REFERENCES, strict=True)]
    for batch_size in (1, 3):
        found = scorer(layer=layer, batch_size=batch_size).score(PREDICTIONS, [[text] for text in REFERENCES])
        assert found == pytest.approx(alone, abs=1e-4)


def test_a_text_is_most_like_itself_and_the_best_reference_counts() -> None:
    found = scorer()(REFERENCES[:2], [[REFERENCES[1], REFERENCES[0]], [REFERENCES[2]]])
    assert found.examples[0] == pytest.approx(100, abs=1e-3)
    assert found.examples[1] < 99
    assert "model:tiny|layer:2|" in found.signature


def test_an_empty_text_scores_0_and_a_long_one_is_cut_and_counted() -> None:
    measure = scorer(limit=16)
    read = bert_tokenizer()
    first = read.decode(
        read(PREDICTIONS[4], add_special_tokens=False)["input_ids"][:14]
    )  # and two tokens of control
    assert measure.score([PREDICTIONS[4]], [[first]]) == pytest.approx([100], abs=1e-3)
    measure.cut = 0
    found = measure.score([" ", PREDICTIONS[4]], [[REFERENCES[0]], [REFERENCES[1]]])
    assert found[0] == 0
    assert np.isfinite(found[1])
    assert measure.cut == 2


def test_an_encoder_is_read_from_its_folder_and_a_wrong_layer_is_refused(tmp_path: Path) -> None:
    encoder().save_pretrained(tmp_path / "tiny")
    bert_tokenizer().save_pretrained(tmp_path / "tiny")
    told: list[str] = []
    found = load_bert_score(tmp_path / "tiny", notify=told.append)
    references = [[text] for text in REFERENCES]
    assert found.score(PREDICTIONS, references) == pytest.approx(
        scorer().score(PREDICTIONS, references), abs=1e-4
    )
    assert told[0].endswith("licence: not stated")
    with pytest.raises(UserError, match="the encoder has 2 layers; use 0 to 2"):
        load_bert_score(tmp_path / "tiny", layer=3)
    with pytest.raises(UserError, match="contains no model"):
        load_bert_score(tmp_path)


def test_a_text_of_one_word_scores_by_the_formula() -> None:
    assert scorer().score(["Ann"], [["Bob"]]) == pytest.approx([by_formula("Ann", "Bob", 2)], abs=1e-4)


def test_a_batch_holds_pairs_of_similar_length_and_a_text_that_just_fits_is_not_cut() -> None:
    long, short = REFERENCES[0], "Ann sings."
    measure = scorer(batch_size=2, limit=len(bert_tokenizer()(long)["input_ids"]))
    widths: list[int] = []
    measure._model.register_forward_pre_hook(
        lambda _, __, inputs: widths.append(inputs["input_ids"].shape[1]), with_kwargs=True
    )
    found = measure.score([long, short, long, short], [[long], [short], [long], [short]])
    lengths = [len(bert_tokenizer()(text)["input_ids"]) for text in (short, long)]
    assert widths == [lengths[0]] * 2 + [lengths[1]] * 2
    assert found == pytest.approx([100] * 4, abs=1e-3)
    assert measure.cut == 0
