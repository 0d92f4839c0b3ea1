"""Measuring a model between steps without leaving a trace on it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from precis.errors import UserError
from precis.objectives.losses import Objective
from precis.training.updates import scalars


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module is back in the mode that it was in."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def mean_loss(model: nn.Module, batches: Iterable[Any], objective: Objective) -> dict[str, float]:
    """The objective's mean per target over all of `batches`, as ``loss``, and each of its parts by name.

    Raises:
        UserError: the batches hold no target at all.
    """
    device = next(model.parameters()).device
    sums: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    with evaluating(model):
        for batch in batches:
            loss = objective(model, batch.to(device))
            parts = {"loss": loss.total, **loss.parts}
            divisors = [loss.counts.get(name, loss.num_targets) for name in parts]
            read = scalars([*parts.values(), *divisors], loss.total.device).tolist()
            for name, value, count in zip(parts, read, read[len(parts) :], strict=False):
                sums[name] += value
                counts[name] += int(count)
    if not counts["loss"]:
        raise UserError("the validation set has no targets; check its summaries")
    return {name: sums[name] / max(1, counts[name]) for name in sums}
