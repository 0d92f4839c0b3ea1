"""Prefixes on unmodified models: they arrive, they move nothing else, and they leave no trace."""

import copy
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, T5GemmaConfig, T5GemmaForConditionalGeneration
from transformers.models.t5gemma import T5GemmaModuleConfig

from precis.nn.normalizers import TopP
from precis.tuning import MethodSettings, NoPrefix, Prefix, attach, attached, method
from precis.tuning.discourse import Layer, Tuning, Uniform
from precis.tuning.prefix import ALL_SITES, Site, TopLayers
from precis_text.errors import UserError
from tests.conformance import random_batch
from tests.tiny_models import tiny
from tests.tuning.bases import KINDS, LAYERS, LENGTH, SEGMENTS, attach_loud, base, logits, plain


@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_reach_all_three_sites_of_every_layer(kind: str) -> None:
    model = base(kind)
    batch = random_batch(model)
    attachment = attach_loud(model, plain())
    with attachment.attention() as matrices:
        logits(model, batch)
    source, target = batch[0].shape[1], batch[2].shape[1]
    assert set(matrices) == {(site, layer) for site in Site for layer in range(LAYERS)}
    for (site, _), weights in matrices.items():
        keys = {Site.ENCODER: source, Site.CROSS: source, Site.DECODER: target}[site]
        if kind == "prophetnet" and site is Site.DECODER:
            keys += 1  # a predicting state's own key
        assert weights.shape[-1] == LENGTH + keys
        assert float(weights[..., :LENGTH].min()) > 0.0


