"""What all families of models share, and what a new one gets by its configuration alone."""

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

from precis.generation.summarizer import Summarizer
from precis.models.outputs import predicting_states
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from tests.conformance import random_batch
from tests.small_models import SEQ2SEQ, seq2seq
from tests.tiny_models import documents, tiny


class ThirdConfig(ZCodePPConfig):
    model_type = "third"
    fusion_limit = 128

    @property
    def target_rows(self) -> int:
        return 5


class Third(ZCodePPForConditionalGeneration):
    config_class = ThirdConfig


@pytest.mark.long
def test_a_third_family_summarizes_by_the_answers_of_its_configuration(tmp_path: Path) -> None:
    AutoConfig.register("third", ThirdConfig, exist_ok=True)
    AutoModelForSeq2SeqLM.register(ThirdConfig, Third, exist_ok=True)
    model, tokenizer = tiny("zcodepp")
    shape = {name: value for name, value in model.config.to_dict().items() if name != "model_type"}
    Third(ThirdConfig(**shape)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    summarizer = Summarizer.from_pretrained(tmp_path, max_source=32)
    assert type(summarizer.model) is Third
    text = (documents(1)[0].split() * 40)[:60]
    fused, *pieces = summarizer.summarize([" ".join(text[:30]), " ".join(text * 6)], short="write")
    assert (fused.how, pieces[0].how) == ("fie", "chunk")
    assert max(summary.summary_tokens for summary in (fused, *pieces)) <= 5


@torch.no_grad()
@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_auto_model_gives_the_states_that_the_head_makes_logits_of(kind: str, tmp_path: Path) -> None:
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
