"""A classifier answers each document in order; one of others, or one without a task, is refused by name."""

import json
from pathlib import Path

import pytest
import torch

from precis.generation.classifier import Classifier
from precis.generation.model_metadata import ModelUse
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification
from precis_text.errors import UserError
from tests.tiny_models import documents, save_classifier, tiny


@pytest.mark.parametrize(
    ("use", "says"),
    [
        ({"task": "rte"}, "a 'bert' classifier; precis uses only Z-Code"),
        ({}, "precis did not train it to label texts; train one with precis finetune --answer head"),
    ],
)
def test_a_classifier_of_others_is_refused_by_name(use: dict[str, str], says: str, tmp_path: Path) -> None:
    save_classifier(tmp_path)
    (tmp_path / "precis.json").write_text(json.dumps(use))
    with pytest.raises(UserError, match=says):
        Classifier.from_pretrained(tmp_path)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_each_document_has_its_answer_whatever_the_batch(batch_size: int) -> None:
    model, tokenizer = tiny("zcodepp")
    torch.manual_seed(3)
    own = ZCodePPForSequenceClassification(model.config).eval()
    classifier = Classifier(own, tokenizer, ModelUse(task="stsb"))
    texts = [document[: 90 - 12 * place] for place, document in enumerate(documents(5))]
    alone = [answer for text in texts for answer in classifier.stream([text], batch_size=1)]
    assert [*classifier.stream(texts, batch_size=batch_size)] == alone
    assert len({answer.text for answer in alone}) > 1
    assert [answer.tokens_read for answer in alone] == [
        len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts
    ]
