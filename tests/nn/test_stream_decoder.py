"""ProphetNet's decoder: step by step it gives what it gives at once; predicting states see no other."""

from typing import Any

import pytest
import torch
from transformers import DynamicCache, EncoderDecoderCache

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig, build_stream_decoder
from precis.nn.stream_decoder import StreamDecoder
from precis.nn.streams import whole_target
from tests.nn.test_transformer import SHAPE

SOURCE = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(1))
VALID = torch.arange(7) < torch.tensor([[7], [4]])


def build() -> StreamDecoder:
    torch.manual_seed(0)
    return build_stream_decoder(ProphetNetConfig(**SHAPE, ngram=2)).eval()


def target(length: int = 6) -> torch.Tensor:
    return torch.randn(2, length, 16, generator=torch.Generator().manual_seed(2))


def decode(decoder: StreamDecoder, states: torch.Tensor, first: int = 0, **options: Any) -> torch.Tensor:
    layout = whole_target(first, states.shape[1], range(2))
    return decoder(states, SOURCE, layout=layout, source_valid=VALID, **options)


@torch.no_grad()
@pytest.mark.parametrize("steps", [[1] * 6, [2, 1, 3]])
def test_with_a_cache_steps_give_main_and_predicting_states_of_the_whole(steps: list[int]) -> None:
    decoder, states = build(), target()
    main, predicting = decode(decoder, states)
    cache, first, found = EncoderDecoderCache(DynamicCache(), DynamicCache()), 0, []
    for part in states.split(steps, dim=1):
        found.append(decode(decoder, part, first, cache=cache))
        first += part.shape[1]
    torch.testing.assert_close(torch.cat([each for each, _ in found], dim=1), main)
    by_stream = [each.unflatten(1, (2, -1)) for _, each in found]
    # stream 1 looks one place further back: at the first place of a step that is a main state of the cache
    torch.testing.assert_close(torch.cat(by_stream, dim=2).flatten(1, 2), predicting)


@torch.no_grad()
def test_eq7_to_eq9_no_state_sees_a_predicting_one() -> None:
    decoder, states = build(), target()
    main, predicting = decode(decoder, states)
    alone, first = decoder(states, SOURCE, layout=whole_target(0, 6, range(1)), source_valid=VALID)
    torch.testing.assert_close(alone, main)
    torch.testing.assert_close(first, predicting[:, :6])


def test_a_target_longer_than_the_table_of_positions_is_refused() -> None:
    decoder = build()
    assert decoder.longest == 18
    with pytest.raises(ValueError, match="19 target tokens: this model has positions for 18; request fewer"):
        decode(decoder, target(19))


@torch.no_grad()
def test_a_predicting_state_has_its_streams_vector_and_the_position_behind_its_place() -> None:
    """Behind the last position of the table is none, and its own stands in."""
    decoder, states = build(), target(3)
    for past in (0, 4, 16):
        layout = whole_target(past, 3, range(2))
        started = decoder._start(states, layout, past, None)
        places = torch.arange(past, past + 3)[None]
        torch.testing.assert_close(started[:, :3], decoder.norm(states + decoder.positions(places)))
        behind = (layout.places + 1).clamp(max=18)
        assert (behind.max() == 18) == (past == 16)
        rows = decoder.streams.weight[(layout.streams - 1) % 2]
        torch.testing.assert_close(started[0, 3:], decoder.norm(rows + decoder.positions(behind[None])[0]))


@torch.no_grad()
def test_positions_in_a_longer_text_stand_for_places() -> None:
    decoder, states = build(), target(3)
    found = decoder._start(states, whole_target(0, 3, range(2)), 0, torch.arange(3, 6)[None])
    torch.testing.assert_close(found, decoder._start(states, whole_target(3, 3, range(2)), 3, None))
