"""Layer plans and the chunks they cut."""

import pytest
import torch

from precis.nn.layer_plan import Chunks, Global, Local, dense_plan, fusion_plan, runs


def test_fusion_plan_is_m_local_then_n_global_layers():
    assert fusion_plan(4, chunk_length=8, global_layers=1) == (Local(8), Local(8), Local(8), Global())
    assert fusion_plan(2, chunk_length=8, global_layers=2) == dense_plan(2)


def test_neighbours_with_the_same_scope_run_together():
    plan = fusion_plan(5, chunk_length=8, global_layers=2)
    assert runs(plan) == [(Local(8), range(0, 3)), (Global(), range(3, 5))]


@pytest.mark.parametrize("lengths", [(10,), (8,), (3, 20, 16), (25, 1)], ids=str)
def test_chunks_join_to_what_was_split(lengths):
    valid = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    states = torch.randn(len(lengths), max(lengths), 5) * valid[..., None]
    cut = Chunks.cut(valid, Local(8), seen=valid.numpy())
    assert torch.equal(cut.join(cut.split(states)), states)


def test_chunks_of_padding_are_not_computed():
    valid = torch.arange(40)[None] < torch.tensor([40, 3])[:, None]
    cut = Chunks.cut(valid, Local(8), seen=valid.numpy())
    assert len(cut.valid) == 5 + 1


def test_impossible_plans_name_the_value():
    with pytest.raises(ValueError, match="global_layers=7"):
        fusion_plan(4, chunk_length=8, global_layers=7)
    with pytest.raises(ValueError, match="chunk_length=0"):
        Local(0)
