"""Dropout: its rate, what it keeps, its gradient, and that the same state of the generator drops the same."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from precis.nn.dropout import Dropout, dropout, factors


@pytest.mark.parametrize("rate", [0.003, 0.1, 0.25, 0.5, 0.9])
def test_the_rate_is_met_and_the_mean_stays(rate: float) -> None:
    torch.manual_seed(0)
    found = dropout(torch.ones(1_000_000), rate, training=True)
    assert set(found.unique().tolist()) <= {0.0, found.max().item()}
    deviation = (rate * (1 - rate) / 1_000_000) ** 0.5
    assert abs((found == 0).double().mean().item() - rate) < 4 * deviation + 2**-17
    assert found.max().item() == pytest.approx(1 / (1 - rate), rel=1e-3)
    assert abs(found.double().mean().item() - 1) < 4 * deviation / (1 - rate)


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 5, 64])
def test_neighbours_are_dropped_independently(apart: int) -> None:
    torch.manual_seed(1)
    gone = (dropout(torch.ones(400_000), 0.3, training=True) == 0).double()
    both = (gone[:-apart] * gone[apart:]).mean().item()
    assert abs(both - 0.09) < 4 * (0.09 * 0.91 / 400_000) ** 0.5


@pytest.mark.parametrize("place", range(4))
def test_each_quarter_of_a_draw_has_the_same_rate(place: int) -> None:
    torch.manual_seed(2)
    gone = (dropout(torch.ones(800_000), 0.1, training=True) == 0).double()[place::4]
    assert abs(gone.mean().item() - 0.1) < 4 * (0.09 / 200_000) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 0), (2, 3, 4, 5)])
def test_every_shape_and_type_is_kept(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    states = torch.randn(shape, dtype=dtype)
    found = dropout(states, 0.5, training=True)
    assert (found.shape, found.dtype) == (states.shape, dtype)
    kept = found != 0
    torch.testing.assert_close(found[kept], 2 * states[kept])


def test_the_gradient_is_that_of_what_was_kept() -> None:
    states = torch.randn(50, 40).transpose(0, 1).requires_grad_()
    found = dropout(states, 0.4, training=True)
    found.sum().backward()
    assert states.grad is not None
    torch.testing.assert_close(found, states * states.grad)
    assert (states.grad == 0).any()


def test_the_same_state_drops_the_same_and_the_next_call_does_not() -> None:
    layer, states = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(3)
    first, second = layer(states), layer(states)
    torch.manual_seed(3)
    assert torch.equal(layer(states), first)
    assert not torch.equal(first, second)


def test_recomputing_drops_the_same() -> None:
    layer = Dropout(0.5)
    plain, again = (torch.randn(100, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    for states, run in ((plain, lambda x: layer(x) * x), (again, None)):
        states.requires_grad_()
        torch.manual_seed(5)
        made = run(states) if run else checkpoint(lambda x: layer(x) * x, states, use_reentrant=False)
        made.sum().backward()
    torch.testing.assert_close(plain.grad, again.grad)


def test_outside_training_and_at_the_ends_nothing_is_drawn() -> None:
    states = torch.randn(100)
    before = torch.get_rng_state()
    assert torch.equal(Dropout(0.5).eval()(states), states)
    assert torch.equal(dropout(states, 0.0, training=True), states)
    assert torch.equal(torch.get_rng_state(), before)
    assert not dropout(states, 1.0, training=True).any()


def test_a_rate_just_below_one_keeps_something_finite() -> None:
    by = factors((1_000_000,), 1 - 1e-7, dtype=torch.float32, device=torch.device("cpu"))
    assert by.isfinite().all()


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="dropout probability"):
        dropout(torch.ones(3), rate, training=True)
    with pytest.raises(ValueError, match="dropout probability"):
        Dropout(rate)
