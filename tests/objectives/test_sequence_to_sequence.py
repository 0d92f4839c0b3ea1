"""The sequence-to-sequence objective asks any Hugging Face encoder-decoder the right question."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from precis.objectives import SequenceToSequence


@dataclass(frozen=True)
class Batch:
    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor
    source_lengths: tuple[int, ...] | None = None


@pytest.fixture(scope="module")
def model() -> BartForConditionalGeneration:
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=40,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        dropout=0.0,
    )
    return BartForConditionalGeneration(config).eval()


@pytest.fixture(scope="module")
def batch() -> Batch:
    return Batch(
        input_ids=torch.tensor([[5, 6, 7, 8, 2], [9, 10, 2, 1, 1]]),
        attention_mask=torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
        labels=torch.tensor([[20, 21, 22, 2], [23, 2, -100, -100]]),
    )


def test_eq6_without_smoothing_it_is_the_model_s_own_loss_times_the_targets(
    model: BartForConditionalGeneration, batch: Batch
) -> None:
    own = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=batch.labels).loss

    loss = SequenceToSequence(label_smoothing=0.0)(model, batch)

    assert int(loss.num_targets) == 6
    assert loss.total.item() == pytest.approx(6 * own.item(), rel=1e-6)


def test_tokens_are_those_read_and_written_without_padding(
    model: BartForConditionalGeneration, batch: Batch
) -> None:
    loss = SequenceToSequence()(model, batch)

    assert loss.num_tokens is not None
    assert int(loss.num_tokens) == 8 + 6


def test_padding_the_batch_changes_nothing(model: BartForConditionalGeneration, batch: Batch) -> None:
    padded = Batch(
        input_ids=torch.nn.functional.pad(batch.input_ids, (0, 3), value=1),
        attention_mask=torch.nn.functional.pad(batch.attention_mask, (0, 3)),
        labels=torch.nn.functional.pad(batch.labels, (0, 2), value=-100),
    )
    objective = SequenceToSequence(label_smoothing=0.1)

    assert objective(model, padded).total.item() == pytest.approx(
        objective(model, batch).total.item(), rel=1e-5
    )


def test_its_settings_survive_a_round_trip() -> None:
    objective = SequenceToSequence(label_smoothing=0.2)

    assert SequenceToSequence.from_dict(objective.to_dict()) == objective


def test_a_model_is_told_the_lengths_that_a_batch_brings_and_no_others(
    model: BartForConditionalGeneration, batch: Batch
) -> None:
    told: list[Any] = []

    class Watched(torch.nn.Module):
        prepare_decoder_input_ids_from_labels = staticmethod(model.prepare_decoder_input_ids_from_labels)
        get_output_embeddings = staticmethod(model.get_output_embeddings)
        config = model.config

        def forward(self, **given: Any) -> Any:
            told.append(given.pop("source_lengths", "nothing"))
            return model(**given)

    for lengths in (None, (5, 3)):
        SequenceToSequence()(Watched(), replace(batch, source_lengths=lengths))
    assert told == ["nothing", (5, 3)]
