"""Segments, blocks and layer plans."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from precis.nn.normalizers import Gumbel, Softmax, TopP
from precis.tuning import METHODS, MethodSettings, NoPrefix, Prefix, Tuning, attach, method
from precis.tuning.discourse import (
    READERS,
    Blocked,
    Hierarchical,
    Layer,
    Open,
    Uniform,
    column_segments,
    equal_parts,
    expected_parts,
)
from precis.tuning.prefix import Site
from precis_text.errors import UserError
from tests.conformance import random_batch
from tests.tuning.bases import LAYERS, attach_loud, base, logits, plain

SEGMENTS = MethodSettings(encoder_segments=3, decoder_segments=2, target_length=8)


def matrices_of(tuning: Tuning, *, kind: str = "bart", **more: Any) -> Any:
    model = base(kind)
    batch = random_batch(model)
    attachment = attach_loud(model, tuning)
    with attachment.attention() as matrices:
        found = logits(model, batch, **more)
    return matrices, batch, found


# --- segments


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [5, 6, 7, 23])
def test_equal_parts_differ_by_one_token_at_most(segments: int, length: int) -> None:
    parts = equal_parts(torch.ones(1, length, dtype=torch.bool), segments)[0]
    sizes = torch.bincount(parts, minlength=segments)
    assert int(sizes.sum()) == length
    assert int(sizes.max() - sizes.min()) <= 1
    assert (parts.diff() >= 0).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_does_not_move_a_real_tokens_segment(side: str) -> None:
    alone = equal_parts(torch.ones(1, 7, dtype=torch.bool), 3)[0]
    valid = torch.zeros(1, 12, dtype=torch.bool)
    place = slice(5, 12) if side == "left" else slice(0, 7)
    valid[0, place] = True
    assert torch.equal(equal_parts(valid, 3)[0, place], alone)


def test_a_text_of_fewer_tokens_than_segments_leaves_some_empty() -> None:
    valid = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [False] * 5])
    parts = equal_parts(valid, 3)
    assert parts[0].tolist() == [0, 0, 1, 1, 2]
    assert parts[1, :2].tolist() == [0, 1]
    assert set(parts.flatten().tolist()) <= {0, 1, 2}


def test_a_targets_segment_depends_on_its_position_alone() -> None:
    found = expected_parts(torch.arange(12)[None], 2, length=8)[0]
    assert found.tolist() == [0] * 4 + [1] * 8


@pytest.mark.parametrize(
    ("columns", "segments", "expected"),
    [(6, 2, [0, 0, 0, 1, 1, 1]), (5, 2, [0, 0, 0, 1, 1]), (5, 3, [0, 0, 1, 1, 2]), (3, 3, [0, 1, 2])],
)
def test_columns_are_shared_out_and_earlier_segments_get_what_is_left_over(
    columns: int, segments: int, expected: list[int]
) -> None:
    assert column_segments(columns, segments).tolist() == expected


# --- blocks


@pytest.mark.parametrize("kind", ["bart", "zcodepp", "prophetnet"])
def test_uniblock_queries_see_their_own_columns_and_all_inputs(kind: str) -> None:
    columns = 7  # 3 + 2 + 2
    matrices, (_, mask, _), _ = matrices_of(method("uniblock", Prefix(length=columns), SEGMENTS), kind=kind)
    own = column_segments(columns, 3)
    for layer in range(LAYERS):
        weights = matrices[Site.ENCODER, layer]
        for row, length in enumerate(mask.sum(-1).tolist()):
            for query in range(length):
                segment = query * 3 // length
                seen = weights[row, :, query]
                assert (seen[:, :columns][:, own == segment] > 0).all()
                assert not seen[:, :columns][:, own != segment].any()
                assert (seen[:, columns : columns + length] > 0).all()


@pytest.mark.parametrize("site", [Site.DECODER, Site.CROSS])
def test_uniblock_in_the_decoder_goes_by_target_position(site: Site) -> None:
    matrices, _, _ = matrices_of(method("uniblock", Prefix(length=6), SEGMENTS))
    weights = matrices[site, 0][..., :6]  # target positions 0..7, expected length 8
    assert (weights[:, :, :4, :3] > 0).all()
    assert not weights[:, :, :4, 3:].any()
    assert (weights[:, :, 4:, 3:] > 0).all()
    assert not weights[:, :, 4:, :3].any()


def test_hierblock_is_blocked_below_and_open_above() -> None:
    matrices, _, _ = matrices_of(method("hierblock", Prefix(length=6), SEGMENTS))
    for site in Site:
        rows = slice(2, 3) if site is Site.ENCODER else slice(None)  # the text without padding
        hidden = [bool((matrices[site, layer][rows, ..., :6] == 0).any()) for layer in range(LAYERS)]
        assert hidden == [True, True, False]  # 7/12 of 3 layers are 2


@pytest.mark.parametrize("kind", ["bart", "t5", "zcodepp"])
@pytest.mark.parametrize("name", ["uniblock", "hierblock"])
def test_one_segment_is_ordinary_prefix_tuning(kind: str, name: str) -> None:
    one = MethodSettings(encoder_segments=1, decoder_segments=1)
    found = []
    for tuning in (plain(), method(name, plain().prefix, one)):
        model = base(kind)
        attach_loud(model, tuning)
        found.append(logits(model, random_batch(model)))
    assert torch.equal(*found)


@pytest.mark.parametrize("kind", ["bart", "zcodepp", "prophetnet"])
def test_given_segments_take_the_place_of_equal_parts(kind: str) -> None:
    model = base(kind)
    batch = random_batch(model)
    ids = (torch.arange(23) * 3 // 23).expand(3, -1)
    attachment = attach_loud(model, method("uniblock", Prefix(length=6), SEGMENTS))
    equal = logits(model, batch)
    longest = 2  # the row without padding has just these parts
    given = logits(model, batch, source_segments=ids)
    torch.testing.assert_close(given[longest], equal[longest], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(given[0], equal[0], atol=1e-3)
    assert torch.equal(logits(model, batch), equal)  # given for one call
    with attachment.segments(ids), torch.no_grad():
        encoded = model.get_encoder()(input_ids=batch[0], attention_mask=batch[1])
        assert torch.equal(logits(model, batch), given)
        written = model.generate(input_ids=batch[0], attention_mask=batch[1], num_beams=2, max_new_tokens=4)
    other = model.get_encoder()(input_ids=batch[0], attention_mask=batch[1])
    assert not torch.allclose(other.last_hidden_state, encoded.last_hidden_state, atol=1e-3)
    again = model.generate(encoder_outputs=encoded, attention_mask=batch[1], num_beams=2, max_new_tokens=4)
    assert torch.equal(written, again)


def test_layers_of_fewer_segments_share_the_given_ones() -> None:
    """Given are those of the layer with most; with equal parts each layer cuts for itself."""
    lower, upper = (Layer(prefix=Blocked(segments=count)) for count in (4, 2))
    tuning = Tuning(prefix=Prefix(length=8), encoder=Hierarchical(lower=lower, upper=upper, lower_share=0.5))
    model = base()
    attach_loud(model, tuning)
    batch = random_batch(model)
    ids = (torch.arange(24) * 4 // 24).expand(3, -1)
    whole = (torch.ones(3, 24, dtype=torch.long) * 5, torch.ones(3, 24, dtype=torch.long), *batch[2:])
    given, equal = logits(model, whole, source_segments=ids), logits(model, whole)
    torch.testing.assert_close(given, equal, atol=1e-6, rtol=1e-5)


def test_a_prefix_of_given_units_wants_them_with_every_call() -> None:
    model = base()
    tuning = replace(method("uniblock", Prefix(length=6), SEGMENTS), units="clauses")
    attach_loud(model, tuning)
    with pytest.raises(UserError, match="segments of this prefix are clauses"):
        logits(model, random_batch(model))
    ids = (torch.arange(23) * 3 // 23).expand(3, -1)
    assert logits(model, random_batch(model), source_segments=ids).isfinite().all()


@pytest.mark.parametrize("name", ["prefix", "softsa"])
def test_segments_that_no_layer_reads_are_refused(name: str) -> None:
    model = base()
    attach(model, method(name, Prefix(length=6)))
    with pytest.raises(UserError, match="no encoder layer has blocks"):
        logits(model, random_batch(model), source_segments=torch.zeros(3, 23, dtype=torch.long))


def test_units_need_segments_to_be_made_of_them() -> None:
    with pytest.raises(UserError, match=r"units='turns'.*no encoder layer has segments"):
        replace(method("softsa", Prefix(length=6)), units="turns")


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        (torch.full((3, 23), 3), "contains 3, but the prefix has 3 segments"),
        (torch.full((3, 23), -1), "contains -1"),
        (torch.zeros(3, 20, dtype=torch.long), r"\(3, 20\) for tokens of shape \(3, 23\)"),
    ],
)
def test_given_segments_that_do_not_fit_are_refused(segments: torch.Tensor, words: str) -> None:
    model = base()
    attach(model, method("uniblock", Prefix(length=6), SEGMENTS))
    with pytest.raises(UserError, match=words):
        logits(model, random_batch(model), source_segments=segments)


@pytest.mark.parametrize("plan", [None, 4])
def test_chunks_of_fusion_in_encoder_keep_the_documents_segments(plan: int | None) -> None:
    """A document of two chunks: the second one's queries belong to the second segment, not to both."""
    from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
    from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration

    torch.manual_seed(0)
    config = ZCodePPConfig(
        vocab_size=40, hidden_size=16, num_attention_heads=2, intermediate_size=16, encoder_layers=2, decoder_layers=1,
        chunk_length=plan, dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    model = ZCodePPForConditionalGeneration(config).eval()
    attachment = attach_loud(model, method("uniblock", Prefix(length=4), MethodSettings()))
    with attachment.attention() as matrices, torch.no_grad():
        model.get_encoder()(input_ids=torch.arange(5, 13)[None])
    first = matrices[Site.ENCODER, 0][..., :4]
    if plan is None:
        first = first[0].unflatten(1, (2, 4)).transpose(0, 1)  # (b h 8 p) as two chunks
    assert not first[0, ..., 2:].any()
    assert not first[1, ..., :2].any()
    assert (first[0, ..., :2] > 0).all()


# --- plans and methods


@pytest.mark.parametrize(("layers", "lower"), [(12, 7), (6, 4), (3, 2), (2, 1), (1, 1), (24, 14)])
def test_lower_layers_are_seven_twelfths_of_the_stack(layers: int, lower: int) -> None:
    sparse = Layer(normalizer=Gumbel())
    assert Hierarchical(lower=sparse).plan(layers) == (sparse,) * lower + (Layer(),) * (layers - lower)


def encoder_plan(name: str) -> Any:
    return method(name, Prefix(length=6), MethodSettings(encoder_segments=3, temperature=0.1)).encoder.plan(
        12
    )


def test_each_method_is_the_papers_plan() -> None:
    blocked, opened = Blocked(segments=3), Open()
    soft, truncated = Gumbel(temperature=0.1), TopP(mass=0.95, temperature=0.1)
    expected = {
        "prefix": (opened, Softmax(), opened, Softmax()),
        "uniblock": (blocked, Softmax(), blocked, Softmax()),
        "hierblock": (blocked, Softmax(), opened, Softmax()),
        "truncsa": (opened, truncated, opened, truncated),
        "softsa": (opened, soft, opened, soft),
        "htruncsa": (opened, truncated, opened, Softmax()),
        "hsoftsa": (opened, soft, opened, Softmax()),
        "hierblock+softsa": (blocked, soft, opened, Softmax()),
    }
    assert set(expected) == set(METHODS)
    for name, (low, low_normalizer, top, top_normalizer) in expected.items():
        plan = encoder_plan(name)
        assert plan[:7] == (Layer(prefix=low, normalizer=low_normalizer),) * 7  # type: ignore[arg-type]
        assert plan[7:] == (Layer(prefix=top, normalizer=top_normalizer),) * 5  # type: ignore[arg-type]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_reads_a_setting_exactly_when_it_matters(name: str) -> None:
    others = {
        "encoder_segments": 3,
        "decoder_segments": 2,
        "mass": 0.5,
        "temperature": 0.1,
        "lower_share": 0.25,
    }
    usual = method(name, Prefix(length=6))
    for setting, value in others.items():
        changed = method(name, Prefix(length=6), replace(MethodSettings(), **{setting: value}))  # type: ignore[arg-type]
        assert (changed != usual) == (name in READERS[setting]), setting
    blocked = any(isinstance(layer.prefix, Blocked) for layer in usual.decoder.plan(4))
    assert blocked == (name in READERS["target_length"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoder_segments": 0},
        {"decoder_segments": -1},
        {"target_length": 0},
        {"mass": 1.5},
        {"mass": float("nan")},
        {"lower_share": 0.0},
        {"temperature": 0.0},
        {"temperature": float("inf")},
    ],
)
def test_settings_out_of_range_are_refused_whatever_the_method(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(UserError, match=rf"MethodSettings\({name}={value}\)") as raised:
        MethodSettings(**wrong)
    assert "\n" not in str(raised.value)


def test_truncation_reaches_the_encoder_and_only_the_lower_layers_of_htruncsa() -> None:
    matrices, (_, mask, _), _ = matrices_of(method("htruncsa", Prefix(length=6), MethodSettings(mass=0.6)))
    real = mask.bool()
    zeros = [bool((matrices[Site.ENCODER, layer][2][:, real[2]] == 0).any()) for layer in range(LAYERS)]
    assert zeros == [True, True, False]
    assert not any((matrices[Site.CROSS, layer][2] == 0).any() for layer in range(LAYERS))


@pytest.mark.parametrize("name", METHODS)
def test_methods_survive_json(name: str) -> None:
    tuning = method(name, Prefix(length=6), SEGMENTS)
    assert Tuning.from_dict(json.loads(json.dumps(tuning.to_dict()))) == tuning


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: method("uniblok", Prefix(length=6)), "unknown method 'uniblok'; did you mean 'uniblock'"),
        (lambda: method("uniblock", Prefix(length=2), SEGMENTS), "3 segments, but the prefix has length 2"),
        (lambda: Blocked(segments=0), "segments=0"),
        (lambda: Hierarchical(lower=Layer(), lower_share=0.0), "lower_share=0.0"),
        (lambda: Tuning(prefix=NoPrefix(), target_length=0), "target_length=0"),
        (
            lambda: Tuning(
                prefix=NoPrefix(),
                decoder=Hierarchical(lower=Layer(), upper=Layer(normalizer=TopP()), lower_share=0.9),
            ),
            "a decoder would look ahead",
        ),
        (
            lambda: Tuning(prefix=NoPrefix(), decoder=Uniform(layer=Layer(normalizer=TopP()))),
            "a decoder would look ahead",
        ),
        (
            lambda: method("uniblock", Prefix(length=6), MethodSettings(decoder_segments=2, target_length=1)),
            "2 segments, but target_length=1",
        ),
    ],
)
def test_plans_that_cannot_be_are_refused_in_one_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        make()
    assert "\n" not in str(raised.value)
