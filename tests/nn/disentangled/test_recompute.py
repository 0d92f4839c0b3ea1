"""The ways that disentangled attention is trained in torch: each gives the plain path's numbers and gradients.

Scores made again (`recompute`), weights kept, and all scores held (`saved_scores`).
"""

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from precis.nn.disentangled import recompute
from precis.nn.disentangled.bands import Attended
from precis.nn.disentangled.inputs import Operands
from precis.nn.disentangled.recompute import attend_recomputing
from precis.nn.disentangled.saved_scores import attend_keeping, attend_openly
from tests.nn.disentangled.inputs import operands, padding, plain, random_inputs

learning = pytest.mark.parametrize("learn", [attend_recomputing, attend_keeping, attend_openly])


@pytest.mark.usefixtures("small_blocks")
@learning
@pytest.mark.parametrize("kept", [("c2p",), ("p2c",)])
def test_either_position_score_alone_is_enough(
    kept: tuple[str, ...], learn: Callable[[Operands], torch.Tensor]
) -> None:
    inputs = [x.requires_grad_() for x in random_inputs(50)]
    valid = padding(50)
    used = [*inputs[:3], inputs[3] if kept == ("c2p",) else inputs[4]]
    expected = plain(inputs, valid, kept)
    learnt = learn(operands(inputs, valid, kept))
    torch.testing.assert_close(learnt, expected)
    torch.testing.assert_close(
        torch.autograd.grad(learnt.square().sum(), used), torch.autograd.grad(expected.square().sum(), used)
    )


