"""The loss of the scorer of units."""

import math

import torch
from torch import Tensor, nn

from precis.data.batches.unit_batches import UnitBatch
from precis.objectives.encoder_heads import UnitChoice


def a_batch(wanted: Tensor, valid: Tensor, log_words: Tensor) -> UnitBatch:
    vectors, facts = torch.zeros(*wanted.shape, 2), torch.zeros(*wanted.shape, 1)
    return UnitBatch(vectors, facts, valid, wanted, log_words)


class Says(nn.Module):
    """A scorer that says what it was given."""

    def __init__(self, logits: Tensor, words: Tensor) -> None:
        super().__init__()
        self.answer = logits, words

    def forward(self, *_: Tensor) -> tuple[Tensor, Tensor]:
        return self.answer


def test_the_loss_is_summed_over_documents_and_divided_by_the_root_of_their_units() -> None:
    batch = a_batch(
        wanted=torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]),
        valid=torch.tensor([[True] * 4, [True, False, False, False]]),
        log_words=torch.tensor([2.0, 3.0]),
    )
    loss = UnitChoice(length_weight=0.5)(Says(torch.zeros(2, 4), torch.tensor([2.0, 1.0])), batch)
    assert loss.num_targets == 2
    assert torch.isclose(loss.total, torch.tensor(math.log(2) * (4 / 2 + 1) + 0.5 * 4))
    assert loss.parts["length"] == 4


def test_first_counts_documents_whose_best_unit_is_wanted_and_padding_is_none() -> None:
    batch = a_batch(
        wanted=torch.tensor([[0.0, 1.0], [0.0, 1.0]]),
        valid=torch.tensor([[True, True], [True, False]]),
        log_words=torch.zeros(2),
    )
    loss = UnitChoice()(Says(torch.tensor([[0.0, 1.0], [0.0, 9.0]]), torch.zeros(2)), batch)
    assert loss.parts["first"] == 1
