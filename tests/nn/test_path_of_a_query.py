"""How far a query travels: the modules that are entered between `attend` and the numbers."""

import pytest
import torch
from nn.disentangled.test_compiled import random_inputs
from walks import modules_entered, told_way

from precis.nn.attention import attend
from precis.nn.disentangled import kernels
from precis.nn.relative_positions import LogBuckets
from precis.nn.score_bias import DenseBias, DisentangledBias

BUCKETS = LogBuckets(32, 64)
MOST = 6


def test_by_the_kernel_it_passes_the_modules_that_the_architecture_lists() -> None:
    if not kernels.is_ready("disentangled"):
        pytest.skip("no C++ kernel here, or it is switched off")
    queries, keys, values, *tables = (x.detach() for x in random_inputs(100, buckets=BUCKETS))
    bias = DisentangledBias(queries, keys, *tables, BUCKETS)

    def attended() -> None:
        attend(queries, keys, values, bias=bias, scale=0.1)

    way = modules_entered(attended)
    assert way == told_way("A query, from")
    assert len(way) <= MOST


def test_in_torch_it_passes_the_modules_that_the_architecture_lists() -> None:
    queries, keys, values, *_ = random_inputs(100)
    bias = DenseBias(torch.zeros(1, 2, 100, 100))
    way = modules_entered(lambda: attend(queries, keys, values, bias=bias, scale=0.1))
    assert way == told_way("and in torch")
    assert len(way) <= MOST
