"""The classifier answers as transformers' classifiers do."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoderModel
from tests.conformance import random_batch
from tests.small_models import classifier, seq2seq

IDS = torch.arange(5, 23).reshape(3, 6)


@torch.no_grad()
@pytest.mark.parametrize(
    ("problem", "count", "labels", "expected"),
    [
        ("regression", 1, torch.tensor([0.5, -1.0, 2.0]), lambda x, y: F.mse_loss(x[:, 0], y)),
        ("regression", 2, torch.rand(3, 2), F.mse_loss),
        ("single_label_classification", 4, torch.tensor([3, 0, 1]), F.cross_entropy),
        (
            "multi_label_classification",
            4,
            torch.tensor([[1.0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]),
            F.binary_cross_entropy_with_logits,
        ),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_the_loss_is_that_of_the_problem_type(
    problem: str,
    count: int,
    labels: torch.Tensor,
    expected: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    named: bool,
) -> None:
    model = classifier(num_labels=count, problem_type=problem if named else None)
    output = model(IDS, labels=labels)
    if not named and problem == "regression" and count > 1:
        problem, expected = "multi_label_classification", F.binary_cross_entropy_with_logits
    torch.testing.assert_close(output.loss, expected(output.logits, labels))
    assert model.config.problem_type == problem


@torch.no_grad()
def test_hidden_states_are_given_when_asked_for() -> None:
    model = classifier()
    states = model(IDS, output_hidden_states=True).hidden_states
    assert [tuple(s.shape) for s in states] == [(3, 6, 32)] * 4
    assert model(IDS).hidden_states is None


@torch.no_grad()
def test_the_base_model_is_a_model_that_runs(tmp_path: Path) -> None:
    model = classifier()
    assert isinstance(model.base_model, ZCodePPEncoderModel)
    expected = model.base_model(IDS).last_hidden_state
    model.save_pretrained(tmp_path)
    again = ZCodePPEncoderModel.from_pretrained(tmp_path).eval()
    assert torch.equal(again(IDS).last_hidden_state, expected)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_an_encoder_opens_the_folder_of_a_whole_model(kind: str, tmp_path: Path) -> None:
    model = seq2seq(kind)
    model.save_pretrained(tmp_path / "whole")
    encoder = type(model.get_encoder()).from_pretrained(tmp_path / "whole").eval()
    ids, mask, _ = random_batch(model)
    expected = model.get_encoder()(ids, mask).last_hidden_state
    assert torch.equal(encoder(ids, mask).last_hidden_state, expected)
    encoder.save_pretrained(tmp_path / "alone")
    again = type(encoder).from_pretrained(tmp_path / "alone").eval()
    assert torch.equal(again(ids, mask).last_hidden_state, expected)
