"""Future n-gram loss against the paper's equations."""

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F

from precis.models import (
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    ZCodePPConfig,
    ZCodePPForConditionalGeneration,
)
from precis.objectives.future_tokens import Alphas, Attenuated, FutureTokens
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis_text.errors import UserError

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}


@dataclass(frozen=True)
class Pairs:
    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor


def prophet(ngram: int) -> ProphetNetForConditionalGeneration:
    torch.manual_seed(1)
    config = ProphetNetConfig(
        vocab_size=40,
        hidden_size=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        ngram=ngram,
        max_position_embeddings=40,
        activation_dropout=0.0,
        init_std=0.3,
        **NO_DROPOUT,
    )
    return ProphetNetForConditionalGeneration(config)


def zcodepp(future: int) -> ZCodePPForConditionalGeneration:
    torch.manual_seed(1)
    config = ZCodePPConfig(
        vocab_size=40,
        hidden_size=16,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        future_tokens=future,
        **NO_DROPOUT,
    )
    return ZCodePPForConditionalGeneration(config)


@pytest.fixture
def pairs() -> Pairs:
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 40, (3, 9), generator=rng)
    labels = torch.randint(5, 40, (3, 7), generator=rng)
    labels[1, 4:] = -100
    labels[2, 1:] = -100  # shorter than the streams look ahead
    return Pairs(ids, torch.ones_like(ids), labels)


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("model", [prophet(1), zcodepp(0)], ids=["prophetnet", "zcodepp"])
def test_eq3_one_stream_is_exactly_teacher_forcing(
    model: ProphetNetForConditionalGeneration | ZCodePPForConditionalGeneration,
    pairs: Pairs,
    smoothing: float,
) -> None:
    future = FutureTokens(label_smoothing=smoothing)(model, pairs)
    teacher = SequenceToSequence(label_smoothing=smoothing)(model, pairs)
    assert torch.equal(future.total, teacher.total)
    assert future.num_targets == teacher.num_targets
    assert future.num_tokens == teacher.num_tokens
    assert {k: float(v) for k, v in future.parts.items()} == {k: float(v) for k, v in teacher.parts.items()}


@pytest.mark.parametrize(
    ("model", "streams"), [(prophet(3), 3), (zcodepp(2), 3)], ids=["prophetnet", "zcodepp"]
)
def test_eq11_is_the_weighted_sum_over_streams_of_eq3(
    model: ProphetNetForConditionalGeneration | ZCodePPForConditionalGeneration, streams: int, pairs: Pairs
) -> None:
    loss = FutureTokens(label_smoothing=0.0, weights=Attenuated(gamma=0.5))(model, pairs)
    start = model.prepare_decoder_input_ids_from_labels(pairs.labels)
    output = model(input_ids=pairs.input_ids, decoder_input_ids=start, all_streams=True)
    rows = dict(zip(model.future_streams, output.future_logits.unbind(1), strict=True))
    rows[0] = output.logits
    expected = sum(
        0.5**k / (1 + 0.5 + 0.25) * cross_entropy(rows[k][:, k:], pairs.labels[:, k:]) for k in range(streams)
    )
    torch.testing.assert_close(loss.total, expected)
    assert loss.num_targets == 12


@pytest.mark.parametrize("model", [prophet(3), zcodepp(2)], ids=["prophetnet", "zcodepp"])
def test_the_models_own_loss_is_the_objectives_without_smoothing(
    model: ProphetNetForConditionalGeneration | ZCodePPForConditionalGeneration, pairs: Pairs
) -> None:
    loss = FutureTokens(label_smoothing=0.0)(model, pairs)
    own = model(input_ids=pairs.input_ids, attention_mask=pairs.attention_mask, labels=pairs.labels).loss
    torch.testing.assert_close(own, loss.total / loss.num_targets)


def test_eq3_alphas_weigh_each_stream_and_a_weight_of_zero_leaves_it_out(pairs: Pairs) -> None:
    model = prophet(2)
    first = FutureTokens(weights=Alphas(values=(1.0, 0.0)))(model, pairs)
    torch.testing.assert_close(first.total, SequenceToSequence()(model, pairs).total)
    both = FutureTokens(weights=Alphas(values=(1.0, 1.0)))(model, pairs)
    evenly = FutureTokens(weights=Attenuated(gamma=1.0))(model, pairs)
    torch.testing.assert_close(both.total, 2 * evenly.total)


def test_streams_are_measured_each_by_its_own_targets(pairs: Pairs) -> None:
    loss = FutureTokens()(prophet(3), pairs)
    assert loss.counts["accuracy_1"] == 12 - 3
    assert loss.counts["nll_2"] == 12 - 5  # the shortest target has one token only
    assert {"nll", "accuracy", "nll_1", "accuracy_1", "nll_2", "accuracy_2"} == set(loss.parts)


@pytest.mark.parametrize("gamma", [-0.1, -1.0, 1.5])
def test_a_gamma_outside_its_range_is_refused(gamma: float) -> None:
    with pytest.raises(UserError, match="gamma"):
        Attenuated(gamma=gamma)


def test_alphas_must_be_as_many_as_streams(pairs: Pairs) -> None:
    with pytest.raises(UserError, match="predicts 2 tokens"):
        FutureTokens(weights=Alphas(values=(1.0,)))(prophet(2), pairs)
    with pytest.raises(UserError, match="above 0"):
        Alphas(values=())
