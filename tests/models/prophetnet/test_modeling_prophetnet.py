"""ProphetNet: the claims of sections 2.2 to 2.4 about its streams and its loss, on small random models.

That its numbers are the paper's is shown in `tests/parity/test_prophetnet.py`.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM
from transformers import ProphetNetConfig as TheirConfig
from transformers import ProphetNetForConditionalGeneration as Theirs

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration, ProphetNetModel
from precis.nn.streams import StreamLayout, ahead, attenuated, whole_target
from tests.conformance import check_seq2seq, random_batch


def small(**changes: Any) -> ProphetNetConfig:
    return ProphetNetConfig(
        **{
            "vocab_size": 60,
            "hidden_size": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 40,
            "decoder_ffn_dim": 48,
            "max_position_embeddings": 48,
            "decoder_buckets": 8,
            "decoder_max_distance": 10,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "activation_dropout": 0.0,
            "init_std": 0.2,
            "decoder_start_token_id": 2,
            **changes,
        }
    )


def make(**changes: Any) -> ProphetNetForConditionalGeneration:
    torch.manual_seed(0)
    return ProphetNetForConditionalGeneration(small(**changes)).eval()


def given(model: ProphetNetForConditionalGeneration, *, target: int = 12) -> dict[str, torch.Tensor]:
    """Inputs of a padded batch, with a whole target."""
    ids, mask, labels = random_batch(model, target=target)
    decoder_ids = model.prepare_decoder_input_ids_from_labels(labels.clamp(min=3))
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoder_ids}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ngram": 1, "decoder_layers": 1}, marks=pytest.mark.many_steps),
        {"ngram": 2},
        pytest.param({"ngram": 3, "encoder_layers": 1}, marks=pytest.mark.many_steps),
    ],
    ids=str,
)
def test_conforms(changes: dict[str, int]) -> None:
    check_seq2seq(lambda: make(**changes))


# --- shape


def test_the_large_one_has_391_million_parameters() -> None:
    with torch.device("meta"):
        model = ProphetNetForConditionalGeneration(ProphetNetConfig())
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(391, abs=0.5)


def test_streams_share_every_parameter_but_their_starting_vector() -> None:
    """Section 2.3: "we share the parameters of each predicting stream and main stream"."""
    sizes = [sum(p.numel() for p in make(ngram=n).parameters()) for n in (1, 2, 3)]
    assert [more - fewer for fewer, more in pairwise(sizes)] == [32, 32]


def test_the_auto_classes_know_it_and_still_know_transformers_own(tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is ProphetNetConfig
    assert type(AutoModelForSeq2SeqLM.from_pretrained(tmp_path)) is ProphetNetForConditionalGeneration
    assert type(AutoModel.from_pretrained(tmp_path)) is ProphetNetModel
    with torch.device("meta"):
        theirs = AutoModelForSeq2SeqLM.from_config(TheirConfig(num_encoder_layers=1, num_decoder_layers=1))
    assert type(theirs) is Theirs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ngram": 0}, "one predicting stream or more"),
        ({"attenuation": -0.1}, "outside"),
        ({"attenuation": 1.5}, "outside"),
        ({"hidden_act": "swish"}, "'swish' is not known; use one of"),
        ({"decoder_attention_heads": 5}, "not a multiple of decoder_attention_heads=5"),
        ({"encoder_attention_heads": 3}, "not a multiple of encoder_attention_heads=3"),
    ],
    ids=str,
)
def test_a_shape_that_cannot_be_is_refused(changes: dict[str, float | str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_the_head_stays_tied_when_the_vocabulary_grows() -> None:
    model = make()
    model.resize_token_embeddings(64)
    assert model.lm_head.weight is model.get_input_embeddings().weight
    assert model(**given(model)).logits.shape[-1] == 64


# --- streams


@pytest.mark.parametrize("ngram", [1, 2, 3, 4])
@torch.no_grad()
def test_cached_steps_of_every_stream_equal_teacher_forcing(ngram: int) -> None:
    """A prefix of several tokens first, then one by one, then several at once as when drafts are verified."""
    model = make(ngram=ngram)
    inputs = given(model, target=16)
    whole = model(**inputs, all_streams=True).future_logits
    encoded = model.get_encoder()(inputs["input_ids"], inputs["attention_mask"])
    cache, steps = None, []
    for first, last in ((0, 5), *((i, i + 1) for i in range(5, 12)), (12, 16)):
        step = model(
            attention_mask=inputs["attention_mask"],
            encoder_outputs=encoded,
            decoder_input_ids=inputs["decoder_input_ids"][:, first:last],
            past_key_values=cache,
            all_streams=True,
            use_cache=True,
        )
        cache = step.past_key_values
        assert cache.get_seq_length() == last  # predicting states leave nothing behind
        steps.append(step.future_logits)
    torch.testing.assert_close(torch.cat(steps, dim=2), whole, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_eq2_looking_ahead_gives_the_states_of_teacher_forcing() -> None:
    """Stream k from place i is the state that predicts place i + k: what speculative decoding drafts with."""
    model = make(ngram=3)
    inputs = given(model)
    encoded = model.get_encoder()(inputs["input_ids"], inputs["attention_mask"]).last_hidden_state

    def states(layout: StreamLayout, length: int) -> torch.Tensor:
        return model.model.decode(
            inputs["decoder_input_ids"][:, :length],
            encoded,
            layout=layout,
            attention_mask=inputs["attention_mask"],
        )[1]

    trained = states(whole_target(0, 12, range(3)), 12).unflatten(1, (3, 12))  # (b n t d)
    looking = states(ahead(0, 7, range(3)), 7).unflatten(1, (3, 7))
    for stream in range(3):
        torch.testing.assert_close(
            looking[:, stream], trained[:, stream, stream : stream + 7], atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize("changed", [1, 4, 7])
@torch.no_grad()
def test_a_stream_sees_no_token_later_than_its_own_past(changed: int) -> None:
    """Token `changed` of the input reaches stream k from place `changed` + k on, and not before."""
    model = make(ngram=3)
    inputs = given(model, target=11)
    before = model(**inputs, all_streams=True).future_logits
    inputs["decoder_input_ids"][:, changed] += 1
    after = model(**inputs, all_streams=True).future_logits
    for stream in range(3):
        blind, seeing = slice(0, changed + stream), slice(changed + stream, None)
        assert torch.equal(after[:, stream, blind], before[:, stream, blind])
        assert (after[:, stream, seeing] - before[:, stream, seeing]).abs().amax(-1).min() > 1e-4


@pytest.mark.parametrize("stream", [0, 1, 2])
@torch.no_grad()
def test_predicting_states_are_seen_by_themselves_alone(stream: int) -> None:
    """Another starting vector of one stream changes neither the main stream nor the other streams."""
    model = make(ngram=3)
    inputs = given(model)
    options = {"all_streams": True, "output_hidden_states": True}
    before = model(**inputs, **options)
    model.model.decoder.streams.weight[
        stream - 1
    ] *= -1  # stream 0 has the last row; norms take away what is added
    after = model(**inputs, **options)
    for kept, other in zip(after.decoder_hidden_states, before.decoder_hidden_states, strict=True):
        assert torch.equal(kept, other)
    for k in range(3):
        moved = (after.future_logits[:, k] - before.future_logits[:, k]).abs().amax(-1)
        assert moved.min() > 1e-3 if k == stream else not moved.any()


@torch.no_grad()
def test_the_first_guesses_of_a_stream_know_the_start_token_alone() -> None:
    model = make(ngram=3)
    inputs = given(model)
    before = model(**inputs, all_streams=True).future_logits
    inputs["decoder_input_ids"][:, 1:] = 7
    after = model(**inputs, all_streams=True).future_logits
    for k in range(3):
        assert torch.equal(after[:, k, : k + 1], before[:, k, : k + 1])


@torch.no_grad()
def test_the_next_tokens_logits_do_not_depend_on_the_other_streams() -> None:
    model = make(ngram=3)
    inputs = given(model)
    alone, among = model(**inputs), model(**inputs, all_streams=True)
    assert alone.future_logits is None
    torch.testing.assert_close(alone.logits, among.logits, atol=1e-6, rtol=1e-6)


# --- loss


def test_with_one_stream_the_loss_is_teacher_forcing() -> None:
    model = make(ngram=1)
    ids, mask, labels = random_batch(model)
    found = model(input_ids=ids, attention_mask=mask, labels=labels)
    expected = F.cross_entropy(found.logits.flatten(0, 1), labels.flatten())
    assert torch.equal(found.loss, expected)
    assert torch.equal(found.future_logits[:, 0], found.logits)


@pytest.mark.parametrize(("ngram", "gamma"), [(2, 1.0), (3, 0.5)])
def test_eq11_loss_is_the_weighted_sum_over_the_places_that_eq3_names(ngram: int, gamma: float) -> None:
    model = make(ngram=ngram, attenuation=gamma)
    ids, mask, labels = random_batch(model)
    found = model(input_ids=ids, attention_mask=mask, labels=labels)
    log = torch.log_softmax(found.future_logits, dim=-1)
    weights = [gamma**k / sum(gamma**i for i in range(ngram)) for k in range(ngram)]  # Eq. 10
    assert weights == pytest.approx(attenuated(ngram, gamma))
    total, real = torch.zeros(()), 0
    for b in range(labels.shape[0]):
        for i in range(labels.shape[1]):
            if labels[b, i] == -100:
                continue
            real += 1
            for k in range(min(ngram, i + 1)):
                total = total - weights[k] * log[b, k, i, labels[b, i]]
    torch.testing.assert_close(found.loss, total / real, atol=1e-6, rtol=1e-6)
    shared = model(input_ids=ids, attention_mask=mask, labels=labels, num_items_in_batch=5 * real).loss
    torch.testing.assert_close(shared * 5, found.loss, atol=1e-6, rtol=1e-6)


def test_all_streams_learn_a_text_by_heart() -> None:
    model = make(ngram=3, init_std=0.1, encoder_layers=1, decoder_layers=1).train()
    ids, mask, labels = random_batch(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(30):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    guesses = model(input_ids=ids, attention_mask=mask, labels=labels).future_logits.argmax(-1)  # (b n t)
    real = labels != -100
    for k in range(3):
        assert torch.equal(guesses[:, k, k:][real[:, k:]], labels[:, k:][real[:, k:]])


# --- generation


@pytest.mark.parametrize("beams", [1, 3])
def test_generation_encodes_once_and_computes_one_predicting_state_a_token(beams: int) -> None:
    model = make(ngram=3)
    ids, mask, _ = random_batch(model)
    encoded, states, source_keys = [], [], []
    model.get_encoder().register_forward_hook(lambda *_: encoded.append(1))
    for layer in model.get_decoder().layers:
        layer.register_forward_pre_hook(lambda _, inputs: states.append(tuple(inputs[0].shape)))
        layer.cross_attention.key.register_forward_hook(lambda *_: source_keys.append(1))
    options = {"num_beams": beams, "max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    model.generate(input_ids=ids, attention_mask=mask, **options)
    assert len(encoded) == 1
    assert states == [(3 * beams, 2, 32)] * 6 * 2  # steps * layers; a main state and one of stream 0
    assert len(source_keys) == 2  # layers: keys of the source are made at the first step only


def test_no_trigram_is_written_twice_when_that_is_forbidden() -> None:
    model = make()
    ids, mask, _ = random_batch(model)
    options = {"num_beams": 4, "max_new_tokens": 16, "min_new_tokens": 16, "no_repeat_ngram_size": 3}
    for row in model.generate(input_ids=ids, attention_mask=mask, **options).tolist():
        trigrams = list(zip(row, row[1:], row[2:], strict=False))
        assert len(trigrams) == len(set(trigrams))


# --- limits


@torch.no_grad()
def test_positions_beyond_the_table_give_one_clear_error() -> None:
    model = make(max_position_embeddings=20, decoder_positions=12)
    ids, target = torch.full((1, 19), 5), torch.full((1, 10), 5)
    assert model(input_ids=ids, decoder_input_ids=target, all_streams=True).logits.shape == (1, 10, 60)
    with pytest.raises(ValueError, match="20 tokens: this model has positions for 19; shorten the input"):
        model(input_ids=torch.full((1, 20), 5), decoder_input_ids=target)
    with pytest.raises(ValueError, match="11 target tokens: this model has positions for 10"):
        model(input_ids=ids, decoder_input_ids=torch.full((1, 11), 5))
    step = model(input_ids=ids, decoder_input_ids=target, use_cache=True)
    with pytest.raises(ValueError, match="11 target tokens: this model has positions for 10"):
        model(input_ids=ids, decoder_input_ids=target[:, :1], past_key_values=step.past_key_values)


@torch.no_grad()
def test_at_the_end_of_the_table_streams_may_still_look_further() -> None:
    """Their guesses beyond it are of no use, and disturb nothing."""
    model = make(ngram=3, decoder_positions=12)
    ids, target = torch.full((1, 9), 5), torch.arange(3, 13)[None]
    source = model.get_encoder()(ids).last_hidden_state
    layout = ahead(0, 10, range(3))
    assert int(layout.places.max()) == 11
    _, states = model.model.decode(target, source, layout=layout, attention_mask=None)
    found = model.lm_head(states[:, :10])
    expected = model(input_ids=ids, decoder_input_ids=target).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"decoder_input_ids": torch.full((1, 3), 5)}, "exactly one of input_ids and inputs_embeds"),
        ({"input_ids": torch.full((1, 3), 5)}, "the decoder needs decoder_input_ids"),
        (
            {
                "input_ids": torch.full((1, 3), 5),
                "labels": torch.full((1, 3), 5),
                "decoder_position_ids": torch.tensor([[0, 1, 7]]),
            },
            "streams would predict beyond the ends of spans",
        ),
    ],
)
def test_missing_inputs_are_named(inputs: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()(**inputs)


@torch.no_grad()
def test_embedded_inputs_give_what_their_ids_give() -> None:
    model = make()
    inputs = given(model)
    expected = model(**inputs, all_streams=True).future_logits
    table = model.get_input_embeddings()
    found = model(
        inputs_embeds=table(inputs["input_ids"]),
        attention_mask=inputs["attention_mask"],
        decoder_inputs_embeds=table(inputs["decoder_input_ids"]),
        all_streams=True,
        return_dict=False,
    )
    assert torch.equal(found[0], expected[:, 0])
    assert torch.equal(found[-1], expected)


@torch.no_grad()
@pytest.mark.parametrize("every", [True, False])
def test_the_base_model_gives_the_states_that_logits_are_made_of(every: bool) -> None:
    model = make()
    inputs = given(model)
    base = model.base_model
    assert isinstance(base, ProphetNetModel)
    states = base(**inputs, all_streams=every, output_hidden_states=True)
    assert states.future_states.shape == (3, 2 if every else 1, 12, 32)
    assert torch.equal(model.lm_head(states.future_states[:, 0]), model(**inputs, all_streams=every).logits)
    assert torch.equal(states.last_hidden_state, states.decoder_hidden_states[-1])


def test_the_loss_is_a_function_of_the_next_tokens_logits() -> None:
    model = make()
    ids, mask, labels = random_batch(model)
    output = model(input_ids=ids, attention_mask=mask, labels=labels)
    (reached,) = torch.autograd.grad(output.loss, output.logits, allow_unused=True)
    assert reached is not None
    assert reached.any()
