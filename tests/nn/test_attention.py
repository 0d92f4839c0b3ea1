"""The attention function: every path gives the plain path's numbers and gradients."""

from typing import Any

import pytest
import torch

from precis.nn import attention
from precis.nn.attention import DisentangledSelfAttention, attend, scaled_attention
from precis.nn.disentangled import flash
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.layer_plan import Global
from precis.nn.normalizers import Gumbel, TopP
from precis.nn.packing import Packing
from precis.nn.prefix_columns import PrefixColumns
from precis.nn.relative_positions import LogBuckets, OffsetRows, PositionTable
from precis.nn.score_bias import DenseBias
from tests.nn.definition import attention_weights


def random_inputs(
    *, batch: int = 2, heads: int = 3, queries: int = 9, keys: int = 9, width: int = 8, seed: int = 0
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, heads, n, width) for n in (queries, keys, keys)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def test_fused_path_equals_the_plain_weights() -> None:
    q, k, v = random_inputs(queries=12, keys=20)
    bias = DenseBias(torch.randn(2, 3, 12, 20, dtype=torch.float64))
    mask = torch.rand(2, 1, 12, 20) > 0.3
    weights = attention_weights(q, k, scores=bias.scores, mask=mask, scale=0.4)
    torch.testing.assert_close(attend(q, k, v, bias=bias, mask=mask, scale=0.4), weights @ v)


