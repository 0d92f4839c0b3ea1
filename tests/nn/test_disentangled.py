"""Fast ways of disentangled attention: each gives the plain path's numbers and gradients."""

import weakref

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from precis.nn import (
    disentangled,
    disentangled_inference,
    disentangled_keeping,
    disentangled_training,
)
from precis.nn.attention import attend, attention_weights
from precis.nn.disentangled_flex import attend_flex
from precis.nn.disentangled_inference import attend_in_bands
from precis.nn.disentangled_keeping import attend_keeping
from precis.nn.disentangled_training import attend_recomputing
from precis.nn.relative_positions import LogBuckets, OffsetRows
from precis.nn.score_bias import DisentangledBias

BUCKETS = LogBuckets(8, 16)
SCALE = 0.3


def random_inputs(length, *, batch=3, heads=2, width=8, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, heads, length, width)] * 3 + [(heads, BUCKETS.rows, width)] * 2
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def padding(length, batch=3):
    valid = torch.rand(batch, length, generator=torch.Generator().manual_seed(7)) > 0.4
    valid[:, length // 2] = True
    return valid


def make_bias(inputs, kept=("c2p", "p2c")):
    q, k, _, position_keys, position_queries = inputs
    return DisentangledBias(
        queries=q,
        keys=k,
        position_keys=position_keys if "c2p" in kept else None,
        position_queries=position_queries if "p2c" in kept else None,
        buckets=BUCKETS,
    )


def plain(inputs, valid, kept=("c2p", "p2c")):
    """The definition: all scores, softmax, values."""
    q, k, v, *_ = inputs
    scores = make_bias(inputs, kept).rows(0, q.shape[-2])
    mask = None if valid is None else valid[:, None, None]
    return attention_weights(q, k, scores=scores, mask=mask, scale=SCALE) @ v


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks, tiles and groups of documents at lengths that tests can afford."""
    from precis.nn import disentangled_tiles

    for module in (disentangled_inference, disentangled_training):
        monkeypatch.setattr(module, "_BLOCK", 12)
        monkeypatch.setattr(module, "_SCORES", 2 * 12 * 40 * 2)
    monkeypatch.setattr(disentangled_tiles, "_TILE", 7)
    monkeypatch.setattr(disentangled_keeping, "_SCORES", 2 * 40 * 40)


def in_bands(*inputs, **settings):
    return attend_in_bands(*inputs, **settings).mixed.transpose(0, 1)


learning = pytest.mark.parametrize("learn", [attend_recomputing, attend_keeping])


LENGTHS = (1, 2, 13, 40, 75)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_inference_gives_the_plain_path(length, masked):
    inputs = random_inputs(length)
    valid = padding(length) if masked else None
    found = in_bands(*inputs[:3], make_bias(inputs), valid=valid, scale=SCALE)
    torch.testing.assert_close(found, plain(inputs, valid))


@pytest.mark.usefixtures("small_blocks")
def test_the_log_sum_exp_is_that_of_all_scores():
    inputs = random_inputs(75)
    q, k, *_ = inputs
    scores = (q * SCALE) @ k.transpose(-1, -2) + make_bias(inputs).rows(0, 75)
    found = attend_in_bands(*inputs[:3], make_bias(inputs), valid=None, scale=SCALE)
    torch.testing.assert_close(found.lse.transpose(0, 1), scores.logsumexp(-1))


@pytest.mark.usefixtures("small_blocks")
@learning
@pytest.mark.parametrize("kept", [("c2p",), ("p2c",)])
def test_either_position_score_alone_is_enough(kept, learn):
    inputs = [x.requires_grad_() for x in random_inputs(50)]
    valid = padding(50)
    used = [*inputs[:3], inputs[3] if kept == ("c2p",) else inputs[4]]
    expected = plain(inputs, valid, kept)
    bias = make_bias(inputs, kept)
    learnt = learn(*inputs[:3], bias, valid=valid, scale=SCALE, dropout=0.0)
    with torch.no_grad():
        found = in_bands(*inputs[:3], bias, valid=valid, scale=SCALE)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(learnt, expected)
    torch.testing.assert_close(
        torch.autograd.grad(learnt.square().sum(), used), torch.autograd.grad(expected.square().sum(), used)
    )


@pytest.mark.usefixtures("small_blocks")
@learning
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_training_gives_the_plain_path_and_its_gradients(length, masked, learn):
    inputs = [x.requires_grad_() for x in random_inputs(length)]
    valid = padding(length) if masked else None
    weights = torch.randn(inputs[0].shape, dtype=torch.float64)
    expected = plain(inputs, valid)
    found = learn(*inputs[:3], make_bias(inputs), valid=valid, scale=SCALE, dropout=0.0)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad((found * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
    )


def weights_that_dropout_keeps(length, rate, learn):
    """With one-hot values attention gives its own weights."""
    inputs = random_inputs(length, batch=2, width=length)
    inputs[2] = torch.eye(length, dtype=torch.float64).expand(2, 2, length, length).contiguous()
    torch.manual_seed(5)
    return learn(*inputs[:3], make_bias(inputs), valid=None, scale=SCALE, dropout=rate), inputs


@pytest.mark.usefixtures("small_blocks")
@learning
def test_dropout_takes_the_stated_share_of_weights_and_scales_the_others(learn):
    found, inputs = weights_that_dropout_keeps(60, 0.25, learn)
    expected = plain(inputs, None)
    dropped = found == 0.0
    assert 0.22 < dropped.double().mean() < 0.28
    torch.testing.assert_close(found[~dropped], expected[~dropped] / 0.75)


@pytest.mark.usefixtures("small_blocks")
@learning
def test_no_rows_of_a_batch_are_dropped_alike(learn):
    found, _ = weights_that_dropout_keeps(60, 0.25, learn)
    rows = (found == 0.0).flatten(0, 2)  # of all documents and heads
    assert len(torch.unique(rows, dim=0)) == len(rows)


def test_queries_and_keys_are_freed_where_a_layer_is_checkpointed():
    v, position_keys, position_queries = random_inputs(20)[2:]
    states = torch.randn(3, 2, 20, 8, dtype=torch.float64, requires_grad=True)
    made = []

    def layer(states):
        q, k = 2 * states, 3 * states
        made.extend((weakref.ref(q), weakref.ref(k)))
        bias = make_bias((q, k, v, position_keys, position_queries))
        return attend_recomputing(q, k, v, bias, valid=None, scale=SCALE, dropout=0.0)

    mixed = checkpoint(layer, states, use_reentrant=False)
    assert [tensor() for tensor in made] == [None, None]
    mixed.sum().backward()
    assert states.grad is not None


@pytest.mark.usefixtures("small_blocks")
@learning
def test_the_backward_pass_drops_the_same_weights(learn):
    """Gradients with dropout are those of the plain path with this very mask."""
    length, rate = 30, 0.25
    kept = (weights_that_dropout_keeps(length, rate, learn)[0] != 0.0) / (1 - rate)
    inputs = [x.requires_grad_() for x in random_inputs(length, batch=2, width=length)]
    q, k, v, *_ = inputs
    torch.manual_seed(5)
    found = learn(q, k, v, make_bias(inputs), valid=None, scale=SCALE, dropout=rate)
    scores = make_bias(inputs).rows(0, length)
    expected = (attention_weights(q, k, scores=scores, scale=SCALE) * kept) @ v
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
    )


@learning
def test_single_precision_stays_within_the_tolerances(learn):
    inputs = random_inputs(300, batch=1, dtype=torch.float32)
    exact = [x.double().requires_grad_() for x in inputs]
    learnt = [x.requires_grad_() for x in inputs]
    expected = plain(exact, None)
    found = learn(*learnt[:3], make_bias(learnt), valid=None, scale=SCALE, dropout=0.0)
    with torch.no_grad():
        inferred = in_bands(*learnt[:3], make_bias(learnt), valid=None, scale=SCALE)
    torch.testing.assert_close(inferred.double(), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(
        torch.autograd.grad(found.sum(), learnt), torch.autograd.grad(expected.sum(), exact), strict=True
    ):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-4, rtol=1e-4)


def test_half_precision_errs_no_more_than_the_plain_path():
    inputs = random_inputs(300, batch=1)
    half = [x.bfloat16() for x in inputs]
    exact = plain([x.double() for x in half], None)
    theirs = (plain(half, None).double() - exact).abs().mean()
    inferred = in_bands(*half[:3], make_bias(half), valid=None, scale=SCALE)
    learnt = [
        learn(*half[:3], make_bias(half), valid=None, scale=SCALE, dropout=0.0)
        for learn in (attend_recomputing, attend_keeping)
    ]
    for found in [inferred, *learnt]:
        assert (found.double() - exact).abs().mean() <= 1.1 * theirs


@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention_equals_the_plain_path(masked):
    """Uncompiled, on the CPU; compiled for CUDA below."""
    inputs = random_inputs(40)
    valid = padding(40) if masked else None
    found = attend_flex(*inputs[:3], make_bias(inputs), valid=valid, scale=SCALE)
    torch.testing.assert_close(found, plain(inputs, valid))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("masked", [False, True])
def test_compiled_flex_attention_equals_the_plain_path(masked):
    inputs = [x.float().cuda() for x in random_inputs(700, width=32)]
    valid = padding(700).cuda() if masked else None
    found = attend_flex(*inputs[:3], make_bias(inputs), valid=valid, scale=SCALE)
    torch.testing.assert_close(found, plain(inputs, valid), atol=1e-4, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_training_on_a_gpu_gives_the_same_gradients_twice():
    inputs = [x.float().cuda().requires_grad_() for x in random_inputs(1500)]

    def gradients():
        out = attend(*inputs[:3], bias=make_bias(inputs), scale=SCALE)
        return torch.autograd.grad(out.square().sum(), inputs)

    for one, other in zip(gradients(), gradients(), strict=True):
        assert torch.equal(one, other)


def count_calls(monkeypatch, name, *, of=disentangled):
    calls = []
    way = getattr(of, name)
    monkeypatch.setattr(of, name, lambda *a, **k: calls.append(name) or way(*a, **k))
    return calls


def test_attend_takes_the_fast_way_where_it_wins(monkeypatch):
    monkeypatch.setenv("PRECIS_COMPILE", "0")
    thresholds = {"_BANDS_FROM": 30, "_KEEP_FROM": 25, "_RECOMPUTE_ABOVE": 50}
    for name, value in thresholds.items():
        monkeypatch.setattr(disentangled, name, value)
    ways = ("attend_in_bands", "attend_keeping", "attend_recomputing")
    calls = [count_calls(monkeypatch, name) for name in ways]
    for length, expected in ((20, [0, 0, 0]), (28, [0, 1, 0]), (30, [1, 1, 0]), (60, [1, 0, 1])):
        inputs = random_inputs(length)
        mask = padding(length)[:, None, None]
        out = attend(*inputs[:3], bias=make_bias(inputs), mask=mask, scale=SCALE)
        torch.testing.assert_close(out, plain(inputs, mask[:, 0, 0]))
        learnt = [x.requires_grad_() for x in inputs]
        attend(*learnt[:3], bias=make_bias(learnt), mask=mask, scale=SCALE)
        assert [len(found) for found in calls] == expected
        for found in calls:
            found.clear()


def test_other_masks_and_empty_documents_take_the_plain_path(monkeypatch):
    monkeypatch.setenv("PRECIS_COMPILE", "0")
    monkeypatch.setattr(disentangled, "_BANDS_FROM", 4)
    banded = count_calls(monkeypatch, "attend_in_bands")
    inputs = random_inputs(9)
    empty = torch.ones(3, 1, 1, 9, dtype=torch.bool)
    empty[1] = False
    out = attend(*inputs[:3], bias=make_bias(inputs), mask=empty, scale=SCALE)
    torch.testing.assert_close(out[1], inputs[2][1].mean(-2, keepdim=True).expand_as(out[1]))
    triangle = torch.ones(9, 9, dtype=torch.bool).tril()[None, None]
    attend(*inputs[:3], bias=make_bias(inputs), mask=triangle, scale=SCALE)
    assert not banded


def test_table_rows_are_worked_out_once_for_all_layers():
    shared = OffsetRows(BUCKETS)
    assert shared.descending(40, torch.device("cpu")) is shared.descending(40, torch.device("cpu"))
    assert (
        shared.descending(2, torch.device("cpu")).tolist()
        == BUCKETS(torch.tensor([2, 1, 0, -1, -2])).tolist()
    )
    assert shared.ends(torch.device("cpu")).tolist() == [2 * 8 - 1, 1]
