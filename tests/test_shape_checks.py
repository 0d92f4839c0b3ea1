"""The checks of shapes find a wrong shape, and are off in tests of other packages and where torch traces the code."""

import jaxtyping
import pytest
import torch

from precis.nn.attention import split_heads


def test_shapes_are_not_checked_in_tests_of_other_packages() -> None:
    assert jaxtyping.config.jaxtyping_disable


def test_the_hook_finds_a_wrong_shape() -> None:
    jaxtyping.config.update("jaxtyping_disable", False)  # the next test's setup sets it again
    with pytest.raises(jaxtyping.TypeCheckError, match="split_heads"):
        split_heads(torch.zeros(2, 8), 2)
    assert split_heads(torch.zeros(2, 3, 8), 2).shape == (2, 2, 3, 4)
