"""A batch without its padding: the same states and gradients at real tokens, with fewer positions computed."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, build_encoder
from precis.nn import packing
from precis.nn.attention_weights import AttentionWeights
from precis.nn.disentangled import flash
from precis.nn.layer_plan import Global, Local
from precis.nn.packing import Packing
from precis.nn.prefix_columns import StackPrefix

LENGTHS = (3, 70, 41, 69, 12, 0)
# shares of waste from which on batches are packed
ALWAYS, NEVER = -9.0, 2.0


def make_valid(lengths: Sequence[int] = LENGTHS, longest: int = 70) -> torch.Tensor:
    return torch.arange(longest)[None] < torch.tensor(lengths)[:, None]


def packing_of(valid: torch.Tensor, scope: Local | Global) -> Packing | None:
    return Packing.of(valid, scope, seen=valid.numpy())


def make_encoder(**changes: Any) -> nn.Module:
    torch.manual_seed(0)
    settings = {
        "hidden_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "encoder_layers": 3,
        "vocab_size": 50,
        "position_buckets": 8,
        "max_relative_positions": 16,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        **changes,
    }
    return build_encoder(ZCodePPConfig(**settings)).double()


def embed(valid: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(*valid.shape, 16, generator=generator, dtype=torch.float64)
    return (states * valid[..., None]).requires_grad_()


def encode(
    encoder: Any,
    states: torch.Tensor,
    valid: torch.Tensor,
    *,
    waste: float,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """States at real tokens and gradients; `waste` decides whether the batch is packed."""
    monkeypatch.setattr(packing, "WASTE", waste)
    output = encoder(states, valid, **options)[valid]
    inputs = [states, *encoder.parameters()]
    return output, torch.autograd.grad(output.square().sum(), inputs, allow_unused=True)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"chunk_length": 24, "global_layers": 1},
        {"chunk_length": 32, "global_layers": 0},
        {"convolution_kernel": 3},
        {"encoder_positions": "bucketed"},
    ],
    ids=["dense", "fusion", "local", "convolution", "bucketed"],
)
def test_packed_batches_give_the_padded_states_and_gradients(
    changes: dict[str, int | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = make_encoder(**changes)
    valid = make_valid()
    states = embed(valid)
    padded = encode(encoder, states, valid, waste=NEVER, monkeypatch=monkeypatch)
    found = encode(encoder, states, valid, waste=ALWAYS, monkeypatch=monkeypatch)
    torch.testing.assert_close(found, padded)


@pytest.mark.parametrize("holes", [False, True])
def test_padding_may_be_on_the_left_or_within(holes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder()
    valid = make_valid().flip(1)
    if holes:
        valid &= torch.rand(valid.shape, generator=torch.Generator().manual_seed(3)) > 0.3
    states = embed(valid)
    padded = encode(encoder, states, valid, waste=NEVER, monkeypatch=monkeypatch)
    found = encode(encoder, states, valid, waste=ALWAYS, monkeypatch=monkeypatch)
    torch.testing.assert_close(found, padded)


def test_the_ragged_last_chunk_of_a_single_document_is_not_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder(chunk_length=32, global_layers=1)
    valid = make_valid((70,))
    packing = packing_of(valid, Local(32))
    assert packing is not None
    assert [(group.count, group.length) for group in packing.groups] == [(2, 32), (1, 6)]
    assert packing.real is None
    states = embed(valid)
    padded = encode(encoder, states, valid, waste=NEVER, monkeypatch=monkeypatch)
    found = encode(encoder, states, valid, waste=ALWAYS, monkeypatch=monkeypatch, padded=False)
    torch.testing.assert_close(found, padded)


def test_states_after_each_layer_are_seen_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder(chunk_length=24, global_layers=1)
    valid = make_valid()
    seen = {NEVER: [], ALWAYS: []}  # type: ignore[var-annotated]
    for waste, layers in seen.items():
        monkeypatch.setattr(packing, "WASTE", waste)
        encoder(embed(valid), valid, observe=layers.append)
    for ours, theirs in zip(seen[ALWAYS], seen[NEVER], strict=True):
        torch.testing.assert_close(ours[valid], theirs[valid])
        assert not ours[~valid].any()


def test_packing_leaves_little_padding_and_is_left_out_where_it_spares_little() -> None:
    valid = make_valid((512, 400, 399, 100, 90, 20), 512)
    packing = packing_of(valid, Global())
    assert packing is not None
    assert len(packing.source) <= 1.1 * int(valid.sum())
    assert packing_of(make_valid((70, 69, 68), 70), Global()) is None
    assert packing_of(make_valid((0, 0), 70), Global()) is None


def test_what_is_split_and_joined_gives_every_real_token_back() -> None:
    valid = make_valid()
    states = embed(valid)
    packing = packing_of(valid, Local(24))
    assert packing is not None
    torch.testing.assert_close(packing.join(packing.split(states)), states)


def test_a_batch_without_padding_is_packed_only_if_no_waste_is_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    valid = torch.ones(2, 8, dtype=torch.bool)
    for waste, is_packed in ((0.05, False), (0.0, True), (ALWAYS, True)):
        monkeypatch.setattr(packing, "WASTE", waste)
        assert (Packing.of(valid, Local(4), seen=None) is not None) == is_packed


def test_a_last_chunk_of_one_token_is_packed_where_no_token_is_padding() -> None:
    found = Packing.of(torch.ones(1, 65, dtype=torch.bool), Local(32), seen=None)
    assert found is not None
    assert [(group.count, group.length) for group in found.groups] == [(2, 32), (1, 1)]


def test_a_kernel_for_documents_of_any_lengths_gets_the_bounds_of_each_and_of_its_filler() -> None:
    groups = [[packing._Span(30, 9), packing._Span(0, 9), packing._Span(20, 5)], [packing._Span(40, 3)]]
    found = packing._documents(groups, torch.device("cpu"))
    assert found.bounds.tolist() == [0, 9, 18, 23, 27, 30]
    assert found.longest == 9


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [([100, 84, 83], [[100, 84], [83]]), ([800, 700, 699], [[800, 700], [699]]), ([3, 9, 5], [[9, 5, 3]])],
)
def test_documents_that_are_an_eighth_or_16_tokens_shorter_share_a_group(
    lengths: list[int], groups: list[list[int]]
) -> None:
    found = packing._grouped([packing._Span(0, length) for length in lengths])
    assert [[span.length for span in group] for group in found] == groups


def test_a_kernel_for_documents_of_any_lengths_packs_every_padded_batch_without_gaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flash, "serves", lambda device: True)
    found = packing_of(make_valid((70, 69, 68), 70), Global())
    assert found is not None
    assert found.documents is not None
    assert found.documents.bounds.tolist() == [0, 70, 139, 140, 208, 210]
    assert packing_of(make_valid((70, 70), 70), Global()) is None
    gaps = make_valid((70, 30), 70)
    gaps[0, 3] = False
    found = packing_of(gaps, Global())
    assert found is not None
    assert found.documents is None


@torch.no_grad()
def test_padding_is_left_out_but_of_compiled_layers_and_where_weights_are_written_or_a_prefix_is_given() -> (
    None
):
    encoder, valid = make_encoder(), make_valid()
    rows: list[int] = []
    encoder.layers[0].feed_forward.register_forward_pre_hook(  # type: ignore[index, union-attr]
        lambda _, given: rows.append(given[0].shape[:-1].numel())
    )
    encoder(embed(valid), valid)
    assert rows.pop() < 0.8 * valid.numel()
    encoder(embed(valid), valid, weights=AttentionWeights())
    encoder(embed(valid), valid, prefix=StackPrefix((None,) * 3))
    encoder.compile_layers(lambda layer: lambda layer, *given: layer(*given))  # type: ignore[operator]
    encoder.train()(embed(valid), valid)
    assert rows == [valid.numel()] * 3
