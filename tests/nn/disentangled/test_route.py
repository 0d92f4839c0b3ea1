"""Fast ways of disentangled attention: each gives the plain path's numbers and gradients."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from transformers import DebertaV2Config
from transformers.models.deberta_v2 import modeling_deberta_v2

from precis.nn.attention import attend, attention_weights, merge_heads, split_heads
from precis.nn.disentangled import bands as disentangled_inference
from precis.nn.disentangled import flash as disentangled_flash
from precis.nn.disentangled import flex as disentangled_flex
from precis.nn.disentangled import keeping as disentangled_keeping
from precis.nn.disentangled import recompute as disentangled_training
from precis.nn.disentangled import route as disentangled
from precis.nn.disentangled.bands import attend_in_bands
from precis.nn.disentangled.flex import attend_flex, score_change
from precis.nn.disentangled.gathered import attend_openly
from precis.nn.disentangled.keeping import attend_keeping
from precis.nn.disentangled.recompute import attend_recomputing
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
    from precis.nn.disentangled import tiles as disentangled_tiles

    for module in (disentangled_inference, disentangled_training):
        monkeypatch.setattr(module, "_BLOCK", 12)
        monkeypatch.setattr(module, "_SCORES", 2 * 12 * 40 * 2)
    monkeypatch.setattr(disentangled_tiles, "_TILE", 7)
    monkeypatch.setattr(disentangled_keeping, "_SCORES", 2 * 40 * 40)


def in_bands(*inputs, **settings):
    return attend_in_bands(*inputs, **settings).mixed.transpose(0, 1)


learning = pytest.mark.parametrize("learn", [attend_recomputing, attend_keeping, attend_openly])


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
        for learn in (attend_recomputing, attend_keeping, attend_openly)
    ]
    for found in [inferred, *learnt]:
        assert (found.double() - exact).abs().mean() <= 1.1 * theirs


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention_equals_the_plain_path(masked, dtype):
    """Uncompiled; compiled below. A document of nothing but padding gives the mean of its values."""
    inputs = [x.to(dtype) for x in random_inputs(40)]
    valid = padding(40) if masked else None
    if masked:
        valid[2] = False
    found = attend_flex(*inputs[:3], make_bias(inputs), valid=valid, scale=SCALE)
    assert found.dtype == dtype
    assert_close_in(found, inputs, valid)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_score_of_padding_fits_the_type_that_a_kernel_traces_it_in(dtype):
    """Also times log2(e), by which FlexAttention's kernels multiply scores."""
    inputs = [x.to(dtype) for x in random_inputs(4)]
    change = score_change(make_bias(inputs), torch.zeros(3, 4, dtype=torch.bool))
    first = torch.tensor(0)
    score = change(torch.ones((), dtype=dtype), first, first, first, first)
    assert score.dtype == dtype
    assert score < torch.finfo(torch.float16).min / 4
    assert (1.4427 * score).isfinite()


def assert_close_in(found, inputs, valid):
    """No farther from the exact numbers than the plain path in the same type, plus what one rounding makes."""
    exact = plain([x.double() for x in inputs], valid)
    if found.dtype == torch.float64:
        torch.testing.assert_close(found, exact)
        return
    rounding = torch.finfo(found.dtype).eps * exact.abs().max()
    worst = (plain(inputs, valid).double() - exact).abs().max() + 2 * rounding
    assert (found.double() - exact).abs().max() <= worst


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_flex_attention_equals_the_plain_path(dtype):
    """Lowered for the CPU: the change of scores is traced in the type of the queries, as it is for CUDA."""
    inputs = [x.to(dtype) for x in random_inputs(70, width=16)]
    valid = padding(70)
    valid[2] = False
    attention = torch.compile(disentangled_flex.flex_attention)
    found = attention(*inputs[:3], score_mod=score_change(make_bias(inputs), valid), scale=SCALE)
    assert_close_in(found, inputs, valid)


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


@pytest.fixture
def elsewhere(monkeypatch):
    """CPU tensors go the way of those on CUDA, where the library is not installed."""
    monkeypatch.setattr(disentangled, "_on_cpu", disentangled._elsewhere)
    monkeypatch.setattr(disentangled_flash, "serves", lambda device: False)
    monkeypatch.setattr(disentangled_flex, "serves", lambda device: True)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("autocast", [False, True])
