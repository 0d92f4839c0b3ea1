"""Prefixes on unmodified models: they arrive, they train alone, they move nothing else, and they leave no trace."""

import copy

import conformance
import pytest
import torch
from conformance import (
    check_cached_equals_uncached,
    check_decoder_cannot_see_the_future,
    check_generation,
    check_padding_changes_nothing,
    random_batch,
)
from tiny_models import tiny
from tuning.bases import KINDS, LAYERS, attach_loud, base, logits

from precis.errors import UserError
from precis.nn.normalizers import TopP
from precis.tuning import METHODS, MethodSettings, NoPrefix, Prefix, attach, attached, method
from precis.tuning.discourse import Layer, Tuning, Uniform
from precis.tuning.prefix import ALL_SITES, FromTokens, Reparametrized, Site, TopLayers

LENGTH = 5
SEGMENTS = MethodSettings(encoder_segments=3, decoder_segments=2, target_length=7)
OPTIONS = {"max_new_tokens": 9, "min_new_tokens": 9, "do_sample": False}


def plain(**options):
    return Tuning(prefix=Prefix(length=LENGTH, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_reach_all_three_sites_of_every_layer(kind):
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


@pytest.mark.parametrize("site", ALL_SITES)
def test_a_site_that_is_left_out_has_no_columns(site):
    model = base()
    attachment = attach_loud(model, plain(sites=(site,)))
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    for (where, _), weights in matrices.items():
        keys = 8 if where is Site.DECODER else 23
        assert weights.shape[-1] == keys + LENGTH * (where.value == site)


def test_eq1_the_first_layer_computes_what_the_equation_says():
    model = base()
    ids, _, _ = random_batch(model)
    attachment = attach_loud(model, plain())
    attention = model.model.encoder.layers[0].self_attn
    seen = {}
    attention.register_forward_hook(lambda _, args, output: seen.update(states=args[0], mixed=output[0]))
    with torch.no_grad():
        model.get_encoder()(input_ids=ids)

        def heads(x):
            return x.unflatten(-1, (2, -1)).transpose(1, 2)

        q, k, v = (
            heads(linear(seen["states"])) for linear in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        keys, values = attachment.prefixes.table(Site.ENCODER).table[0]
        k, v = (torch.cat([p.expand(3, -1, -1, -1), x], 2) for p, x in ((keys, k), (values, v)))
        mixed = torch.softmax(q @ k.transpose(-1, -2) * attention.scaling, -1) @ v
        expected = attention.out_proj(mixed.transpose(1, 2).flatten(-2))
    torch.testing.assert_close(seen["mixed"], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_only_prefixes_train_and_all_of_each(kind):
    model = base(kind).train()
    ids, mask, labels = random_batch(model)
    attachment = attach_loud(model, plain())
    model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    own = {id(p) for p in attachment.prefixes.parameters()}
    for name, parameter in model.named_parameters():
        if id(parameter) in own:
            # every key and value of every column has an influence
            assert (parameter.grad.abs().sum((2, 4)) > 0).all(), name
        else:
            assert parameter.grad is None
            assert not parameter.requires_grad
    count = attachment.count()
    heads = attachment.prefixes.shapes[Site.ENCODER]
    assert count.trainable == 3 * LAYERS * 2 * LENGTH * heads.heads * heads.head_width == count.stored
    assert count.trainable + count.base == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["hierblock", "truncsa", "hierblock+softsa"])
def test_cached_is_uncached_and_padded_is_unpadded(kind, name):
    model = base(kind)
    attach_loud(model, method(name, Prefix(length=LENGTH), SEGMENTS))
    check_cached_equals_uncached(model)
    check_padding_changes_nothing(model)
    check_decoder_cannot_see_the_future(model)


@pytest.mark.parametrize("name", METHODS)
def test_in_double_precision_both_hold_to_1e_12(monkeypatch, name):
    """So what is left in single precision is rounding."""
    monkeypatch.setattr(conformance, "ATOL", 1e-12)
    model = base().double()
    attach_loud(model, method(name, Prefix(length=LENGTH), SEGMENTS))
    check_cached_equals_uncached(model)
    check_padding_changes_nothing(model)


@pytest.mark.parametrize("name", METHODS)
def test_on_bart_as_it_is_initialised_both_hold_to_1e_6(monkeypatch, name):
    monkeypatch.setattr(conformance, "ATOL", 1e-6)
    model = base(std=0.02)
    attach_loud(model, method(name, Prefix(length=LENGTH), SEGMENTS))
    check_cached_equals_uncached(model)
    check_padding_changes_nothing(model)


@pytest.mark.parametrize("kind", ["bart", "t5", "zcodepp"])
def test_beams_caches_and_batches_write_the_same(kind):
    model = base(kind)
    attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    check_generation(model)


def test_prefixes_change_what_is_written():
    model = base()
    ids, mask, _ = random_batch(model)
    before = model.generate(input_ids=ids, attention_mask=mask, num_beams=3, **OPTIONS)
    attach_loud(model, plain())
    assert not torch.equal(model.generate(input_ids=ids, attention_mask=mask, num_beams=3, **OPTIONS), before)


def test_decoder_positions_do_not_shift():
    model = base()
    batch = random_batch(model)
    asked = []
    model.model.decoder.embed_positions.register_forward_hook(
        lambda _, __, kwargs, output: asked.append(kwargs["position_ids"]), with_kwargs=True
    )
    logits(model, batch)
    attach_loud(model, plain())
    logits(model, batch)
    assert torch.equal(asked[0], asked[1])
    asked.clear()
    model.generate(input_ids=batch[0], attention_mask=batch[1], num_beams=2, **OPTIONS)
    assert [int(positions[-1]) for positions in asked] == list(range(len(asked)))


def test_a_target_as_long_as_the_table_of_positions_still_fits():
    model = base()
    attach_loud(model, plain())
    ids, mask, _ = random_batch(model)
    longest = torch.full((3, 64), 7)
    assert torch.isfinite(model(input_ids=ids, attention_mask=mask, decoder_input_ids=longest).logits).all()


@pytest.mark.parametrize("kind", KINDS)
def test_detaching_restores_the_base_exactly(kind):
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


def test_attaching_again_gives_the_same_logits_as_before():
    model = base()
    batch = random_batch(model)
    first = attach_loud(model, plain(), seed=4)
    expected = logits(model, batch)
    first.detach()
    attach_loud(model, plain(), seed=5).detach()
    attach_loud(model, plain(), seed=4)
    assert torch.equal(logits(model, batch), expected)


@pytest.mark.parametrize("kind", ["bart", "t5", "zcodepp", "prophetnet"])
@pytest.mark.parametrize("keys", [None, Reparametrized(width=16)])
def test_gradient_checkpointing_changes_no_gradient(kind, keys):
    prefix = Prefix(length=LENGTH) if keys is None else Prefix(length=LENGTH, keys=keys)
    found = []
    for checkpointing in (False, True):
        model = base(kind).train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        ids, mask, labels = random_batch(model)
        attachment = attach_loud(model, method("hierblock+softsa", prefix, SEGMENTS))
        torch.manual_seed(7)  # SoftSA's noise
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        found.append([p.grad for p in attachment.prefixes.parameters()])
    for plainly, recomputed in zip(*found, strict=True):
        torch.testing.assert_close(recomputed, plainly, atol=1e-6 * float(plainly.abs().max()), rtol=1e-5)


@pytest.mark.parametrize("kind", ["bart", "zcodepp"])
def test_two_forward_passes_before_one_backward_pass_keep_their_own_segments(kind):
    """Layers that are recomputed must see the segments of their own pass, not those of the last one."""
    found = []
    for checkpointing in (False, True):
        model = base(kind).train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        attachment = attach_loud(model, method("uniblock", Prefix(length=LENGTH), SEGMENTS))
        losses = []
        for seed in (0, 1):
            ids, mask, labels = random_batch(model, seed=seed)
            segments = torch.full_like(ids, seed)
            losses.append(
                model(input_ids=ids, attention_mask=mask, labels=labels, source_segments=segments).loss
            )
        sum(losses).backward()
        found.append([p.grad for p in attachment.prefixes.parameters()])
    for plainly, recomputed in zip(*found, strict=True):
        torch.testing.assert_close(recomputed, plainly, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_bases_take_float32_prefixes(kind):
    model = base(kind)
    ids, mask, labels = random_batch(model)
    attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    exact = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    attached(model).detach()
    model.to(torch.bfloat16)
    attachment = attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    half = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    half.backward()
    assert abs(float(half) - float(exact)) < 0.05 * float(exact)
    for parameter in attachment.prefixes.parameters():
        assert parameter.dtype == torch.float32
        assert torch.isfinite(parameter.grad).all()
    model.generate(input_ids=ids, attention_mask=mask, num_beams=2, **OPTIONS)


def test_autocast_trains():
    model = base().train()
    ids, mask, labels = random_batch(model)
    attachment = attach_loud(model, method("hierblock+softsa", Prefix(length=LENGTH), SEGMENTS))
    with torch.autocast("cpu", torch.bfloat16):
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in attachment.prefixes.parameters())


def test_a_prefix_learns():
    model = base().train()
    ids, mask, labels = random_batch(model)
    attachment = attach(model, plain())
    optimizer = torch.optim.Adam(attachment.prefixes.parameters(), lr=0.1)
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_from_real_tokens_are_the_keys_that_the_base_makes_of_them(kind):
    """The text itself as input, seen a second time as a prefix: each key stands there twice."""
    model = base(kind)
    words = tuple(range(10, 16))
    attachment = attach(model, Tuning(prefix=Prefix(length=6, keys=FromTokens(ids=words))))
    row = torch.tensor([words])
    with attachment.attention() as matrices, torch.no_grad():
        model(input_ids=row, decoder_input_ids=row)
    if kind in ("t5", "zcodepp"):
        return  # their scores also depend on distances, which a prefix has not
    weights = matrices[Site.ENCODER, 0]
    torch.testing.assert_close(weights[..., :6], weights[..., 6:], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_from_real_tokens_are_those_of_the_projections(kind):
    model = base(kind)
    words = tuple(range(10, 14))
    made = {}
    name = {"t5": "SelfAttention.k", "bart": "self_attn.k_proj", "mbart": "self_attn.k_proj"}
    wanted = name.get(kind, "self_attn.k_proj" if kind == "pegasus" else "attention.key")
    found = [n for n, _ in model.get_encoder().named_modules() if n.endswith(wanted)]
    assert len(found) == LAYERS
    for layer, path in enumerate(found):

        def keep(_, __, output, layer=layer):
            made.setdefault(layer, output)

        model.get_encoder().get_submodule(path).register_forward_hook(keep)
    with torch.no_grad():
        model.get_encoder()(input_ids=torch.tensor([[*words, *words[:2]]]))
    attachment = attach(model, Tuning(prefix=Prefix(length=6, keys=FromTokens(ids=words))))
    for layer in range(LAYERS):
        keys = attachment.prefixes.table(Site.ENCODER).table[layer, 0]
        expected = made[layer][0].unflatten(-1, (2, -1)).transpose(0, 1)
        torch.testing.assert_close(keys, expected, atol=1e-6, rtol=1e-5)


def test_a_layer_without_a_prefix_is_the_bases_own():
    model = base()
    attachment = attach_loud(model, plain(layers=TopLayers(count=1)))
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    columns = [matrices[Site.ENCODER, layer].shape[-1] - 23 for layer in range(LAYERS)]
    assert columns == [0, 0, LENGTH]


@pytest.mark.parametrize("kind", ["bart", "zcodepp"])
def test_sparse_attention_without_a_prefix_fine_tunes_the_whole_model(kind):
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


def test_attention_matrices_are_distributions_over_prefix_and_input():
    model = base()
    attachment = attach_loud(model, plain())
    with attachment.attention() as matrices:
        logits(model, random_batch(model))
    for weights in matrices.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    before = dict(matrices)
    logits(model, random_batch(model, seed=3))  # outside: nothing is collected
    assert all(matrices[key] is weights for key, weights in before.items())


def test_looking_at_attention_changes_no_logit():
    model = base()
    batch = random_batch(model)
    attachment = attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    expected = logits(model, batch)
    with attachment.attention():
        torch.testing.assert_close(logits(model, batch), expected, atol=1e-5, rtol=1e-5)


def test_soft_sparse_attention_is_random_in_training_and_fixed_otherwise():
    model = base()
    batch = random_batch(model)
    attach_loud(model, method("softsa", Prefix(length=LENGTH)))
    assert torch.equal(logits(model, batch), logits(model, batch))
    model.train()
    assert not torch.equal(logits(model, batch), logits(model, batch))


def test_a_base_without_the_attention_interface_is_refused_in_one_line():
    led, _ = tiny("led")
    with pytest.raises(
        UserError, match=r"LEDForConditionalGeneration does not use transformers' attention"
    ) as raised:
        attach(led, plain())
    assert "\n" not in str(raised.value)


def test_a_model_that_only_decodes_is_refused():
    from transformers import GPT2Config, GPT2LMHeadModel

    small = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=20))
    with pytest.raises(UserError, match="GPT2LMHeadModel is no encoder-decoder"):
        attach(small, plain())


def test_a_second_prefix_is_refused_and_so_is_detaching_twice():
    model = base()
    attachment = attach(model, plain())
    with pytest.raises(UserError, match="carries a prefix already"):
        attach(model, plain())
    attachment.detach()
    with pytest.raises(UserError, match="not attached"):
        attachment.detach()


def test_an_attached_model_cannot_be_copied_by_mistake():
    model = base()
    attach(model, plain())
    with pytest.raises(UserError, match="cannot be copied"):
        copy.deepcopy(model)


@pytest.mark.parametrize("kind", ["bart", "zcodepp"])
def test_more_segments_than_tokens_is_one_line(kind):
    model = base(kind)
    attach(model, method("uniblock", Prefix(length=LENGTH), MethodSettings(encoder_segments=3)))
    ids, labels = torch.tensor([[5, 6, 7], [5, 6, 0]]), torch.tensor([[5], [5]])
    with pytest.raises(UserError, match="3 segments but a text of 2 tokens") as raised:
        model(input_ids=ids, attention_mask=(ids > 0).long(), labels=labels)
    assert "\n" not in str(raised.value)
