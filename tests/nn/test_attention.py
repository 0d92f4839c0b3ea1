"""The attention function: every path gives the plain path's numbers and gradients."""

import pytest
import torch

from precis.nn import attention
from precis.nn.attention import DisentangledSelfAttention, attend, attention_weights
from precis.nn.relative_positions import LogBuckets, PositionTable
from precis.nn.score_bias import DenseBias, DisentangledBias


def random_inputs(*, batch=2, heads=3, queries=9, keys=9, width=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, heads, n, width) for n in (queries, keys, keys)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def make_bias(queries, keys, *, buckets=LogBuckets(16, 32), seed=1):  # noqa: B008
    generator = torch.Generator().manual_seed(seed)
    heads, width = queries.shape[1], queries.shape[-1]
    tables = [
        torch.randn(heads, buckets.rows, width, generator=generator, dtype=torch.float64) for _ in range(2)
    ]
    return DisentangledBias(
        queries=queries, keys=keys, position_keys=tables[0], position_queries=tables[1], buckets=buckets
    )


def slow_bias(bias: DisentangledBias):
    """c2p and p2c with loops over positions (DeBERTa Eq. 4)."""
    batch, heads, length, _ = bias.keys.shape
    scores = torch.zeros(batch, heads, length, length, dtype=torch.float64)
    for i in range(length):
        for j in range(length):
            row = int(bias.buckets(torch.tensor(i - j)))
            c2p = (bias.queries[:, :, i] * bias.position_keys[None, :, row]).sum(-1)
            p2c = (bias.keys[:, :, j] * bias.position_queries[None, :, row]).sum(-1)
            scores[:, :, i, j] = c2p + p2c
    return scores


@pytest.mark.parametrize("length", [1, 2, 9, 50])
def test_shifted_scores_equal_the_equation(length):
    q, k, _ = random_inputs(queries=length, keys=length)
    bias = make_bias(q, k)
    torch.testing.assert_close(bias.rows(0, length), slow_bias(bias))


@pytest.mark.parametrize(("start", "stop"), [(0, 7), (13, 40), (55, 90), (89, 90)])
def test_gathered_rows_with_far_keys_equal_the_equation(start, stop):
    q, k, _ = random_inputs(queries=90, keys=90)
    bias = make_bias(q, k)
    expected = slow_bias(bias)[:, :, start:stop]
    torch.testing.assert_close(bias.rows(start, stop), expected)


@pytest.mark.parametrize("kept", ["position_keys", "position_queries"])
def test_either_score_alone(kept):
    q, k, _ = random_inputs(queries=70, keys=70)
    whole = make_bias(q, k)
    other = {"position_keys", "position_queries"} - {kept}
    one = DisentangledBias(
        queries=q, keys=k, buckets=whole.buckets, **{kept: getattr(whole, kept), other.pop(): None}
    )
    torch.testing.assert_close(one.rows(10, 30), one.rows(0, 70)[:, :, 10:30])


def test_fused_path_equals_the_plain_weights():
    q, k, v = random_inputs(queries=12, keys=20)
    bias = DenseBias(torch.randn(2, 3, 12, 20, dtype=torch.float64))
    mask = torch.rand(2, 1, 12, 20) > 0.3
    weights = attention_weights(q, k, scores=bias.scores, mask=mask, scale=0.4)
    torch.testing.assert_close(attend(q, k, v, bias=bias, mask=mask, scale=0.4), weights @ v)


@pytest.mark.parametrize("masked", [True, False])
def test_query_blocks_equal_the_whole_in_values_and_gradients(monkeypatch, masked):
    q, k, v = (x.requires_grad_() for x in random_inputs(queries=75, keys=75))
    mask = (torch.rand(2, 1, 1, 75, generator=torch.Generator().manual_seed(4)) > 0.2) if masked else None

    def value_and_gradients():
        out = attend(q, k, v, bias=make_bias(q, k), mask=mask, scale=0.3)
        return out, torch.autograd.grad(out.square().sum(), (q, k, v))

    whole, whole_gradients = value_and_gradients()
    monkeypatch.setattr(attention, "_BLOCK_FROM", 16)
    monkeypatch.setattr(attention, "_BLOCK_ROWS", 10)
    blocks, block_gradients = value_and_gradients()
    torch.testing.assert_close(blocks, whole)
    torch.testing.assert_close(block_gradients, whole_gradients)


def test_a_query_that_may_see_nothing_gives_no_nan():
    q, k, v = random_inputs(queries=4, keys=5)
    mask = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    mask[0, 0, 2] = False
    out = attend(q, k, v, mask=mask)
    assert torch.isfinite(out).all()
    torch.testing.assert_close(out[0, :, 2], v[0].mean(-2))


def test_long_attention_never_holds_all_scores():
    """At 3,000 keys the scores of all queries would take 36 MB a head; the peak stays at a fraction of that."""
    layer = DisentangledSelfAttention(16, heads=1)
    table = PositionTable(table=torch.randn(64, 16), buckets=LogBuckets(32, 64))
    states = torch.randn(1, 3000, 16)
    from torch.profiler import ProfilerActivity, profile

    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        layer(states, positions=table, mask=None)
    largest = max(event.cpu_memory_usage for event in profiler.events() if event.name.startswith("aten::"))
    assert largest < 0.25 * 3000 * 3000 * 4


def test_width_that_the_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="width=10 is not a multiple of heads=4"):
        DisentangledSelfAttention(10, heads=4)