def test_without_the_library_scores_are_held_or_made_again_and_flex_attention_infers(monkeypatch, autocast):
    monkeypatch.setattr(disentangled, "_FLEX_FROM", 30)
    calls = [
        count_calls(monkeypatch, name) for name in ("attend_openly", "attend_recomputing", "attend_flex")
    ]
    for bound, length, expected in (
        (1 << 32, 20, [1, 0, 0]),
        (1 << 32, 1100, [1, 0, 1]),
        (99, 30, [0, 1, 1]),
    ):
        monkeypatch.setattr(disentangled, "_OPEN_BYTES", bound)
        inputs = random_inputs(length, batch=1, dtype=torch.float32)
        mask = padding(length, batch=1)[:, None, None]
        learnt = [x.clone().requires_grad_() for x in inputs]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            trained = attend(*learnt[:3], bias=make_bias(learnt), mask=mask, scale=SCALE)
            found = attend(*inputs[:3], bias=make_bias(inputs), mask=mask, scale=SCALE)
        expected_values = plain(inputs, mask[:, 0, 0])
        torch.testing.assert_close(trained, expected_values, atol=1e-5, rtol=1e-5)
        if expected[2]:  # the shortest takes the plain path, in autocast's type
            torch.testing.assert_close(found, expected_values, atol=1e-5, rtol=1e-5)
        assert [len(ways) for ways in calls] == expected
        for ways in calls:
            ways.clear()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_every_way_serves_every_type_inside_autocast_and_outside(monkeypatch, dtype):
    monkeypatch.setattr(disentangled, "_FLEX_FROM", 30)
    inputs = [x.to(dtype) for x in random_inputs(40)]
    for autocast in (False, True):
        for learnt in (False, True):
            given = [x.detach().requires_grad_(learnt) for x in inputs]
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                found = attend(*given[:3], bias=make_bias(given), scale=SCALE)
            assert found.dtype == dtype
            assert_close_in(found.detach(), inputs, None)
            if learnt:
                assert all(g.dtype == dtype for g in torch.autograd.grad(found.sum(), given))


class Traffic(TorchDispatchMode):
    """Bytes read and written by torch's operations, views apart."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not func.is_view and func.overloadpacket is not torch.ops.aten._unsafe_view:
            tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, torch.Tensor)]
            # an expanded tensor is read where it lies
            self.bytes += sum(
                min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in tensors
            )
        return out


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("length", "batch"), [(64, 4), (512, 1), (1100, 1)])
def test_training_without_the_library_moves_fewer_bytes_than_transformers(length, batch, dtype):
    heads, width = 8, 16
    config = DebertaV2Config(
        hidden_size=heads * width,
        num_attention_heads=heads,
        relative_attention=True,
        position_buckets=256,
        max_relative_positions=512,
        pos_att_type=["c2p", "p2c"],
        share_att_key=True,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
    )
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(batch, length, heads * width, generator=generator).to(dtype).requires_grad_()
    table = torch.randn(512, heads * width, generator=generator).to(dtype).requires_grad_()
    theirs = modeling_deberta_v2.DisentangledSelfAttention(config)
    for name in ("query_proj", "key_proj", "value_proj"):
        setattr(theirs, name, torch.nn.Identity())
    everything = torch.ones(batch, 1, length, length, dtype=torch.bool)
    relative = modeling_deberta_v2.build_relative_position(states, states, bucket_size=256, max_position=512)
    scale, offsets = (3 * width) ** -0.5, OffsetRows(LogBuckets(256, 512))
    offsets.descending(length - 1, states.device)  # worked out once a pass, as `relative` is

    def ours(states, table):
        split, rows = split_heads(states, heads), split_heads(table[None] * scale, heads)[0]
        bias = DisentangledBias(split, split, rows, rows, LogBuckets(256, 512), offsets)
        return merge_heads(attend(split, split, split, bias=bias, mask=everything[:, :, :1], scale=scale))

    def measured(way):
        with Traffic() as traffic:
            out = way(states, table)
            gradients = torch.autograd.grad(out.square().sum(), (states, table))
        return traffic.bytes, out, gradients

    most, right, gradients = measured(
        lambda states, table: theirs(states, everything, relative_pos=relative, rel_embeddings=table)[0]
    )
    found, out, ours_gradients = measured(ours)
    assert found <= most
    if length <= 512 and dtype == torch.float32:  # beyond, transformers leaves the clamp of distances out
        torch.testing.assert_close(out, right, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours_gradients, gradients, atol=1e-4, rtol=1e-4)


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
