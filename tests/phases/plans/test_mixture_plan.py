"""`precis.ground` and `precis.train_extractor` in Python refuse what the commands do."""

from pathlib import Path
from typing import Any

import pytest

import precis
from precis_text.errors import UserError
from tests.tiny_models import save


@pytest.mark.parametrize("train", [precis.ground, precis.train_extractor])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ""}, "no set to train on; name tasks with tasks"),
        ({"tasks": "samsun"}, "did you mean 'samsum'"),
        ({"tasks": "samsum, samsum"}, "'samsum' is given twice"),
    ],
)
def test_sets_that_are_missing_unknown_or_named_twice(
    train: Any, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    model = save("bart", tmp_path / "model")
    with pytest.raises(UserError, match=message):
        train(model, **options, out=tmp_path / "run")


def test_a_metric_that_the_validation_of_a_mixture_lacks_is_refused(tmp_path: Path) -> None:
    model = save("bart", tmp_path / "model")
    with pytest.raises(UserError, match="select=rougeL is measured on generated summaries"):
        precis.ground(model, "samsum", out=tmp_path / "run", select="rougeL")


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match=r"train_extractor\(\) got an unexpected keyword argument 'steps'"):
        precis.train_extractor("m", "pairs", out="o", steps=3)  # type: ignore[call-arg]
