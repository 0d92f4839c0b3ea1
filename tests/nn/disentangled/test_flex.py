"""FlexAttention with disentangled scores: the plain path's numbers, in every type."""

import pytest
import torch

from precis.nn.disentangled import flex
from precis.nn.disentangled.flex import attend_flex, score_change
from tests.nn.disentangled.inputs import SCALE, assert_close_in, operands, padding, random_inputs

pytestmark = pytest.mark.traced


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention_equals_the_plain_path(masked: bool, dtype: torch.dtype) -> None:
    """Uncompiled; compiled below. A document of nothing but padding gives the mean of its values."""
    inputs = [x.to(dtype) for x in random_inputs(40)]
    valid = padding(40) if masked else None
    if valid is not None:
        valid[2] = False
    found = attend_flex(operands(inputs, valid))
    assert found.dtype == dtype
    assert_close_in(found, inputs, valid)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_score_of_padding_fits_the_type_that_a_kernel_traces_it_in(dtype: torch.dtype) -> None:
    """Also times log2(e), by which FlexAttention's kernels multiply scores."""
    inputs = [x.to(dtype) for x in random_inputs(4)]
    change = score_change(operands(inputs, torch.zeros(3, 4, dtype=torch.bool)))
    first = torch.tensor(0)
    score = change(torch.ones((), dtype=dtype), first, first, first, first)
    assert score.dtype == dtype
    assert score < torch.finfo(torch.float16).min / 4
    assert (1.4427 * score).isfinite()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_flex_attention_equals_the_plain_path(dtype: torch.dtype) -> None:
    """Lowered for the CPU: the change of scores is traced in the type of the queries, as it is for CUDA."""
    inputs = [x.to(dtype) for x in random_inputs(70, width=16)]
    valid = padding(70)
    valid[2] = False
    attention = torch.compile(flex.flex_attention)  # type: ignore[attr-defined]
    q, k, v, *_ = inputs
    found = attention(q, k, v, score_mod=score_change(operands(inputs, valid)), scale=SCALE)
    assert_close_in(found, inputs, valid)
