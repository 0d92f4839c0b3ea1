"""`output_attentions=True` gives the weights that were used, and the numbers stay what they are."""

from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from tests.conformance import random_batch
from tests.small_models import SEQ2SEQ, classifier, seq2seq

CLOSE: dict[str, Any] = {"atol": 1e-5, "rtol": 1e-5}


def inputs(model: PreTrainedModel, *, target: int = 8) -> dict[str, torch.Tensor]:
    ids, mask, labels = random_batch(model, target=target)
    decoder_ids = model.prepare_decoder_input_ids_from_labels(labels.clamp(min=5))
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoder_ids}


@torch.no_grad()
@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_shapes_sums_and_unchanged_logits(kind: str) -> None:
    model = seq2seq(kind)
    given = inputs(model)
    plain, output = model(**given), model(**given, output_attentions=True, all_streams=True)
    torch.testing.assert_close(output.logits, plain.logits, **CLOSE)
    sizes = {
        "encoder_attentions": (model.config.encoder_layers, (3, 4, 23, 23)),
        "decoder_attentions": (2, (3, 4, 8, 8)),
        "cross_attentions": (2, (3, 4, 8, 23)),
    }
    real = given["attention_mask"].bool()
    for name, (layers, shape) in sizes.items():
        weights = getattr(output, name)
        assert [w.shape for w in weights] == [shape] * layers
        for made in weights:
            rows = made.sum(-1)
            rows = rows.movedim(1, -1)[real] if name == "encoder_attentions" else rows
            torch.testing.assert_close(rows, torch.ones_like(rows), **CLOSE)
            if name == "decoder_attentions":
                assert not made.triu(1).any()
            else:
                hidden = made.movedim(-1, 1)[~real]
                assert not hidden[..., : 8 if name == "cross_attentions" else 1].any()


@torch.no_grad()
@pytest.mark.parametrize("kind", ["zcodepp-streams", "prophetnet"])
def test_predicting_states_have_weights_too(kind: str) -> None:
    model = seq2seq(kind)
    output = model(**inputs(model), output_attentions=True, all_streams=True)
    assert [w.shape for w in output.decoder_ngram_attentions] == [(3, 2, 4, 8, 9)] * 2
    assert [w.shape for w in output.ngram_cross_attentions] == [(3, 2, 4, 8, 23)] * 2
    for made in (*output.decoder_ngram_attentions, *output.ngram_cross_attentions):
        torch.testing.assert_close(made.sum(-1), torch.ones(3, 2, 4, 8), **CLOSE)
    first, second = output.decoder_ngram_attentions[0].unbind(1)
    farthest = 0 if kind == "prophetnet" else -1  # ProphetNet's first stream predicts the next token
    assert not first[..., :8].triu(1 + farthest)[..., 1:, :].any()
    assert not second[..., :8].triu(farthest)[..., 2:, :].any()
    assert first[..., 8].min() > 0  # its own key


@torch.no_grad()
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_weights_times_values_are_what_the_attention_puts_out(kind: str, part: str) -> None:
    model = seq2seq(kind)
    stack = model.model.encoder.stack if part == "encoder" else model.model.decoder
    attention = (stack.cross_attentions() if part == "cross" else stack.self_attentions())[1]
    apart = kind == "zcodepp" and part == "encoder"  # there the layer holds the last projection
    seen: dict[Any, Any] = {}
    attention.value.register_forward_hook(lambda _, __, out: seen.setdefault("values", out))
    last = stack.layers[1].attention_output if apart else attention.output
    last.register_forward_pre_hook(lambda _, args: seen.setdefault("mixed", args[0]))
    output = model(**inputs(model), output_attentions=True)
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    weights = getattr(output, names[part])[1]
    main, keys = weights.shape[-2:]
    values = seen["values"][:, :keys].unflatten(-1, (4, -1)).transpose(1, 2)
    mixed = (weights @ values).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(mixed, seen["mixed"][:, :main], **CLOSE)


@torch.no_grad()
def test_a_chunk_has_the_weights_that_it_has_alone() -> None:
    model = seq2seq("zcodepp-chunks")
    ids, mask, _ = random_batch(model)
    whole = model.get_encoder()(ids, mask, output_attentions=True).attentions
    alone = model.get_encoder()(ids[:, :8], output_attentions=True).attentions
    torch.testing.assert_close(whole[0][:, :, :8, :8], alone[0], **CLOSE)
    assert not whole[0][:, :, :8, 8:].any()
    assert whole[-1][0, :, :8, 8:17].min() > 0  # the last layer sees everything


@torch.no_grad()
def test_the_configuration_asks_for_them_as_well() -> None:
    for model in (seq2seq("zcodepp"), seq2seq("prophetnet")):
        model.config.output_attentions = True
        output = model(**inputs(model))
        assert len(output.cross_attentions) == 2
        assert len(output.encoder_attentions) == model.config.encoder_layers
    one = classifier()
    assert len(one(torch.full((2, 5), 7), output_attentions=True).attentions) == 3


@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_generate_gives_the_weights_of_each_step(kind: str) -> None:
    model = seq2seq(kind)
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "num_beams": 2, "do_sample": False}
    ids = inputs(model)["input_ids"]
    plain = model.generate(ids, **options)
    written = model.generate(ids, **options, output_attentions=True, return_dict_in_generate=True)
    assert torch.equal(written.sequences, plain)
    assert len(written.encoder_attentions) == model.config.encoder_layers
    assert [step[0].shape[-1] for step in written.decoder_attentions] == [1, 2, 3]
    assert [step[0].shape[-2:] for step in written.cross_attentions] == [(1, 23)] * 3


@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_gradients_reach_weights_and_hidden_states(kind: str) -> None:
    model = seq2seq(kind)
    output = model(**inputs(model), output_attentions=True, output_hidden_states=True)
    kept = [
        output.encoder_hidden_states[0],
        output.encoder_hidden_states[1],
        output.decoder_hidden_states[0],
        output.decoder_hidden_states[1],
        output.encoder_attentions[0],
        output.decoder_attentions[0],
        output.cross_attentions[0],
    ]
    for tensor in kept:
        tensor.retain_grad()
    output.logits.sum().backward()
    assert all(tensor.grad is not None and tensor.grad.any() for tensor in kept)


@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_gradients_reach_hidden_states_without_the_plain_path(kind: str) -> None:
    model = seq2seq(kind)
    output = model(**inputs(model), output_hidden_states=True, all_streams=True)
    kept = [*output.encoder_hidden_states, *output.decoder_hidden_states[:2]]
    for tensor in kept:
        tensor.retain_grad()
    output.logits.sum().backward()
    assert all(tensor.grad is not None and tensor.grad.any() for tensor in kept)


@torch.no_grad()
def test_a_prefix_comes_before_the_other_keys() -> None:
    from precis.tuning.attach import attach
    from precis.tuning.discourse import method
    from precis.tuning.prefix import Prefix

    model = seq2seq("zcodepp")
    attach(model, method("prefix", Prefix(length=3)))
    output = model(**inputs(model), output_attentions=True)
    assert output.decoder_attentions[0].shape == (3, 4, 8, 3 + 8)
    torch.testing.assert_close(output.decoder_attentions[0].sum(-1), torch.ones(3, 4, 8), **CLOSE)
