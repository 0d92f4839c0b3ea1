"""How far a query travels: the modules that are entered between `attend` and the numbers."""

from collections.abc import Callable

import pytest
import torch

from precis.nn.attention import attend
from precis.nn.disentangled import cpp_loader
from precis.nn.score_bias import DenseBias
from tests.nn.disentangled.inputs import make_bias, random_inputs
from tests.walks import modules_entered

MOST = 6


def query(learnt: bool = False) -> Callable[[], object]:
    """Send a hundred queries through disentangled attention when it is called."""
    inputs = [x.requires_grad_(learnt) for x in random_inputs(100, dtype=torch.float32)]
    bias = make_bias(inputs)
    return lambda: attend(*inputs[:3], bias=bias, scale=0.1)


def test_by_the_kernel_it_passes_at_most_six_modules() -> None:
    if not cpp_loader.is_ready("disentangled"):
        pytest.skip("no C++ kernel here, or it is switched off")
    way = modules_entered(query())
    assert len(way) <= MOST


@pytest.mark.parametrize("learnt", [False, True])
def test_without_the_kernel_it_passes_at_most_six_modules(
    monkeypatch: pytest.MonkeyPatch, learnt: bool
) -> None:
    monkeypatch.setenv(cpp_loader.COMPILE, "0")
    way = modules_entered(query(learnt))
    assert len(way) <= MOST


def test_with_scores_that_exist_it_passes_at_most_six_modules() -> None:
    queries, keys, values, *_ = random_inputs(100)
    bias = DenseBias(torch.zeros(1, 2, 100, 100))
    way = modules_entered(lambda: attend(queries, keys, values, bias=bias, scale=0.1))
    assert len(way) <= MOST
