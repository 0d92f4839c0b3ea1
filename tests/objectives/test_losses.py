"""Losses are fp32 sums with the right smoothing."""

import math

import pytest
import torch

from precis.objectives.losses import smoothed_cross_entropy


def _logits_and_labels(vocabulary: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, vocabulary, generator=generator)
    labels = torch.randint(0, vocabulary, (3, 5), generator=generator)
    labels[0, 3:] = -100
    labels[2, 0] = -100
    return logits, labels


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_smoothing_mixes_the_target_with_the_uniform_distribution_over_the_whole_vocabulary(
    smoothing: float,
) -> None:
    logits, labels = _logits_and_labels()
    expected = 0.0
    for row, label in zip(logits.flatten(0, 1).double(), labels.flatten(), strict=True):
        if label != -100:
            log_p = row - row.exp().sum().log()
            expected += -(1 - smoothing) * log_p[label].item() - smoothing * log_p.mean().item()

    loss = smoothed_cross_entropy(logits, labels, smoothing=smoothing)

    assert loss.total.item() == pytest.approx(expected, rel=1e-6)


def test_ignored_positions_count_nowhere_and_get_no_gradient() -> None:
    logits, labels = _logits_and_labels()
    logits.requires_grad_()
    kept = labels != -100

    loss = smoothed_cross_entropy(logits, labels, smoothing=0.1)
    alone = smoothed_cross_entropy(logits[kept][None], labels[kept][None], smoothing=0.1)
    loss.total.backward()

    assert int(loss.num_targets) == int(kept.sum()) == 12
    assert loss.total.item() == pytest.approx(alone.total.item(), rel=1e-6)
    assert logits.grad is not None
    assert logits.grad[~kept].abs().max() == 0


def test_a_batch_without_targets_gives_zero_and_not_nan() -> None:
    logits, labels = _logits_and_labels()
    logits.requires_grad_()

    loss = smoothed_cross_entropy(logits, torch.full_like(labels, -100), smoothing=0.1)
    loss.total.backward()

    assert loss.total.item() == 0
    assert int(loss.num_targets) == 0
    assert {name: value.item() for name, value in loss.parts.items()} == {"nll": 0, "accuracy": 0}
    assert logits.grad is not None
    assert logits.grad.abs().max() == 0


def test_the_loss_is_computed_in_fp32_from_bf16_logits() -> None:
    logits, labels = _logits_and_labels(vocabulary=5000)

    rounded = logits.bfloat16()
    loss = smoothed_cross_entropy(rounded, labels, smoothing=0.1)

    assert loss.total.dtype == torch.float32
    exact = smoothed_cross_entropy(rounded.double().float(), labels, smoothing=0.1)
    assert loss.total.item() == exact.total.item()


def test_parts_are_the_unsmoothed_loss_and_the_number_of_hits() -> None:
    logits = torch.zeros(1, 3, 4)
    logits[0, 0, 2] = logits[0, 1, 1] = 5.0
    labels = torch.tensor([[2, 3, -100]])

    loss = smoothed_cross_entropy(logits, labels, smoothing=0.2)

    normalizer = math.log(math.exp(5) + 3)
    assert loss.parts["accuracy"].item() == 1
    assert loss.parts["nll"].item() == pytest.approx(2 * normalizer - 5, rel=1e-6)
    assert not loss.parts["nll"].requires_grad


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_outside_its_range_is_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match=r"outside \[0, 1\)"):
        smoothed_cross_entropy(*_logits_and_labels(), smoothing=smoothing)
