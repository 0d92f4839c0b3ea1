"""The base of all families: a model without its head, opened by AutoModel, gives the states that logits are made of."""

import pytest
import torch
from conformance import random_batch
from small_models import SEQ2SEQ, seq2seq
from transformers import AutoModel

from precis.models.outputs import predicting_states


@torch.no_grad()
@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_auto_model_gives_the_states_that_the_head_makes_logits_of(kind, tmp_path):
    model = seq2seq(kind)
    model.save_pretrained(tmp_path)
    body = AutoModel.from_pretrained(tmp_path).eval()
    ids, mask, labels = random_batch(model)
    inputs = {"input_ids": ids, "attention_mask": mask}
    inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    expected = model(**inputs, all_streams=True)
    states = body(**inputs)
    assert type(body) is type(model.base_model)
    assert torch.equal(model.lm_head(predicting_states(states, model.config)[:, 0]), expected.logits)
    if model.future_streams:
        assert torch.equal(model.lm_head(states.future_states), expected.future_logits)
    assert states.future_states is None or states.future_states.shape[1] == len(model.future_streams)
