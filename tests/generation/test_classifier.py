"""A classifier of precis opens with its labels; another one, or one without a task, is refused by name."""

import json
from pathlib import Path

import pytest

from precis.generation.classifier import Classifier
from precis_text.errors import UserError
from tests.tiny_models import save_classifier


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
