"""Likelihoods equal BARTScore's formula, text by text, whatever the batch."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.evaluation.likelihood import FROM_DOCUMENT, FROM_REFERENCE, OF_REFERENCE, Likelihood
from tests.tiny_models import documents, tiny

SOURCES = documents(5)
TARGETS = [text[: 20 + 12 * row] for row, text in enumerate(documents(5, seed=9))]


@torch.no_grad()
def bartscore(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str, target: str) -> float:
    """Yuan et al. (2021): log-softmax of the logits, summed over the target's tokens, divided by their number."""
    read = tokenizer(source, return_tensors="pt")
    labels = tokenizer(text_target=target, return_tensors="pt")["input_ids"]
    if labels[0, 0] == model.config.decoder_start_token_id:
        labels = labels[:, 1:]
    logits = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"], labels=labels).logits
    losses = nn.NLLLoss(reduction="none")(logits.log_softmax(-1).flatten(0, 1), labels.flatten())
    return -float(losses.sum() / labels.numel())


@pytest.mark.parametrize("kind", ["bart", "t5", "zcodepp"])
def test_scores_equal_bartscore_and_do_not_depend_on_the_batch(kind: str) -> None:
    model, tokenizer = tiny(kind, positions=512)
    alone = [bartscore(model, tokenizer, *texts) for texts in zip(SOURCES, TARGETS, strict=True)]
    for batch_size in (1, 3):
        likelihood = Likelihood(model, tokenizer, batch_size=batch_size)
        assert likelihood.score(SOURCES, TARGETS) == pytest.approx(alone, abs=1e-5)
        assert likelihood.cut == 0


def test_of_several_references_the_best_counts_and_texts_without_tokens_have_no_score() -> None:
    model, tokenizer = tiny("bart", positions=512)
    likelihood = Likelihood(model, tokenizer)
    found = likelihood(
        SOURCES[:3], [*TARGETS[:2], " "], [[TARGETS[3], TARGETS[4]], [TARGETS[4]], [TARGETS[3]]]
    )
    both = [likelihood.score([reference], TARGETS[:1])[0] for reference in TARGETS[3:5]]
    assert found[FROM_REFERENCE][0] == pytest.approx(max(both), abs=1e-5)
    assert found[OF_REFERENCE][1] == pytest.approx(likelihood.score(TARGETS[1:2], TARGETS[4:5])[0], abs=1e-5)
    assert all(np.isnan(column[2]) and np.isfinite(column[:2]).all() for column in found.values())
    for count in (0, 1):
        assert set(likelihood(SOURCES[:count], TARGETS[:count], [[]] * count)) == {FROM_DOCUMENT}


def test_texts_beyond_the_limit_are_cut_and_counted() -> None:
    model, tokenizer = tiny("bart", positions=64)
    likelihood = Likelihood(model, tokenizer, max_source=16, max_target=8)
    assert np.isfinite(likelihood.score(SOURCES[:2], TARGETS[3:5])).all()
    assert likelihood.cut == 4


def test_texts_of_1024_tokens_are_read_whole_and_longer_ones_are_cut() -> None:
    model, tokenizer = tiny("bart", positions=1026)
    for more, cut in ((0, 0), (1, 2)):
        text = " ".join(["sings"] * 3000)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        room = 1024 - tokenizer.num_special_tokens_to_add()
        text = tokenizer.decode(ids[: room + more])
        likelihood = Likelihood(model, tokenizer)
        likelihood.score([text], [text])
        assert likelihood.cut == cut
