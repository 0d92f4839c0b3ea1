"""The classifier's loss is that of transformers' classifiers, summed."""

import pytest
import torch

from precis.data.batches.corruption import IGNORE
from precis.data.batches.labelled_texts import LabelledBatch
from precis.objectives.encoder_heads import Classification
from tests.small_models import classifier

IDS = torch.arange(5, 29).view(4, 6)


def batch_of(labels: torch.Tensor) -> LabelledBatch:
    return LabelledBatch(IDS[: len(labels)], torch.ones_like(IDS[: len(labels)]), labels)


@pytest.mark.parametrize(
    ("count", "labels"), [(3, torch.tensor([0, 2, 1, 2])), (1, torch.tensor([0.0, 3.8, 5.0, 1.25]))]
)
def test_the_mean_over_texts_is_the_loss_of_transformers(count: int, labels: torch.Tensor) -> None:
    model = classifier(num_labels=count)
    found = Classification()(model, batch_of(labels))
    assert int(found.num_targets) == 4
    torch.testing.assert_close(found.total / found.num_targets, model(IDS, labels=labels).loss)


@pytest.mark.parametrize(
    ("count", "labels", "nothing"),
    [(3, torch.tensor([0, 2]), IGNORE), (1, torch.tensor([0.5, 4.0]), torch.nan)],
)
def test_stand_in_rows_count_for_nothing(count: int, labels: torch.Tensor, nothing: float) -> None:
    model = classifier(num_labels=count)
    padded = torch.cat([labels, torch.full((1,), nothing, dtype=labels.dtype)])
    alone, beside = (Classification()(model, batch_of(each)) for each in (labels, padded))
    assert int(beside.num_targets) == 2
    torch.testing.assert_close(beside.total, alone.total)
    beside.total.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_a_class_that_is_right_counts_as_accurate() -> None:
    model = classifier(num_labels=3)
    right = model(IDS).logits.argmax(-1)
    assert float(Classification()(model, batch_of(right)).parts["accuracy"]) == 4
    assert float(Classification()(model, batch_of((right + 1) % 3)).parts["accuracy"]) == 0