def test_prefixes_reach_stacks_that_have_a_configuration_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T5's; transformers 5.17 passes over them, since theirs is of the model's own class: the prefix did nothing."""

    def as_in_5_17(model: PreTrainedModel, name: str) -> None:
        model.config._attn_implementation_internal = name

    monkeypatch.setattr(PreTrainedModel, "set_attn_implementation", as_in_5_17)
    model = base("t5")
    attachment = attach_loud(model, plain())
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    assert set(matrices) == {(site, layer) for site in Site for layer in range(LAYERS)}


@pytest.mark.parametrize("site", ALL_SITES)
def test_a_site_that_is_left_out_has_no_columns(site: str) -> None:
    model = base()
    attachment = attach_loud(model, plain(sites=(site,)))
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    for (where, _), weights in matrices.items():
        keys = 8 if where is Site.DECODER else 23
        assert weights.shape[-1] == keys + LENGTH * (where.value == site)


def test_eq1_the_first_layer_computes_what_the_equation_says() -> None:
    model = base()
    ids, _, _ = random_batch(model)
    attachment = attach_loud(model, plain())
    attention = model.model.encoder.layers[0].self_attn
    seen: dict[Any, Any] = {}
    attention.register_forward_hook(lambda _, args, output: seen.update(states=args[0], mixed=output[0]))
    with torch.no_grad():
        model.get_encoder()(input_ids=ids)

        def heads(x: torch.Tensor) -> torch.Tensor:
            return x.unflatten(-1, (2, -1)).transpose(1, 2)

        q, k, v = (
            heads(linear(seen["states"])) for linear in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        columns = attachment.prefixes.table(Site.ENCODER)
        assert columns is not None
        assert columns.table is not None
        keys, values = columns.table[0]
        k, v = (torch.cat([p.expand(3, -1, -1, -1), x], 2) for p, x in ((keys, k), (values, v)))
        mixed = torch.softmax(q @ k.transpose(-1, -2) * attention.scaling, -1) @ v
        expected = attention.out_proj(mixed.transpose(1, 2).flatten(-2))
    torch.testing.assert_close(seen["mixed"], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_detaching_restores_the_base_exactly(kind: str) -> None:
    model = base(kind)
    model.get_input_embeddings().weight.requires_grad_(False)  # a base that is frozen in part
    batch = random_batch(model)
    before, state = logits(model, batch), copy.deepcopy(model.state_dict())
    trained = {name: p.requires_grad for name, p in model.named_parameters()}
    implementation = model.config._attn_implementation
    places = {name: dict(module.__dict__) for name, module in model.named_modules()}
    attachment = attach_loud(model, method("hierblock+softsa", Prefix(length=LENGTH), SEGMENTS))
    assert not torch.equal(logits(model, batch), before)
    assert attached(model) is attachment
    attachment.detach()
    assert torch.equal(logits(model, batch), before)
    assert attached(model) is None
    assert {name: p.requires_grad for name, p in model.named_parameters()} == trained
    assert model.config._attn_implementation == implementation
    assert list(model.state_dict()) == list(state)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    for name, module in model.named_modules():
        assert set(module.__dict__) == set(places[name])
        assert not module._forward_pre_hooks
        assert not module._forward_hooks


def test_attaching_again_gives_the_same_logits_as_before() -> None:
    model = base()
    batch = random_batch(model)
    first = attach_loud(model, plain(), seed=4)
    expected = logits(model, batch)
    first.detach()
    attach_loud(model, plain(), seed=5).detach()
    attach_loud(model, plain(), seed=4)
    assert torch.equal(logits(model, batch), expected)


def test_a_layer_without_a_prefix_is_the_bases_own() -> None:
    model = base()
    attachment = attach_loud(model, plain(layers=TopLayers(count=1)))
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    columns = [matrices[Site.ENCODER, layer].shape[-1] - 23 for layer in range(LAYERS)]
    assert columns == [0, 0, LENGTH]


@pytest.mark.parametrize("kind", ["bart", "zcodepp"])
def test_sparse_attention_without_a_prefix_fine_tunes_the_whole_model(kind: str) -> None:
    model = base(kind)
    ids, mask, labels = random_batch(model)
    before = logits(model, (ids, mask, labels))
    dense = attach(model, Tuning(prefix=NoPrefix(), encoder=Uniform(layer=Layer(normalizer=TopP(mass=1.0)))))
    torch.testing.assert_close(logits(model, (ids, mask, labels)), before, atol=1e-5, rtol=1e-5)
    dense.detach()
    attachment = attach(model, method("truncsa", NoPrefix(), MethodSettings(mass=0.5)))
    assert not torch.allclose(logits(model, (ids, mask, labels)), before, atol=1e-3)
    model.train()(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    assert attachment.count().stored == 0
    assert attachment.count().trainable == attachment.count().base


def test_attention_matrices_are_distributions_over_prefix_and_input() -> None:
    model = base()
    attachment = attach_loud(model, plain())
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    for weights in matrices.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    before = dict(matrices)
    logits(model, random_batch(model, seed=3))  # outside: nothing is collected
    assert all(matrices[key] is weights for key, weights in before.items())


def test_looking_at_attention_changes_no_logit() -> None:
    model = base()
    batch = random_batch(model)
    attachment = attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    expected = logits(model, batch)
    with attachment.attention():
        torch.testing.assert_close(logits(model, batch), expected, atol=1e-5, rtol=1e-5)


def test_soft_sparse_attention_is_random_in_training_and_fixed_otherwise() -> None:
    model = base()
    batch = random_batch(model)
    attach_loud(model, method("softsa", Prefix(length=LENGTH)))
    assert torch.equal(logits(model, batch), logits(model, batch))
    model.train()
    assert not torch.equal(logits(model, batch), logits(model, batch))


def test_a_base_without_the_attention_interface_is_refused_in_one_line() -> None:
    led, _ = tiny("led")
    with pytest.raises(
        UserError, match=r"LEDForConditionalGeneration does not use transformers' attention"
    ) as raised:
        attach(led, plain())
    assert "\n" not in str(raised.value)


def t5gemma(*, key_heads: int, cap: float | None = None) -> T5GemmaForConditionalGeneration:
    """A random T5Gemma with four query heads."""
    size = {
        "vocab_size": 20,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "head_dim": 4,
    }
    part = T5GemmaModuleConfig(
        **size,
        num_attention_heads=4,
        num_key_value_heads=key_heads,
        query_pre_attn_scalar=4,
        attn_logit_softcapping=cap,
    )
    return T5GemmaForConditionalGeneration(
        T5GemmaConfig(encoder=part.to_dict(), decoder=part.to_dict(), vocab_size=20)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key_heads": 2}, r"2 query heads share a key head \(grouped-query attention\)"),
        ({"key_heads": 4, "cap": 50.0}, "scores are capped at 50"),
    ],
)
def test_attention_of_another_kind_is_refused_in_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        attach(t5gemma(**options), plain())
    assert "\n" not in str(raised.value)


def test_a_model_that_only_decodes_is_refused() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    small = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=20))
    with pytest.raises(UserError, match="GPT2LMHeadModel is not an encoder-decoder"):
        attach(small, plain())


def test_a_second_prefix_is_refused_and_so_is_detaching_twice() -> None:
    model = base()
    attachment = attach(model, plain())
    with pytest.raises(UserError, match="already has a prefix"):
        attach(model, plain())
    attachment.detach()
    with pytest.raises(UserError, match="no longer attached"):
        attachment.detach()


def test_an_attached_model_cannot_be_copied_by_mistake() -> None:
    model = base()
    attach(model, plain())
    with pytest.raises(UserError, match="cannot be copied"):
        copy.deepcopy(model)


@pytest.mark.parametrize("kind", ["bart", "zcodepp"])
@torch.no_grad()
def test_a_text_of_fewer_tokens_than_segments_is_what_it_is_alone(kind: str) -> None:
    model = base(kind).eval().double()  # so that what is left in single precision is rounding
    attach(model, method("uniblock", Prefix(length=LENGTH), MethodSettings(encoder_segments=3)))
    ids, labels = torch.tensor([[5, 6, 7], [5, 6, 0]]), torch.tensor([[5], [5]])
    together = model(input_ids=ids, attention_mask=(ids > 0).long(), labels=labels).logits
    alone = model(input_ids=ids[1:, :2], labels=labels[1:]).logits
    torch.testing.assert_close(together[1:], alone, atol=1e-12, rtol=1e-12)