@pytest.mark.usefixtures("small_blocks")
@learning
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 13, 40, 75])
def test_training_gives_the_plain_path_and_its_gradients(
    length: int, masked: bool, learn: Callable[[Operands], torch.Tensor]
) -> None:
    inputs = [x.requires_grad_() for x in random_inputs(length)]
    valid = padding(length) if masked else None
    weights = torch.randn(inputs[0].shape, dtype=torch.float64)
    expected = plain(inputs, valid)
    found = learn(operands(inputs, valid))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad((found * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
    )


def weights_that_dropout_keeps(
    length: int, rate: float, learn: Callable[[Operands], torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """With one-hot values attention gives its own weights."""
    inputs = random_inputs(length, batch=2, width=length)
    inputs[2] = torch.eye(length, dtype=torch.float64).expand(2, 2, length, length).contiguous()
    torch.manual_seed(5)
    return learn(operands(inputs, dropout=rate)), inputs


@pytest.mark.usefixtures("small_blocks")
@learning
def test_dropout_takes_the_stated_share_of_weights_and_scales_the_others(
    learn: Callable[[Operands], torch.Tensor],
) -> None:
    found, inputs = weights_that_dropout_keeps(60, 0.25, learn)
    expected = plain(inputs)
    dropped = found == 0.0
    assert 0.22 < dropped.double().mean() < 0.28
    torch.testing.assert_close(found[~dropped], expected[~dropped] / 0.75)


@pytest.mark.usefixtures("small_blocks")
@learning
def test_no_rows_of_a_batch_are_dropped_alike(learn: Callable[[Operands], torch.Tensor]) -> None:
    found, _ = weights_that_dropout_keeps(60, 0.25, learn)
    rows = (found == 0.0).flatten(0, 2)  # of all documents and heads
    assert len(torch.unique(rows, dim=0)) == len(rows)


def test_queries_and_keys_are_freed_where_a_layer_is_checkpointed() -> None:
    v, position_keys, position_queries = random_inputs(20)[2:]
    states = torch.randn(3, 2, 20, 8, dtype=torch.float64, requires_grad=True)
    made: list[Any] = []

    def layer(states: torch.Tensor) -> torch.Tensor:
        q, k = 2 * states, 3 * states
        made.extend((weakref.ref(q), weakref.ref(k)))
        return attend_recomputing(operands((q, k, v, position_keys, position_queries)))

    mixed = checkpoint(layer, states, use_reentrant=False)
    assert [tensor() for tensor in made] == [None, None]
    mixed.sum().backward()
    assert states.grad is not None


@pytest.mark.usefixtures("small_blocks")
@learning
def test_the_backward_pass_drops_the_same_weights(learn: Callable[[Operands], torch.Tensor]) -> None:
    """Gradients with dropout are those of the plain path with this very mask."""
    length, rate = 30, 0.25
    kept = (weights_that_dropout_keeps(length, rate, learn)[0] != 0.0) / (1 - rate)
    inputs = [x.requires_grad_() for x in random_inputs(length, batch=2, width=length)]
    torch.manual_seed(5)
    found = learn(operands(inputs, dropout=rate))
    expected = plain(inputs, keep=kept)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
    )


@learning
def test_single_precision_stays_within_the_tolerances(learn: Callable[[Operands], torch.Tensor]) -> None:
    inputs = random_inputs(300, batch=1, dtype=torch.float32)
    exact = [x.double().requires_grad_() for x in inputs]
    learnt = [x.requires_grad_() for x in inputs]
    expected = plain(exact)
    found = learn(operands(learnt))
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(
        torch.autograd.grad(found.sum(), learnt), torch.autograd.grad(expected.sum(), exact), strict=True
    ):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-4, rtol=1e-4)


@learning
def test_half_precision_errs_no_more_than_the_plain_path(learn: Callable[[Operands], torch.Tensor]) -> None:
    half = [x.bfloat16() for x in random_inputs(300, batch=1)]
    exact = plain([x.double() for x in half])
    theirs = (plain(half).double() - exact).abs().mean()
    assert (learn(operands(half)).double() - exact).abs().mean() <= 1.1 * theirs


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_products_are_added_up_in_single_precision_whatever_their_own_type(dtype: torch.dtype) -> None:
    """In one call where the types are the same."""
    generator = torch.Generator().manual_seed(0)
    out, left, right = (torch.randn(2, 3, 4, 4, generator=generator) for _ in range(3))
    left, right = left.to(dtype), right.to(dtype)
    found, expected = out.clone(), out + left @ right
    with torch.profiler.profile() as profiler:
        recompute._add_product(found, left, right)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)
    calls = {event.name for event in profiler.events()}
    assert ("aten::baddbmm_" in calls) == (dtype == torch.float32)


def test_as_many_documents_are_recomputed_at_a_time_as_have_a_million_scores() -> None:
    """Of blocks of 128 rows, or of all rows of a shorter text: the processor's cache holds them."""
    for length, heads, batch, most in ((256, 4, 20, 8), (64, 16, 20, 16), (256, 64, 2, 1)):
        groups = recompute._groups(operands(random_inputs(length, batch=batch, heads=heads, width=1)))
        assert next(group.stop - group.start for group in groups) == most
        assert [place for group in groups for place in range(batch)[group]] == [*range(batch)]


@pytest.mark.parametrize(
    ("dtype", "dropout", "in_bands"),
    [
        (torch.float32, 0.0, True),
        (torch.float64, 0.0, True),
        (torch.float32, 0.1, False),
        (torch.bfloat16, 0.0, False),
    ],
)
def test_the_fused_kernel_mixes_what_is_exact_and_has_no_dropout(
    dtype: torch.dtype, dropout: float, in_bands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch mixes the rest step by step, and everything where it lacks the kernel."""
    asked: list[Operands] = []

    def fused(given: Operands) -> Attended:
        asked.append(given)
        return Attended.empty(given)

    monkeypatch.setattr(recompute, "attend_in_bands", fused)
    for ready in (True, False):
        monkeypatch.setattr(recompute, "is_available", lambda ready=ready: ready)
        attend_recomputing(operands(random_inputs(6, dtype=dtype), dropout=dropout))
    assert len(asked) == in_bands
