"""Main and predicting streams: who sees whom, at which distance, against the statements of ProphetNet section 2.3."""

from itertools import pairwise
from typing import Any

import pytest
import torch

from precis.nn.attention import attend
from precis.nn.attention_rows import OwnKeys
from precis.nn.prefix_columns import PrefixBlocks, PrefixColumns, StackPrefix
from precis.nn.relative_positions import CausalBuckets
from precis.nn.streams import (
    Sight,
    StateBucketBias,
    StreamLayout,
    ahead,
    attenuated,
    beside,
    sight,
    whole_target,
)

BUCKETS = CausalBuckets(8, 20)


def rows(layout: StreamLayout) -> list[tuple[int, int, int]]:
    """(stream, place, last main place that is seen) of each state."""
    return list(zip(layout.streams.tolist(), layout.places.tolist(), layout.visible.tolist(), strict=True))


def look(layout: StreamLayout, **options: Any) -> Sight:
    settings = {"first": 0, "length": 6, "keys": 6, "buckets": BUCKETS, "gap": 1, **options}
    return sight(layout, **settings)


def test_stream_k_predicts_a_token_from_those_k_places_before_it() -> None:
    """Section 2.3: the i-th stream predicts y_t from y_<t-i+1; the first of stream k see the start token alone."""
    layout = whole_target(0, 4, range(3))
    assert len(layout) == 12
    assert rows(layout)[:4] == [(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 3, 3)]
    assert rows(layout)[4:8] == [(1, 0, 0), (1, 1, 0), (1, 2, 1), (1, 3, 2)]
    assert rows(layout)[8:] == [(2, 0, 0), (2, 1, 0), (2, 2, 0), (2, 3, 1)]


def test_from_a_place_stream_k_looks_k_places_further() -> None:
    assert rows(ahead(4, 2, range(3))) == [(0, 4, 4), (0, 5, 5), (1, 5, 4), (1, 6, 5), (2, 6, 4), (2, 7, 5)]


@pytest.mark.parametrize("first", [0, 7])
def test_decoding_asks_for_states_that_training_has(first: int) -> None:
    trained = set(rows(whole_target(0, 40, range(4))))
    assert set(rows(ahead(first, 5, range(4)))) <= trained
    assert rows(ahead(first, 5, range(1))) == rows(whole_target(first, 5, range(1)))


@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_eq7_to_eq9_a_state_sees_main_keys_up_to_its_last_and_a_predicting_one_itself(ngram: int) -> None:
    """Eq. 7 for main states, Eqs. 8 and 9 for the others."""
    layout = whole_target(0, 6, range(ngram))
    found = look(layout)
    assert found.mask.shape == (1, 1, 6 + 6 * ngram, 7)
    for state in range(6 + 6 * ngram):
        last = state if state < 6 else int(layout.visible[state - 6])
        expected = [key <= last for key in range(6)] + [state >= 6]
        assert found.mask[0, 0, state].tolist() == expected


def test_distances_are_counted_from_the_predicted_token_and_a_states_own_is_none() -> None:
    layout = whole_target(0, 6, range(2))
    found = look(layout).buckets
    assert found.shape == (1, 18, 7)
    for state in range(18):
        place = state if state < 6 else int(layout.places[state - 6]) + 1
        distances = torch.tensor([place - key for key in range(6)] + [0])
        assert torch.equal(found[0, state], BUCKETS(distances))


def test_without_a_gap_a_predicting_state_stands_where_the_main_state_of_its_place_stands() -> None:
    layout = whole_target(0, 6, range(1, 3))
    assert torch.equal(look(layout, gap=0).buckets[:, 6:12], look(layout, gap=0).buckets[:, :6])


@pytest.mark.parametrize("first", [1, 4])
def test_later_places_see_what_they_saw_in_the_whole(first: int) -> None:
    """As with a cache that holds the places before `first`."""
    whole, part = whole_target(0, 6, range(3)), whole_target(first, 6 - first, range(3))
    everything = look(whole)
    found = look(part, first=first, length=6 - first)
    kept = [i for i in range(24) if i % 6 >= first]
    assert torch.equal(found.mask[0, 0], everything.mask[0, 0, kept])
    assert torch.equal(found.buckets[0], everything.buckets[0, kept])


def test_room_in_a_static_cache_is_not_seen() -> None:
    layout = whole_target(2, 1, range(3))
    found = look(layout, first=2, length=1, keys=9).mask[0, 0]
    assert found.shape == (4, 10)
    assert not found[:, 3:9].any()
    assert found[:, 9].tolist() == [False, True, True, True]


def test_padding_of_the_target_is_hidden_from_all_states() -> None:
    real = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]]).bool()[:, None, None, :]
    layout = whole_target(0, 6, range(2))
    found, plain = look(layout, valid=real).mask, look(layout).mask
    assert torch.equal(found[:1], plain)
    assert not found[1, 0, :, :2].any()
    assert torch.equal(found[1, 0, :, 2:], plain[0, 0, :, 2:])


