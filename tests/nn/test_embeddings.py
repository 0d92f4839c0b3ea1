"""Token embeddings: what padding gives, and the table that two models share."""

import torch
from torch import nn

from precis.nn.embeddings import DisentangledEmbedding, FanInEmbedding, TokenEmbedding


def test_rows_have_the_spread_that_is_asked_for_and_padding_is_zero() -> None:
    torch.manual_seed(0)
    table = FanInEmbedding(2000, 16, std=0.25, padding_id=3).weight
    assert abs(table.std().item() - 0.25) < 0.01
    assert not table[3].any()


def test_padding_is_zero_and_the_norm_is_blind_to_the_size_of_rows() -> None:
    torch.manual_seed(0)
    module = TokenEmbedding(50, 16, table_width=8, padding_id=0, norm_eps=1e-9, dropout=0.0)
    ids = torch.tensor([[4, 9, 0], [7, 5, 6]])
    found = module(ids, ids != 0)
    assert not found[0, 2].any()
    with torch.no_grad():
        module.tokens.weight *= 10  # type: ignore[assignment, operator]
    torch.testing.assert_close(module(ids, ids != 0), found, atol=1e-5, rtol=1e-5)


def test_eq4_the_discriminators_table_is_the_generators_plus_delta_and_gradients_reach_delta_alone() -> None:
    generator = nn.Embedding(9, 4)
    shared = DisentangledEmbedding(generator)
    with torch.no_grad():
        shared.delta.normal_()
    assert torch.equal(shared.weight, generator.weight + shared.delta)
    ids = torch.tensor([[1, 2, 2]])
    torch.testing.assert_close(shared(ids), shared.weight[ids])
    (shared(ids).sum() + shared.weight.sum()).backward()
    assert generator.weight.grad is None
    assert shared.delta.grad is not None
    assert shared.delta.grad.any()
    assert [name for name, _ in shared.named_parameters()] == ["delta"]
