"""Disentangled attention by bands of near keys and a far field, without gradients: the plain path's numbers."""

import pytest
import torch

from precis.nn.disentangled.bands import attend_in_bands
from precis.nn.disentangled.inputs import Operands
from tests.nn.disentangled.inputs import SCALE, make_bias, operands, padding, plain, random_inputs


def in_bands(given: Operands) -> torch.Tensor:
    return attend_in_bands(given).mixed.transpose(0, 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 13, 40, 75])
def test_inference_gives_the_plain_path(length: int, masked: bool) -> None:
    inputs = random_inputs(length)
    valid = padding(length) if masked else None
    found = in_bands(operands(inputs, valid))
    torch.testing.assert_close(found, plain(inputs, valid))


@pytest.mark.usefixtures("small_blocks")
def test_the_log_sum_exp_is_that_of_all_scores() -> None:
    inputs = random_inputs(75)
    q, k, *_ = inputs
    scores = (q * SCALE) @ k.transpose(-1, -2) + make_bias(inputs).rows(0, 75, q, k)
    found = attend_in_bands(operands(inputs))
    torch.testing.assert_close(found.lse.transpose(0, 1), scores.logsumexp(-1))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kept", [("c2p",), ("p2c",)])
def test_either_position_score_alone_is_enough(kept: tuple[str, ...]) -> None:
    inputs, valid = random_inputs(50), padding(50)
    torch.testing.assert_close(in_bands(operands(inputs, valid, kept)), plain(inputs, valid, kept))


def test_single_and_half_precision_err_no_more_than_their_tolerances() -> None:
    inputs = random_inputs(300, batch=1, dtype=torch.float32)
    expected = plain([x.double() for x in inputs])
    torch.testing.assert_close(in_bands(operands(inputs)).double(), expected, atol=1e-5, rtol=1e-5)
    half = [x.bfloat16() for x in inputs]
    exact = plain([x.double() for x in half])
    theirs = (plain(half).double() - exact).abs().mean()
    assert (in_bands(operands(half)).double() - exact).abs().mean() <= 1.1 * theirs
