"""Inputs of disentangled attention, and what its ways should give for them."""

from collections.abc import Sequence

import torch

from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.disentangled.inputs import Operands
from precis.nn.relative_positions import LogBuckets, OffsetRows
from tests.nn.definition import attention_weights

BUCKETS = LogBuckets(8, 16)
SCALE = 0.3


def random_inputs(
    length: int,
    *,
    batch: int = 3,
    heads: int = 2,
    width: int = 8,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> list[torch.Tensor]:
    """Queries, keys, values, and both tables."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, heads, length, width)] * 3 + [(heads, BUCKETS.rows, width)] * 2
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def padding(length: int, batch: int = 3) -> torch.Tensor:
    valid = torch.rand(batch, length, generator=torch.Generator().manual_seed(7)) > 0.4
    valid[:, length // 2] = True
    return valid


def make_bias(
    inputs: Sequence[torch.Tensor], kept: Sequence[str] = ("c2p", "p2c"), buckets: LogBuckets = BUCKETS
) -> DisentangledBias:
    c2p, p2c = inputs[3:]
    return DisentangledBias(
        c2p if "c2p" in kept else None, p2c if "p2c" in kept else None, OffsetRows(buckets)
    )


def operands(
    inputs: Sequence[torch.Tensor],
    valid: torch.Tensor | None = None,
    kept: Sequence[str] = ("c2p", "p2c"),
    *,
    buckets: LogBuckets = BUCKETS,
    scale: float = SCALE,
    dropout: float = 0.0,
) -> Operands:
    """What the ways are given."""
    bias = make_bias(inputs, kept, buckets)
    return bias.operands(*inputs[:3], valid=valid, scale=scale, dropout=dropout)


def plain(
    inputs: Sequence[torch.Tensor],
    valid: torch.Tensor | None = None,
    kept: Sequence[str] = ("c2p", "p2c"),
    *,
    buckets: LogBuckets = BUCKETS,
    scale: float = SCALE,
    keep: torch.Tensor | None = None,
) -> torch.Tensor:
    """The definition: all scores, softmax, dropped weights, values."""
    q, k, v, *_ = inputs
    scores = make_bias(inputs, kept, buckets).rows(0, q.shape[-2], q, k)
    mask = None if valid is None else valid[:, None, None]
    weights = attention_weights(q, k, scores=scores, mask=mask, scale=scale)
    return (weights if keep is None else weights * keep) @ v


def saved_tensors(found: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What autograd keeps for the backward pass of the last function of `found`."""
    assert isinstance(found.grad_fn, torch.autograd.function.BackwardCFunction)
    return found.grad_fn.saved_tensors


def assert_close_in(found: torch.Tensor, inputs: Sequence[torch.Tensor], valid: torch.Tensor | None) -> None:
    """No farther from the exact numbers than the plain path in the same type, plus what one rounding makes."""
    exact = plain([x.double() for x in inputs], valid)
    if found.dtype == torch.float64:
        torch.testing.assert_close(found, exact)
        return
    rounding = torch.finfo(found.dtype).eps * exact.abs().max()
    worst = (plain(inputs, valid).double() - exact).abs().max() + 2 * rounding
    assert (found.double() - exact).abs().max() <= worst
