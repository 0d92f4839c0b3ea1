"""Packed matrices multiply as the plain ones do."""

import pytest
import torch
import torch.nn.functional as F

from precis.generation.fast import packed_linear as fast_linear
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, has_int8, pack
from precis_text.errors import UserError


@pytest.mark.parametrize("shape", [(96, 32), (32, 96)])
@pytest.mark.parametrize("packed_for", [1, 5])
@pytest.mark.parametrize("bias", [True, False])
def test_fp32_products_are_those_of_linear_for_any_number_of_rows(
    shape: tuple[int, int], packed_for: int, bias: bool
) -> None:
    weight, added = torch.randn(shape), torch.randn(shape[0]) if bias else None
    packed = pack(weight, added, rows=packed_for, weights=AsGiven())
    for rows in (1, 2, 5, 40):
        states = torch.randn(rows, shape[1])
        torch.testing.assert_close(packed(states), F.linear(states, weight, added), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("weights", "error"), [(BFloat16(), 0.02), (Int8(), 0.03)])
def test_fewer_bits_err_by_their_rounding(weights: BFloat16 | Int8, error: float) -> None:
    if isinstance(weights, Int8) and not has_int8():
        pytest.skip("this build of torch has no int8 product")
    weight, states, bias = torch.randn(64, 128), torch.randn(3, 128), torch.randn(64)
    dtype = torch.bfloat16 if isinstance(weights, BFloat16) else torch.float32
    product = pack(weight, bias, rows=3, weights=weights)(states.to(dtype)).float()
    exact = F.linear(states, weight, bias)
    assert ((product - exact).norm() / exact.norm()).item() < error


def test_without_onednn_the_plain_product_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_linear, "has_onednn", lambda dtype: False)
    weight, states = torch.randn(8, 4), torch.randn(3, 4)
    packed = pack(weight, None, rows=3, weights=AsGiven())
    assert torch.equal(packed(states), F.linear(states, weight))


def test_int8_says_what_it_needs_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_linear, "has_int8", lambda: False)
    with pytest.raises(UserError, match="BFloat16"):
        pack(torch.randn(8, 4), None, rows=3, weights=Int8())


def test_8_bits_are_there_where_torchs_own_product_is() -> None:
    weight, states = torch.randn(6, 5), torch.randn(2, 5)
    try:
        is_right = torch.allclose(
            fast_linear._int8(fast_linear._quantized(weight, None))(states), states @ weight.mT, atol=0.2
        )
    except (RuntimeError, AttributeError, NotImplementedError):
        is_right = False
    assert has_int8() is is_right


def test_a_row_of_zeros_is_packed_in_8_bits_without_harm() -> None:
    if not has_int8():
        pytest.skip("this build of torch has no int8 product")
    product = pack(torch.zeros(8, 4), None, rows=3, weights=Int8())(torch.randn(3, 4))
    assert torch.equal(product, torch.zeros(3, 8))
