"""Low-rank adapters (LoRA, Hu et al. 2022) on the linear layers of any model, which is otherwise frozen.

    y = W x + (alpha / r) B A x      A (r i) starts random, B (o r) starts at zero: an untrained adapter changes nothing

PEFT is an extra of precis and wraps the model; these layers keep the names of its other parameters.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from precis_text.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@final
class LowRankLinear(nn.Module):
    """A frozen linear layer and a trained matrix of low rank.

    Args:
        base: the layer; its parameters are frozen.
        rank: r, at least 1.
        alpha: the matrix is scaled by alpha / r.
    """

    def __init__(self, base: nn.Linear, *, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale, self.is_on = alpha / rank, True
        device = base.weight.device
        self.down = nn.Parameter(torch.empty(rank, base.in_features, device=device))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, device=device))
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (... o) of inputs (... i)."""
        y: Tensor = self.base(x)
        if not self.is_on:
            return y
        return y + (x.to(self.down.dtype) @ self.down.T @ self.up.T * self.scale).to(y.dtype)

    def merged(self) -> nn.Linear:
        """Return the base layer with the product added to its weights."""
        with torch.no_grad():
            self.base.weight += (self.up @ self.down * self.scale).to(self.base.weight.dtype)
        return self.base


def add_low_rank(
    model: nn.Module, *, rank: int, alpha: float, seed: int, layers: Collection[str] = _LINEAR
) -> list[LowRankLinear]:
    """Freeze a model and put a low-rank adapter on each linear layer whose last name is in `layers`.

    Raises:
        UserError: if the rank is below 1, or the model lacks such layers.
    """
    if rank < 1:
        raise UserError(f"rank={rank} must be 1 or more")
    names = [n for n, m in model.named_modules() if type(m) is nn.Linear and n.rpartition(".")[2] in layers]
    if not names:
        raise UserError(f"the model lacks a linear layer named {', '.join(layers)}; name its own layers")
    model.requires_grad_(False)
    made = []
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        for name in names:
            layer = LowRankLinear(model.get_submodule(name), rank=rank, alpha=alpha)  # type: ignore[arg-type]
            _put(model, name, layer)
            made.append(layer)
    return made


def merge_low_rank(model: nn.Module) -> None:
    """Replace each adapted layer by a linear layer that computes the same."""
    for name, layer in [*model.named_modules()]:
        if isinstance(layer, LowRankLinear):
            _put(model, name, layer.merged())


@contextmanager
def without_low_rank(model: nn.Module) -> Iterator[None]:
    """Compute as the base within the block."""
    layers = [layer for layer in model.modules() if isinstance(layer, LowRankLinear) and layer.is_on]
    for layer in layers:
        layer.is_on = False
    try:
        yield
    finally:
        for layer in layers:
            layer.is_on = True


def _put(model: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, layer)
