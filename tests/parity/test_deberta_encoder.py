"""Our encoder against transformers' DebertaV2Model with copied weights, and beyond 512 tokens against a slow
reference written from the equations with the clamp that transformers lacks."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import nn
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, DebertaV2Model

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.deberta_weights import copy_deberta, deberta_settings
from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoder, ZCodePPForSequenceClassification

SCORE_TYPES = [["c2p"], ["p2c"], ["c2p", "p2c"]]
# (batch, length, padded positions of the first row)
SHAPES = [(1, 1, 0), (2, 7, 2), (3, 64, 10), (2, 130, 40), (1, 300, 0), (1, 512, 100)]


def make_pair(**changes: Any) -> tuple[Any, Any]:
    settings = {
        "vocab_size": 120,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "relative_attention": True,
        "position_buckets": 256,
        "max_relative_positions": -1,
        "max_position_embeddings": 512,
        "pos_att_type": ["c2p", "p2c"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
    } | changes
    torch.manual_seed(0)
    config = DebertaV2Config(**settings)
    theirs = DebertaV2Model(config).eval()
    for name, parameter in theirs.named_parameters():
        # weights large enough that a wrong position row changes much, norms near one so that states stay diverse
        is_scale = name.endswith("LayerNorm.weight")
        torch.nn.init.normal_(parameter, mean=float(is_scale), std=0.1 if is_scale else 0.25)
    ours = ZCodePPEncoder(ZCodePPConfig(**deberta_settings(config), decoder_layers=1)).eval()
    copy_deberta(ours, theirs.state_dict())
    return theirs, ours


def batch_of(shape: tuple[int, int, int], vocabulary: int = 120) -> tuple[torch.Tensor, torch.Tensor]:
    batch, length, padded = shape
    generator = torch.Generator().manual_seed(batch * 1000 + length)
    ids = torch.randint(4, vocabulary, (batch, length), generator=generator)
    mask = torch.ones(batch, length, dtype=torch.long)
    if padded:
        mask[0, -padded:] = 0
    return ids, mask


@torch.no_grad()
def assert_equal_states(theirs: Any, ours: Any, shape: tuple[int, int, int]) -> None:
    ids, mask = batch_of(shape)
    expected = theirs(ids, attention_mask=mask).last_hidden_state
    found = ours(ids, mask).last_hidden_state
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["shared-keys", "own-keys"])
@pytest.mark.parametrize("types", SCORE_TYPES, ids="+".join)
def test_encoder_equals_transformers(types: list[str], shared: bool, shape: tuple[int, int, int]) -> None:
    theirs, ours = make_pair(pos_att_type=types, share_att_key=shared)
    assert_equal_states(theirs, ours, shape)


@pytest.mark.parametrize(
    "changes",
    [
        {"position_buckets": 32, "max_position_embeddings": 64},
        {"position_buckets": -1, "max_position_embeddings": 128},
        {"norm_rel_ebd": "none"},
        {"embedding_size": 16},
        {"hidden_act": "relu", "num_attention_heads": 2},
        {"conv_kernel_size": 3, "conv_act": "gelu"},
        {"conv_kernel_size": 5, "conv_groups": 4},
        {"relative_attention": False, "pos_att_type": []},
    ],
    ids=lambda changes: ",".join(f"{k}={v}" for k, v in changes.items()),
)
def test_encoder_equals_transformers_in_other_configurations(changes: dict[str, Any]) -> None:
    theirs, ours = make_pair(**changes)
    # the released code agrees with transformers only while no distance passes the table
    for length in (5, 60):
        assert_equal_states(theirs, ours, (2, length, 3))


def test_gradients_equal_transformers() -> None:
    theirs, ours = make_pair(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    theirs, ours = theirs.double(), ours.double()  # key biases nearly cancel: in fp32 their gradient is noise
    ids, mask = batch_of((2, 40, 9))
    direction = torch.randn(2, 40, 32, generator=torch.Generator().manual_seed(1)).double() * mask[..., None]
    (theirs(ids, attention_mask=mask).last_hidden_state * direction).sum().backward()
    (ours(ids, mask).last_hidden_state * direction).sum().backward()
    pairs = [
        (theirs.encoder.rel_embeddings.weight, ours.stack.positions.rows.weight),
        (
            theirs.encoder.layer[0].attention.self.query_proj.weight,
            ours.stack.layers[0].attention.query.weight,
        ),
        (theirs.encoder.layer[2].attention.self.key_proj.bias, ours.stack.layers[2].attention.key.bias),
        (theirs.embeddings.LayerNorm.weight, ours.embedding.norm.weight),
    ]
    for expected, found in pairs:
        scale = expected.grad.abs().max()
        torch.testing.assert_close(
            found.grad / scale, expected.grad / scale, atol=1e-6, rtol=1e-5
        )  # their scale is fp32


@pytest.mark.parametrize("changes", [{}, {"conv_kernel_size": 3, "conv_act": "gelu"}], ids=["v3", "v2"])
@pytest.mark.usefixtures("dropout_scales")
def test_dropout_stands_where_transformers_has_it(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, int | str]
) -> None:
    """A missing, added or moved one changes the states."""
    theirs, ours = make_pair(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.15, **changes)
    monkeypatch.setenv("PRECIS_COMPILE", "0")  # the C++ kernel draws by itself
    ids, mask = batch_of((2, 40, 9))
    expected = theirs.train()(ids, attention_mask=mask).last_hidden_state
    found = ours.train()(ids, mask).last_hidden_state
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)
    assert (found - ours.eval()(ids, mask).last_hidden_state).abs().max() > 0.01


@pytest.mark.usefixtures("dropout_scales")
def test_classifier_equals_transformers_dropout_included() -> None:
    theirs, _ = make_pair(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.15, num_labels=3)
    torch.manual_seed(1)
    their_classifier = DebertaV2ForSequenceClassification(theirs.config).train()
    own_classifier = ZCodePPForSequenceClassification(
        ZCodePPConfig(
            **deberta_settings(theirs.config), decoder_layers=1, num_labels=3, classifier_dropout=0.3
        )
    ).train()
    copy_deberta(own_classifier.model.encoder, theirs.state_dict())
    their_classifier.deberta.load_state_dict(theirs.state_dict())
    own_classifier.pooler.load_state_dict(their_classifier.pooler.dense.state_dict())
    own_classifier.classifier.load_state_dict(their_classifier.classifier.state_dict())
    ids, mask = batch_of((2, 12, 3))
    found = own_classifier(ids, mask).logits
    torch.testing.assert_close(found, their_classifier(ids, attention_mask=mask).logits, atol=1e-5, rtol=1e-5)


def clamped_row(distance: int, *, buckets: int, maximum: int) -> int:
    """delta(i, j) from the paper and Microsoft's code, one distance at a time in double precision."""
    distance = max(-(maximum - 1), min(maximum - 1, distance))
    middle = buckets // 2
    size = abs(distance)
    if size > middle:
        size = middle + math.ceil(math.log(size / middle) / math.log((maximum - 1) / middle) * (middle - 1))
    return max(0, min(2 * buckets - 1, buckets + int(math.copysign(size, distance))))