@pytest.mark.parametrize("rows", [0, 1, 75])
def test_query_blocks_equal_the_whole_in_values_and_gradients(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """By the plain path, whatever faster way there is."""
    monkeypatch.setattr(DisentangledBias, "fused", lambda *_, **__: None)
    q, k, v = (x.requires_grad_() for x in random_inputs(queries=75, keys=75))
    tables = torch.randn(2, 3, 32, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    bias = DisentangledBias(*tables, OffsetRows(LogBuckets(16, 32)))  # type: ignore[call-arg]
    mask = (torch.rand(2, 1, rows, 75, generator=torch.Generator().manual_seed(4)) > 0.2) if rows else None

    def value_and_gradients() -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        out = attend(q, k, v, bias=bias, mask=mask, scale=0.3)
        return out, torch.autograd.grad(out.square().sum(), (q, k, v))

    whole, whole_gradients = value_and_gradients()
    monkeypatch.setattr(attention, "_BLOCK_FROM", 16)
    monkeypatch.setattr(attention, "_BLOCK_ROWS", 10)
    blocks, block_gradients = value_and_gradients()
    torch.testing.assert_close(blocks, whole)
    torch.testing.assert_close(block_gradients, whole_gradients)


def test_a_query_that_may_see_nothing_gives_no_nan() -> None:
    q, k, v = random_inputs(queries=4, keys=5)
    mask = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    mask[0, 0, 2] = False
    out = attend(q, k, v, mask=mask)
    assert torch.isfinite(out).all()
    torch.testing.assert_close(out[0, :, 2], v[0].mean(-2))


def test_long_attention_never_holds_all_scores() -> None:
    """At 3,000 keys the scores of all queries would take 36 MB a head; the peak stays at a fraction of that."""
    layer = DisentangledSelfAttention(16, heads=1)
    table = PositionTable(torch.randn(64, 16), OffsetRows(LogBuckets(32, 64)))
    states = torch.randn(1, 3000, 16)
    from torch.profiler import ProfilerActivity, profile

    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        layer(states, positions=table, mask=None)
    largest = max(event.cpu_memory_usage for event in profiler.events() if event.name.startswith("aten::"))
    assert largest < 0.25 * 3000 * 3000 * 4


def test_width_that_the_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="width=10 is not a multiple of heads=4"):
        DisentangledSelfAttention(10, heads=4)
    with pytest.raises(ValueError, match="width=10 is not a multiple of heads=4"):
        scaled_attention(10, heads=4, dropout=0.0)


@pytest.mark.parametrize(
    ("c2p", "p2c", "count"), [(True, True, 3), (True, False, 2), (False, True, 2), (False, False, 1)]
)
def test_scores_are_divided_by_the_root_of_a_heads_width_and_of_the_number_of_terms(
    c2p: bool, p2c: bool, count: int
) -> None:
    layer = DisentangledSelfAttention(48, heads=4, content_to_position=c2p, position_to_content=p2c)
    assert layer.scale == pytest.approx((12 * count) ** -0.5)
    assert scaled_attention(48, heads=4, dropout=0.0).scale == pytest.approx(12**-0.5)


def test_groups_of_a_packed_batch_keep_their_masks_unless_a_kernel_takes_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    fused = DisentangledBias.fused

    def noted(*arguments: Any, documents: Any = None, **options: Any) -> Any:
        asked.append((documents, options["mask"] is None))
        return fused(*arguments, documents=documents, **options)

    monkeypatch.setattr(DisentangledBias, "fused", noted)
    monkeypatch.setattr("precis.nn.packing.WASTE", -9.0)
    valid = torch.arange(9)[None] < torch.tensor([[9], [4]])
    packing = Packing.of(valid, Global(), seen=valid.numpy())
    assert packing is not None
    assert packing.documents is None
    layer = DisentangledSelfAttention(8, heads=2).double()
    states = torch.randn(2, 9, 8, dtype=torch.float64)
    table = PositionTable(torch.randn(32, 8, dtype=torch.float64), OffsetRows(LogBuckets(16, 32)))
    for positions in (table, None):
        whole = layer(states, positions=positions, mask=valid[:, None, None])
        asked.clear()
        found = packing.join(layer(packing.split(states), positions=positions, mask=None, packing=packing))
        torch.testing.assert_close(found[valid], whole[valid])
        assert all(documents is None and not unmasked for documents, unmasked in asked[:1])


@pytest.mark.parametrize("learning", ["queries", "prefix"])
def test_learning_from_a_long_text_keeps_no_scores(learning: str) -> None:
    """Whether the queries learn, or a prefix alone; 1,025 queries are the fewest that are long."""
    queries, keys, values = random_inputs(batch=1, heads=1, queries=1025, keys=1025, width=2)
    columns = [torch.randn(1, 2, 2, dtype=torch.float64) for _ in range(2)]
    learnt = queries if learning == "queries" else columns[0]
    learnt.requires_grad_()
    prefix = PrefixColumns(columns[0], columns[1]) if learning == "prefix" else None
    kept = []

    def keep(saved: torch.Tensor) -> torch.Tensor:
        kept.append(saved.numel())
        return saved

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        mixed = attend(queries, keys, values, bias=None, prefix=prefix, normalize=Gumbel())
    assert max(kept, default=0) < 1025 * 64
    (gradient,) = torch.autograd.grad(mixed.sum(), [learnt])
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("c2p", [True, False])
@pytest.mark.parametrize("p2c", [True, False])
def test_positions_have_projections_of_their_own_only_where_they_are_used_and_not_shared(
    c2p: bool, p2c: bool
) -> None:
    torch.manual_seed(0)
    own = DisentangledSelfAttention(
        8, heads=2, content_to_position=c2p, position_to_content=p2c, shared_position_keys=False
    )
    assert (own.position_key is not None, own.position_query is not None) == (c2p, p2c)
    shared = DisentangledSelfAttention(8, heads=2, content_to_position=c2p, position_to_content=p2c)
    assert (shared.position_key, shared.position_query) == (None, None)
    shared.load_state_dict(own.state_dict(), strict=False)
    table = PositionTable(torch.randn(16, 8), OffsetRows(LogBuckets(8, 16)))
    states = torch.randn(1, 5, 8)
    same = torch.allclose(own(states, positions=table, mask=None), shared(states, positions=table, mask=None))
    assert same == (not c2p and not p2c)


@pytest.mark.parametrize("normalize", [TopP(mass=0.5), Gumbel()])
def test_long_inputs_give_the_same_where_weights_depend_on_all_queries_and_where_not(
    monkeypatch: pytest.MonkeyPatch, normalize: TopP | Gumbel
) -> None:
    q, k, v = random_inputs(batch=1, heads=1, queries=1025, keys=20, width=2)
    found = attend(q, k, v, normalize=normalize)
    monkeypatch.setattr(attention, "_BLOCK_FROM", 2000)
    torch.testing.assert_close(found, attend(q, k, v, normalize=normalize))


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_row_of_documents_is_attended_to_at_once_where_a_kernel_takes_it(
    monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    fused = DisentangledBias.fused

    def noted(bias: Any, *states: torch.Tensor, documents: Any = None, **options: Any) -> Any:
        if documents is None:
            return fused(bias, *states, **options)
        return states[2] if is_taken else None

    monkeypatch.setattr(DisentangledBias, "fused", noted)
    monkeypatch.setattr(flash, "serves", lambda device: True)
    valid = torch.arange(9)[None] < torch.tensor([[9], [4]])
    packing = Packing.of(valid, Global(), seen=valid.numpy())
    assert packing is not None
    assert packing.documents is not None
    layer = DisentangledSelfAttention(8, heads=2).double()
    states = torch.randn(2, 9, 8, dtype=torch.float64)
    table = PositionTable(torch.randn(32, 8, dtype=torch.float64), OffsetRows(LogBuckets(16, 32)))
    found = packing.join(layer(packing.split(states), positions=table, mask=None, packing=packing))
    whole = layer(states, positions=table, mask=valid[:, None, None])
    torch.testing.assert_close(found[valid], (layer.value(states) if is_taken else whole)[valid])
