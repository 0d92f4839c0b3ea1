"""What a study begins with: a model that is named, and one of its shape from nothing."""

from pathlib import Path

import pytest
import torch

from precis.generation.model_loader import load_model
from precis_experiments.initial_model import begin_with, untrained
from precis_experiments.scales import GLUE_SCALES
from precis_text.errors import UserError
from tests.tiny_models import save

SCALE = GLUE_SCALES["micro"]


def test_the_scale_names_the_model_and_its_weights(tmp_path: Path) -> None:
    one, other = (begin_with(SCALE, str(save("zcodepp", tmp_path / str(seed), seed=seed))) for seed in (0, 1))
    assert one.start == str(tmp_path / "0")
    assert one.weights != other.weights
    with pytest.raises(UserError, match="no such folder"):
        begin_with(SCALE, str(tmp_path / "none"))


def test_a_model_from_nothing_has_the_shape_and_words_of_the_given_one_and_other_weights(
    tmp_path: Path,
) -> None:
    given = save("zcodepp", tmp_path / "given", seed=5)
    again = [load_model(untrained(str(given), tmp_path / name, seed=0)) for name in ("a", "b")]
    other, old = load_model(untrained(str(given), tmp_path / "c", seed=1)), load_model(str(given))
    ours, theirs = ({n: p.shape for n, p in one.model.named_parameters()} for one in (again[0], old))
    assert ours == theirs
    assert again[0].tokenizer.get_vocab() == old.tokenizer.get_vocab()
    first, second, third, fourth = (one.model.get_input_embeddings().weight for one in (*again, other, old))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert not torch.equal(first, fourth)