def test_a_mask_of_main_states_holds_for_the_predicting_states_that_look_from_there() -> None:
    """A mask with a row for each main state, as for a cache of several lengths."""
    valid = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(0)) < 0.5
    layout = whole_target(0, 6, range(3))
    found, plain = look(layout, valid=valid).mask, look(layout).mask
    for state in range(24):
        row = state if state < 6 else int(layout.visible[state - 6])
        expected = plain[0, 0, state, :6] & valid[:, 0, row]
        assert torch.equal(found[:, 0, state, :6], expected)
        assert (found[:, 0, state, 6] == (state >= 6)).all()


def test_positions_in_a_longer_text_replace_places() -> None:
    positions = torch.tensor([[3, 4, 5, 30, 31, 90], [0, 1, 2, 3, 4, 5]])
    layout = whole_target(0, 6, range(2))
    found = look(layout, positions=positions).buckets
    assert torch.equal(found[1], look(layout).buckets[0])
    for state in range(18):
        stands = positions[0, state] if state < 6 else positions[0, layout.places[state - 6]] + 1
        assert torch.equal(found[0, state, :6], BUCKETS(stands - positions[0]))


def test_scores_are_those_of_the_asking_states_buckets_for_any_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    by_bucket = torch.randn(2, 3, 10, 8, generator=generator)
    buckets = torch.randint(0, 8, (1, 10, 5), generator=generator)
    bias = StateBucketBias(by_bucket, buckets)
    states = torch.zeros(2, 3, 10, 4)
    whole = bias.rows(0, 10, states, states[..., :5, :])
    for i in range(10):
        for j in range(5):
            assert torch.equal(whole[..., i, j], by_bucket[..., i, int(buckets[0, i, j])])
    assert torch.equal(bias.rows(3, 7, states, states[..., :5, :]), whole[..., 3:7, :])


def test_eq8_and_eq9_attention_over_streams_is_attention_over_the_joined_keys() -> None:
    """H (+) g of Eqs. 8 and 9, each state by itself."""
    generator = torch.Generator().manual_seed(0)
    layout = whole_target(0, 5, range(2))
    seen = look(layout, length=5, keys=5)
    queries, keys, values = torch.randn(3, 2, 3, 15, 4, generator=generator)
    bias = StateBucketBias(torch.randn(2, 3, 15, 8, generator=generator), seen.buckets)
    own = OwnKeys(keys, values)
    found = attend(
        queries, keys[..., :5, :], values[..., :5, :], bias=bias, mask=seen.mask, own=own, scale=0.5
    )
    scores = bias.rows(0, 15, queries, keys)
    for state in range(15):
        main = range(state + 1) if state < 5 else range(int(layout.visible[state - 5]) + 1)
        chosen = [*main] if state < 5 else [*main, state]
        columns = [*main] if state < 5 else [*main, 5]
        dots = torch.einsum("bhe,bhje->bhj", queries[:, :, state], keys[:, :, chosen]) * 0.5
        weights = torch.softmax(dots + scores[:, :, state, columns], dim=-1)
        expected = torch.einsum("bhj,bhje->bhe", weights, values[:, :, chosen])
        torch.testing.assert_close(found[:, :, state], expected, atol=1e-6, rtol=1e-5)


def test_eq10_weights_attenuate_by_gamma_and_sum_to_one() -> None:
    assert attenuated(1, 0.3) == [1.0]
    assert attenuated(2, 1.0) == [0.5, 0.5]
    assert attenuated(3, 0.5) == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    for streams in (2, 3, 5):
        weights = attenuated(streams, 0.7)
        assert sum(weights) == pytest.approx(1.0)
        assert [later / sooner for sooner, later in pairwise(weights)] == pytest.approx([0.7] * (streams - 1))


def test_a_full_mask_over_cached_places_gives_predicting_states_the_row_of_the_last_place_they_see() -> None:
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(2, 1, 6, 6, generator=generator) > 0.4
    options = {"keys": 6, "buckets": CausalBuckets(), "gap": 1}
    whole = sight(whole_target(0, 6, range(3)), first=0, length=6, valid=allowed, **options)  # type: ignore[arg-type]
    late = sight(whole_target(4, 2, range(3)), first=4, length=2, valid=allowed[:, :, 4:], **options)  # type: ignore[arg-type]
    # stream 0, whose last visible places are among the new ones
    assert torch.equal(late.mask[:, :, 2:4], whole.mask[:, :, [6 + 4, 6 + 5]])


@pytest.mark.parametrize("past", [0, 4])
def test_a_prefix_shows_a_predicting_state_what_the_last_place_that_it_sees_is_shown(past: int) -> None:
    """Or the first of this step's places, if that one is in the cache."""
    segments = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0]])[:, past:]
    keys, length = torch.zeros(1, 3, 4), 6 - past
    columns = PrefixColumns(keys, keys, PrefixBlocks(segments, torch.arange(3), 3))
    layout = whole_target(past, length, range(2))
    found, none = beside(StackPrefix((columns, None)), layout, past=past, length=length).self_attention
    assert none is None
    assert found is not None
    assert found.blocks is not None
    seen = [*range(length), *(max(place - past, 0) for place in layout.visible.tolist())]
    assert torch.equal(found.blocks.segments, segments[:, seen])
