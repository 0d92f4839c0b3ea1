"""The encoder stack and what stands beside its layers."""

import pytest
import torch

from precis.nn.encoder import BucketedPositionEmbedding, Encoder, NgramConvolution, RelativePositionEmbedding
from precis.nn.layer_plan import dense_plan
from precis.nn.packing import Group
from precis.nn.relative_positions import LogBuckets, TwoWayBuckets
from precis_text.errors import UserError
from tests.nn.test_packing import embed, make_encoder, make_valid

CPU = torch.device("cpu")


@torch.no_grad()
def test_padding_on_the_left_that_shifts_chunks_is_refused() -> None:
    encoder = make_encoder(chunk_length=8)
    for shift, fits in ((8, True), (16, True), (3, False), (9, False)):
        valid = torch.ones(2, 24, dtype=torch.bool)
        valid[0, :shift] = False
        if fits:
            encoder(embed(valid), valid)
            continue
        with pytest.raises(UserError, match="pad on the right, or by a multiple of 8"):
            encoder(embed(valid), valid)
    short = torch.ones(2, 8, dtype=torch.bool)
    short[0, :3] = False
    encoder(embed(short), short)  # one chunk is not cut


def test_layers_of_one_pass_share_a_normed_table_and_its_rows_of_distances() -> None:
    torch.manual_seed(0)
    module = RelativePositionEmbedding(LogBuckets(8, 16), 12, norm_eps=1e-7, dropout=0.5).eval()
    for_layer = module.for_layers(CPU)
    one, other = for_layer(), for_layer()
    assert one.offsets is other.offsets
    assert module.norm is not None
    torch.testing.assert_close(one.table, module.norm(module.rows.weight))
    module.train()
    for_layer = module.for_layers(CPU)
    assert not torch.equal(for_layer().table, for_layer().table)  # each layer has a dropout of its own


def test_bucketed_positions_give_every_layer_the_table_itself() -> None:
    module = BucketedPositionEmbedding(TwoWayBuckets(8, 20), heads=3)
    assert module.for_layers(CPU)().table is module.rows.weight


def test_the_convolution_is_added_to_the_first_layer_and_sees_no_padding() -> None:
    torch.manual_seed(0)
    module = NgramConvolution(8, kernel=3, groups=1, activation="tanh", norm_eps=1e-7, dropout=0.0)
    states, layer = torch.randn(2, 6, 8), torch.randn(2, 6, 8)
    valid = torch.arange(6) < torch.tensor([[6], [4]])
    found = module(states, layer, Group(0, 2, 6, valid[:, None, None], CPU))
    mixed = torch.tanh(module.convolution(states.transpose(1, 2)).transpose(1, 2))
    torch.testing.assert_close(found[valid], module.norm(layer + mixed)[valid])
    assert not found[~valid].any()


@torch.no_grad()
def test_an_observer_is_told_whole_sequences_after_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder(chunk_length=24, global_layers=1)
    valid, seen = make_valid(), []  # type: ignore[var-annotated]
    output = encoder(embed(valid), valid, observe=seen.append)
    assert [each.shape for each in seen] == [(*valid.shape, 16)] * 3
    assert torch.equal(seen[-1], output)


def test_a_plan_for_another_number_of_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="has 2 layers, the encoder has 0"):
        Encoder([], plan=dense_plan(2), positions=None)
