"""Distances and the rows they share."""

import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from precis.nn.relative_positions import CausalBuckets, LogBuckets, TwoWayBuckets


def test_causal_buckets_are_t5s():
    distances = torch.arange(-20, 400)
    expected = T5Attention._relative_position_bucket(
        -distances, bidirectional=False, num_buckets=32, max_distance=128
    )
    assert torch.equal(CausalBuckets(32, 128)(distances), expected)


def test_every_distance_beyond_the_table_shares_its_edge():
    buckets = LogBuckets(256, 512)
    far = buckets(torch.tensor([511, 512, 5000, -511, -512, -5000]))
    assert far.tolist() == [511, 511, 511, 1, 1, 1]


def test_near_distances_have_rows_of_their_own():
    buckets = LogBuckets(256, 512)
    near = buckets(torch.arange(-128, 129))
    assert near.tolist() == list(range(128, 385))


def test_without_log_buckets_every_distance_below_the_maximum_has_a_row():
    buckets = LogBuckets(0, 64)
    rows = buckets(torch.arange(-63, 64))
    assert buckets.rows == 128
    assert len(set(rows.tolist())) == 127


def test_no_rounding_of_the_logarithm_reaches_the_row_that_is_never_trained(monkeypatch):
    """Devices differ in a logarithm's last bit; at the farthest distance ceil() would make a whole bucket of it."""
    exact = torch.log
    monkeypatch.setattr(
        torch, "log", lambda x: torch.nextafter(exact(x), torch.tensor(torch.inf)) if x.dim() else exact(x)
    )
    assert LogBuckets(256, 512)(torch.tensor([511, -511])).tolist() == [511, 1]


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (16, 64), (8, 20)])
def test_two_way_buckets_equal_transformers_t5(buckets: int, farthest: int) -> None:
    distance = torch.arange(-3 * farthest, 3 * farthest + 1)  # query - key; theirs is key - query
    theirs = T5Attention._relative_position_bucket(
        -distance, bidirectional=True, num_buckets=buckets, max_distance=farthest
    )
    assert torch.equal(TwoWayBuckets(buckets, farthest)(distance), theirs)
