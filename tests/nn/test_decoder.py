"""The decoder: step by step it gives what it gives at once, and its observers and weights see main states."""

from typing import Any

import pytest
import torch
from transformers import DynamicCache, EncoderDecoderCache

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, build_decoder
from precis.nn.attention_weights import AttentionWeights
from precis.nn.decoder import Decoder
from precis.nn.streams import whole_target

SOURCE = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(1))
VALID = torch.arange(7) < torch.tensor([[7], [4]])


def build(**changes: Any) -> Decoder:
    torch.manual_seed(0)
    shape = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
    layers = {"encoder_layers": 1, "decoder_layers": 2}
    return build_decoder(ZCodePPConfig(**shape, **layers, **changes)).eval()


def target(length: int = 6, seed: int = 2) -> torch.Tensor:
    return torch.randn(2, length, 16, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
@pytest.mark.parametrize("steps", [[1] * 6, [2, 1, 3]])
def test_with_a_cache_steps_give_the_states_of_the_whole(steps: list[int]) -> None:
    decoder, states = build(), target()
    whole = decoder(states, SOURCE, source_valid=VALID)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    parts = [decoder(part, SOURCE, source_valid=VALID, cache=cache) for part in states.split(steps, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


@torch.no_grad()
def test_the_source_is_projected_at_the_first_step_only() -> None:
    decoder, states = build(), target()
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    first = decoder(states[:, :1], SOURCE, source_valid=VALID, cache=cache)
    again = EncoderDecoderCache(DynamicCache(), DynamicCache())
    decoder(states[:, :1], SOURCE, source_valid=VALID, cache=again)
    second = decoder(states[:, 1:2], SOURCE, source_valid=VALID, cache=cache)
    other = decoder(states[:, 1:2], SOURCE * 9, source_valid=VALID, cache=again)
    assert torch.equal(second, other)
    assert not torch.equal(first, decoder(states[:, :1], SOURCE * 9, source_valid=VALID))


@torch.no_grad()
def test_no_state_sees_what_comes_after_it_nor_padding_of_the_source() -> None:
    decoder, states = build(), target()
    found = decoder(states, SOURCE, source_valid=VALID)
    changed, source = states.clone(), SOURCE.clone()
    changed[:, 4:] += 1.0
    source[1, 4:] += 1.0
    other = decoder(changed, source, source_valid=VALID)
    torch.testing.assert_close(other[:, :4], found[:, :4])
    assert not torch.equal(other[:, 4:], found[:, 4:])


@torch.no_grad()
def test_observers_see_main_states_and_last_the_normed_ones() -> None:
    decoder, seen = build(), []  # type: ignore[var-annotated]
    found = decoder(target(), SOURCE, source_valid=VALID, observe=seen.append)
    assert len(seen) == 2
    assert torch.equal(seen[-1], found)


@torch.no_grad()
def test_predicting_states_change_no_main_one_and_all_weights_sum_to_one() -> None:
    decoder = build()
    layout = whole_target(0, 6, range(1, 2))
    weights = AttentionWeights()
    states = torch.cat([target(), target(seed=3)], dim=1)
    found = decoder(states, SOURCE, source_valid=VALID, layout=layout, weights=weights)
    torch.testing.assert_close(found[:, :6], decoder(target(), SOURCE, source_valid=VALID))
    assert weights.predicting_self[0].shape == (2, 2, 6, 7)
    for kind in (weights.self_attention, weights.predicting_self, weights.cross_attention):
        assert [*kind] == [0, 1]
        for made in kind.values():
            torch.testing.assert_close(made.sum(-1), torch.ones(made.shape[:-1]))


def test_only_a_usual_step_needs_no_mask() -> None:
    """Its one query is behind all keys."""
    device = torch.device("cpu")
    assert Decoder._allowed(1, 5, 4, None, device) is None
    found = Decoder._allowed(2, 5, 3, None, device)
    assert found is not None
    assert found[0, 0].tolist() == [[True] * 4 + [False], [True] * 5]
    one = Decoder._allowed(1, 5, 3, None, device)
    assert one is not None
    assert one[0, 0].tolist() == [[True] * 4 + [False]]
    mask = torch.tensor([True, False, True, True, True]).view(1, 1, 1, 5)
    one, two = Decoder._allowed(1, 5, 4, mask, device), Decoder._allowed(2, 5, 3, mask, device)
    assert one is not None
    assert torch.equal(one, mask)
    assert two is not None
    assert torch.equal(two, found & mask)
