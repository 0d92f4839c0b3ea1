"""Claims about generator, discriminator and the table they share."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from precis.data.batches.pretraining_batches import PreTrainingBatch
from precis.models.zcodepp.configuration_zcodepp import ZCodePPPreTrainingConfig
from precis.models.zcodepp.replaced_token_detection import ZCodePPForPreTraining, sample
from precis.objectives.losses import Loss
from precis.objectives.replaced_tokens import (
    ReplacedTokensAndSpans,
    masked_token_loss,
    replaced_token_loss,
    span_loss,
)

VOCABULARY, ROWS, LENGTH, PLACES = 60, 3, 16, 3


def blocks(*, seed: int = 0, rows: int = ROWS) -> PreTrainingBatch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY, (rows, LENGTH), generator=generator)
    places = torch.rand(rows, LENGTH, generator=generator).argsort(-1)[:, :PLACES].sort(-1).values
    labels = torch.randint(5, VOCABULARY, (rows, 6), generator=generator)
    return PreTrainingBatch(
        original_ids=ids,
        masked_ids=ids.scatter(1, places, 4),
        places=places,
        draws=torch.rand(rows, PLACES, generator=generator),
        input_ids=torch.randint(5, VOCABULARY, (rows, 12), generator=generator),
        attention_mask=None,
        decoder_input_ids=torch.cat([torch.ones(rows, 1, dtype=torch.long), labels[:, :-1]], 1),
        span_labels=labels,
    )


def model(
    *, seed: int = 0, dropout: float = 0.0, mask_decoder: bool = False, future_tokens: int = 0
) -> ZCodePPForPreTraining:
    torch.manual_seed(seed)
    config = ZCodePPPreTrainingConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        encoder_layers=2,
        decoder_layers=1,
        generator_layers=2,
        generator_mask_decoder=mask_decoder,
        future_tokens=future_tokens,
        dropout=dropout,
        attention_dropout=dropout,
    )
    return ZCodePPForPreTraining(config)


def moved(whole: ZCodePPForPreTraining) -> ZCodePPForPreTraining:
    """With an E_delta that is not zero, as after some training."""
    with torch.no_grad():
        whole.discriminator_table.delta.normal_(std=0.1)
    return whole


def reached(whole: ZCodePPForPreTraining, loss: Loss) -> set[str]:
    """Names of the parameters that a loss has a gradient for."""
    whole.zero_grad(set_to_none=True)
    loss.total.backward()
    return {name for name, p in whole.named_parameters() if p.grad is not None and bool(p.grad.any())}


TABLE, DELTA = "generator.embedding.tokens.weight", "model.encoder.embedding.tokens.delta"


def test_eq4_no_rtd_or_csp_gradient_reaches_the_generator() -> None:
    whole, batch = moved(model()), blocks()
    output = whole(masked=batch, spans=batch)
    for loss in (replaced_token_loss(output, batch, weight=1.0), span_loss(output, batch, weight=1.0)):
        names = reached(whole, replace(loss, total=loss.total.clone()))
        assert DELTA in names
        assert not {name for name in names if name.startswith("generator.")}
        output = whole(masked=batch, spans=batch)


def test_eq4_no_mlm_gradient_reaches_delta_or_the_discriminator() -> None:
    whole, batch = moved(model()), blocks()
    output = whole(masked=batch, spans=batch)
    names = reached(whole, masked_token_loss(output, batch, weight=1.0))
    assert TABLE in names
    assert {name.split(".")[0] for name in names} == {"generator"}


@pytest.mark.parametrize("mask_decoder", [False, True])
def test_every_parameter_learns_from_the_joint_loss(mask_decoder: bool) -> None:
    whole, batch = moved(model(mask_decoder=mask_decoder)), blocks()
    names = reached(whole, ReplacedTokensAndSpans()(whole, batch))
    # a softmax does not change when all its scores move: key biases have no gradient without position scores of
    # their own, up to rounding, and may be missing
    silent = {n for n, _ in whole.named_parameters() if n not in names}
    assert not {n for n in silent if not n.endswith("key.bias")}


def test_eq4_folding_delta_leaves_the_logits_unchanged() -> None:
    whole, batch = moved(model()).eval(), blocks()
    with torch.no_grad():
        ours = whole(spans=batch).csp_scores.logits()[:, 0]
        finished = whole.finished().eval()
        theirs = finished(input_ids=batch.input_ids, decoder_input_ids=batch.decoder_input_ids).logits
    assert torch.equal(ours, theirs)
    assert torch.equal(finished.lm_head.weight, finished.get_input_embeddings().weight)
    assert finished.config.model_type == "zcodepp"


def test_taking_up_a_finished_model_changes_nothing_of_it() -> None:
    finished = moved(model()).finished().eval()
    whole = ZCodePPForPreTraining.around(finished, generator_layers=1).eval()
    batch = blocks()
    with torch.no_grad():
        before = finished(input_ids=batch.input_ids, decoder_input_ids=batch.decoder_input_ids).logits
        assert torch.equal(whole(spans=batch).csp_scores.logits()[:, 0], before)
    assert not whole.discriminator_table.delta.any()


def test_saving_and_loading_keeps_generator_and_discriminator(tmp_path: Path) -> None:
    whole, batch = moved(model()).eval(), blocks()
    whole.save_pretrained(tmp_path)
    again = ZCodePPForPreTraining.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        before, after = (m(masked=batch, spans=batch) for m in (whole, again))
    for name in ("replaced_ids", "rtd_logits"):
        assert torch.equal(getattr(before, name), getattr(after, name)), name
    for name in ("mlm_scores", "csp_scores"):
        assert torch.equal(getattr(before, name).logits(), getattr(after, name).logits()), name


def test_the_table_is_one_parameter_not_two() -> None:
    whole = model()
    names = [name for name, p in whole.named_parameters() if p.shape == (VOCABULARY, 16)]
    assert sorted(names) == sorted([TABLE, DELTA])
    assert [n for n in whole.state_dict() if "tokens" in n] == [TABLE, DELTA]


def test_only_masked_places_are_sampled_and_the_rest_is_the_text() -> None:
    whole, batch = model(), blocks()
    replaced = whole(masked=batch, detect=False).replaced_ids
    elsewhere = torch.ones(ROWS, LENGTH, dtype=torch.bool).scatter(1, batch.places, False)
    assert torch.equal(replaced[elsewhere], batch.original_ids[elsewhere])


def test_eq2_samples_follow_the_generators_distribution() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 1, 7)
    draws = (torch.arange(70_000) + 0.5)[None] / 70_000
    drawn = sample(logits.expand(1, 70_000, 7), draws)
    shares = torch.bincount(drawn[0], minlength=7) / 70_000
    assert torch.allclose(shares, logits.softmax(-1)[0, 0], atol=2e-4)


def test_a_sample_at_either_end_of_the_draws_is_a_token() -> None:
    logits = torch.full((1, 2, 50_000), -3.0)
    ids = sample(logits, torch.tensor([[0.0, 1.0 - 1e-9]], dtype=torch.float64))
    assert ids.tolist() == [[0, 49_999]]


def test_a_token_without_probability_is_never_sampled() -> None:
    logits = torch.zeros(1, 1, 10)
    logits[..., -1] = -200.0
    for draw in (1 - 1e-9, 1 - 2**-24):
        assert sample(logits, torch.tensor([[draw]], dtype=torch.float64)).item() < 9


def test_mask_decoder_knows_absolute_positions_and_refuses_longer_input() -> None:
    whole = model(mask_decoder=True).eval()
    decoder = whole.generator.mask_decoder
    assert decoder is not None
    states = torch.randn(1, 4, 16)
    with torch.no_grad():
        before = decoder(states, None, whole.generator.encoder.positions)
        decoder.absolute.weight[2] += torch.linspace(
            -1, 1, 16
        )  # the norm takes away what is added to all alike
        after = decoder(states, None, whole.generator.encoder.positions)
    moved = (after - before).abs().amax((0, 2))
    assert moved[2] > 0.1
    with pytest.raises(ValueError, match="generator_positions=513"):
        decoder(torch.randn(1, 513, 16), None, whole.generator.encoder.positions)


def test_mask_decoder_looks_at_the_layer_below_in_both_passes() -> None:
    """DeBERTa's code: keys and values stay the states of the layer before the last."""
    whole = model(mask_decoder=True).eval()
    decoder, positions = whole.generator.mask_decoder, whole.generator.encoder.positions
    assert decoder is not None
    assert positions is not None
    states = torch.randn(2, 5, 16)
    with torch.no_grad():
        queries = states + decoder.absolute.weight[:5]
        table = positions.for_layers(states.device)()
        for _ in range(2):
            mixed = decoder.layer.attention(states, positions=table, mask=None, query_states=queries)
            queries = decoder.layer.attention_norm(queries + decoder.layer.attention_output(mixed))
            queries = decoder.layer.feed_forward_norm(queries + decoder.layer.feed_forward(queries))
        assert torch.allclose(decoder(states, None, positions), queries, atol=1e-6)


def test_scores_that_are_not_numbers_still_give_a_token() -> None:
    """An index past the vocabulary would end a run on the host, and on CUDA the process."""
    logits = torch.full((1, 3, 9), float("nan"))
    assert sample(logits, torch.tensor([[0.0, 0.5, 1.0 - 1e-9]], dtype=torch.float64)).max() < 9
