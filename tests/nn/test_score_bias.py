"""Scores that are added: those that exist, and T5's of a head and a bucket of distance."""

import torch

from precis.nn.relative_positions import HeadTable, TwoWayBuckets
from precis.nn.score_bias import BucketedBias, DenseBias

STATES = torch.zeros(2, 3, 9, 4)


def test_rows_of_dense_scores_are_a_part_of_them() -> None:
    scores = torch.randn(1, 3, 9, 9)
    assert torch.equal(DenseBias(scores).rows(2, 5, STATES, STATES), scores[:, :, 2:5])


def test_a_bucketed_score_hangs_on_head_and_distance_alone() -> None:
    buckets = TwoWayBuckets(8, 20)
    table = torch.randn(8, 3)
    found = BucketedBias(HeadTable(table, buckets)).rows(3, 7, STATES, STATES)
    assert found.shape == (1, 3, 4, 9)
    for i in range(3, 7):
        for j in range(9):
            row = int(buckets(torch.tensor(i - j)))
            assert torch.equal(found[0, :, i - 3, j], table[row])


def test_a_bias_without_a_way_of_its_own_leaves_attention_to_attend() -> None:
    bias = DenseBias(torch.zeros(1, 3, 9, 9))
    assert bias.fused(STATES, STATES, STATES, mask=None, scale=1.0, dropout=0.0) is None
