"""torch.export and torch.compile take every model whole, with masks."""

from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from tests.conformance import random_batch
from tests.small_models import SEQ2SEQ, classifier, seq2seq

pytestmark = pytest.mark.traced

CLOSE: dict[str, Any] = {"atol": 1e-5, "rtol": 1e-5}


def given(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    ids, mask, labels = random_batch(model)
    target = model.prepare_decoder_input_ids_from_labels(labels)
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "decoder_input_ids": target,
        "decoder_attention_mask": (labels != -100).long(),
        "use_cache": False,
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_an_exported_program_gives_what_the_model_gives(kind: str) -> None:
    model = seq2seq(kind)
    inputs = given(model)
    with torch.no_grad():
        expected = model(**inputs).logits
    program = torch.export.export(model, (), inputs, strict=False).module()
    torch.testing.assert_close(program(**inputs).logits, expected, **CLOSE)
    # the program holds for other masks: nothing of this one was baked in
    inputs["attention_mask"] = inputs["attention_mask"].roll(1, 0)
    with torch.no_grad():
        expected = model(**inputs).logits
    torch.testing.assert_close(program(**inputs).logits, expected, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SEQ2SEQ, "classifier"])
def test_one_graph_holds_the_whole_pass(kind: str) -> None:
    torch.compiler.reset()
    model = classifier() if kind == "classifier" else seq2seq(kind)
    ids, mask, _ = random_batch(model)
    inputs = {"input_ids": ids, "attention_mask": mask} if kind == "classifier" else given(model)
    with torch.no_grad():
        expected = model(**inputs).logits
        found = torch.compile(model, fullgraph=True, backend="eager")(**inputs).logits
    torch.testing.assert_close(found, expected, **CLOSE)


def test_the_classifier_is_exported() -> None:
    model = classifier()
    ids, mask, _ = random_batch(model)
    with torch.no_grad():
        expected = model(ids, mask).logits
    program = torch.export.export(model, (ids, mask), strict=False).module()
    torch.testing.assert_close(program(ids, mask).logits, expected, **CLOSE)
