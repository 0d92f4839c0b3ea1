"""Layer plans and the chunks they cut."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from precis.nn.layer_plan import Chunks, Global, Local, dense_plan, fusion_plan, runs


def test_fusion_plan_is_m_local_then_n_global_layers() -> None:
    assert fusion_plan(4, chunk_length=8, global_layers=1) == (Local(8), Local(8), Local(8), Global())
    assert fusion_plan(2, chunk_length=8, global_layers=2) == dense_plan(2)


def test_neighbours_with_the_same_scope_run_together() -> None:
    plan = fusion_plan(5, chunk_length=8, global_layers=2)
    assert runs(plan) == [(Local(8), range(0, 3)), (Global(), range(3, 5))]


@pytest.mark.parametrize("lengths", [(10,), (8,), (3, 20, 16), (25, 1)], ids=str)
def test_chunks_join_to_what_was_split(lengths: tuple[int, ...]) -> None:
    valid = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    states = torch.randn(len(lengths), max(lengths), 5) * valid[..., None]
    cut = Chunks.cut(valid, Local(8), seen=valid.numpy())
    assert torch.equal(cut.join(cut.split(states)), states)


def test_chunks_of_padding_are_not_computed() -> None:
    valid = torch.arange(40)[None] < torch.tensor([40, 3])[:, None]
    cut = Chunks.cut(valid, Local(8), seen=valid.numpy())
    assert len(cut.valid) == 5 + 1


def test_impossible_plans_name_the_value() -> None:
    with pytest.raises(ValueError, match="global_layers=7"):
        fusion_plan(4, chunk_length=8, global_layers=7)
    with pytest.raises(ValueError, match="chunk_length=0"):
        Local(0)


@pytest.mark.parametrize("cut", [Chunks.cut, Chunks.cut_all])
@pytest.mark.parametrize(
    ("length", "scope", "is_whole"), [(8, Local(8), True), (9, Local(8), False), (9, Global(), True)]
)
def test_an_input_of_one_chunk_stays_whole(
    cut: Callable[..., Any], length: int, scope: Local | Global, is_whole: bool
) -> None:
    valid = torch.ones(2, length, dtype=torch.bool)
    found = cut(valid, scope, **({"seen": None} if cut == Chunks.cut else {"padded": False}))
    assert (found.kept is None) == is_whole
    assert found.shape == (2, length)
    assert found.padded == (not is_whole)  # the last chunk
    assert (found.mask is None) == is_whole
    assert found.valid.sum() == 2 * length


def test_chunks_without_padding_have_no_mask_and_all_are_kept_in_a_traced_pass() -> None:
    valid = torch.arange(16)[None] < torch.tensor([16, 3])[:, None]
    whole = Chunks.cut(valid[:1], Local(8), seen=None)
    assert (whole.padded, whole.mask) == (False, None)
    assert Chunks.cut(valid, Local(8), seen=valid.numpy()).padded
    traced = Chunks.cut_all(valid, Local(8), padded=True)
    assert len(traced.valid) == 4
    assert traced.padded
    assert not Chunks.cut_all(valid[:1], Local(8), padded=False).padded
    states = torch.randn(2, 16, 5)
    assert torch.equal(traced.join(traced.split(states)), states)


@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("lengths", [(16, 10), (20, 3), (9,), (8,)], ids=str)
def test_weights_of_chunks_are_the_blocks_of_whole_weights(lengths: tuple[int, ...], columns: int) -> None:
    """Whole weights times whole values are what the chunks give, behind columns that all chunks see."""
    generator = torch.Generator().manual_seed(0)
    width = max(lengths)
    valid = torch.arange(width)[None] < torch.tensor(lengths)[:, None]
    cut = Chunks.cut(valid, Local(8), seen=valid.numpy())
    given, chunk = cut.valid, cut.valid.shape[1]
    weights = torch.randn(len(given), 2, chunk, columns + chunk, generator=generator, dtype=torch.float64)
    weights = weights * given[:, None, :, None]
    weights[..., columns:] *= given[:, None, None]
    first = torch.randn(columns, 5, generator=generator, dtype=torch.float64)
    values = torch.randn(len(lengths), width, 5, generator=generator, dtype=torch.float64) * valid[..., None]
    whole, again = cut.whole_weights(weights)
    assert whole.shape == (len(lengths), 2, width, columns + width)
    assert torch.equal(again, weights)
    prefix = first.expand(len(lengths), columns, 5)
    mixed = whole @ torch.cat([prefix, values], dim=1)[:, None]
    own = torch.cat([first.expand(len(given), columns, 5), cut.split(values)], dim=1)
    for head in range(2):
        torch.testing.assert_close(mixed[:, head], cut.join(weights[:, head] @ own))


def test_a_chunk_has_one_position_at_least() -> None:
    assert Local(1).chunk_length == 1
    valid = torch.ones(1, 3, dtype=torch.bool)
    assert Chunks.cut(valid, Local(1), seen=None).valid.shape == (3, 1)