@torch.no_grad()
def reference_attention(
    layer: Any, states: torch.Tensor, table: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """DeBERTa's attention with nested sums spelt out (one row of the batch, no padding)."""
    heads = layer.heads
    e = states.shape[-1] // heads

    def project(linear: nn.Linear, x: torch.Tensor) -> torch.Tensor:
        return linear(x).view(-1, heads, e).transpose(0, 1)

    q, k, v = (project(m, states) for m in (layer.query, layer.key, layer.value))
    kr, qr = project(layer.key, table), project(layer.query, table)
    mixed = []
    for h in range(heads):
        c2p = q[h] @ kr[h].T  # (n r)
        p2c = k[h] @ qr[h].T
        scores = q[h] @ k[h].T + c2p.gather(1, rows) + p2c.gather(1, rows.T).T
        mixed.append(torch.softmax(scores / math.sqrt(3 * e), -1) @ v[h])
    return torch.cat(mixed, -1)


@pytest.mark.parametrize("length", [600, 1100, 1500])
def test_beyond_the_table_attention_equals_the_clamped_reference(length: int) -> None:
    _, ours = make_pair()
    attention = ours.stack.layers[0].attention
    states = torch.randn(length, 32, generator=torch.Generator().manual_seed(3))
    row_of = [clamped_row(d, buckets=256, maximum=512) for d in range(length - 1, -length, -1)]
    index = torch.arange(length)
    rows = torch.tensor(row_of)[length - 1 - index[:, None] + index[None]]
    with torch.no_grad():
        positions = ours.stack.positions.for_layers(states.device)()
        expected = reference_attention(attention, states, positions.table, rows)
        found = attention(states[None], positions=positions, mask=None)[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_transformers_leaves_the_trained_rows_beyond_512_tokens_and_we_do_not() -> None:
    theirs, ours = make_pair()
    ids, mask = batch_of((1, 700, 0))
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask).last_hidden_state
        found = ours(ids, mask).last_hidden_state
    assert (expected - found).abs().max() > 0.01


@pytest.mark.parametrize(("buckets", "maximum"), list(itertools.product([32, 64, 256], [128, 512])))
def test_eq3_log_buckets_equal_the_formula_at_every_distance(buckets: int, maximum: int) -> None:
    from precis.nn.relative_positions import LogBuckets

    distances = list(range(-2 * maximum, 2 * maximum + 1))
    found = LogBuckets(buckets, maximum)(torch.tensor(distances)).tolist()
    assert found == [clamped_row(d, buckets=buckets, maximum=maximum) for d in distances]
