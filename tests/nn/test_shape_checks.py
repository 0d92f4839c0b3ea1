"""The checks of shapes, which `make test` switches on for these tests, find a wrong shape."""

import jaxtyping
import pytest
import torch

from precis.nn.attention import split_heads


def test_the_hook_finds_a_wrong_shape(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("run without --jaxtyping-packages")
    with pytest.raises(jaxtyping.TypeCheckError, match="split_heads"):
        split_heads(torch.zeros(2, 8), 2)
    assert split_heads(torch.zeros(2, 3, 8), 2).shape == (2, 2, 3, 4)
