"""Validation between steps, without side effects on the model, and the choice of the best so far."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from precis.objectives.losses import Objective
from precis.training.checkpoint import RunState
from precis.training.training_settings import Highest, Lowest
from precis.training.updates import scalars
from precis_text.errors import UserError

LOSS = "loss"
_LEAD, _LOW, _HIGH = "_lead", "_low", "_high"


def lead_of(metric: str) -> str:
    """Return the name of a score's lead over chance: `rougeL_lead` of `rougeL`, `rougeL_lead/samsum` of one set.

    A lead is the lower end of an interval. At 0 or below, the score may be that of any text.
    """
    return _with_ending(metric, _LEAD)


def low_of(metric: str) -> str:
    """Return the name of the lower end of a score's 95% interval."""
    return _with_ending(metric, _LOW)


def high_of(metric: str) -> str:
    """Return the name of the upper end of a score's 95% interval."""
    return _with_ending(metric, _HIGH)


def _with_ending(metric: str, ending: str) -> str:
    kind, of_a_set, name = metric.partition("/")
    return f"{kind}{ending}{of_a_set}{name}"


def is_bound(metric: str) -> bool:
    """Return whether a metric is a lead over chance or an end of an interval, and no score."""
    return metric.partition("/")[0].endswith((_LEAD, _LOW, _HIGH))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Run the body in evaluation mode without gradients, and restore the mode of every module afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def mean_loss(model: nn.Module, batches: Iterable[Any], objective: Objective) -> dict[str, float]:
    """Return the objective's mean per target over all `batches` as ``loss``, and each of its parts by name.

    Raises:
        UserError: the batches do not contain a target.
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
        raise UserError("the validation set does not contain targets; check its summaries")
    return {name: sums[name] / max(1, counts[name]) for name in sums}


@dataclass(frozen=True)
class ValidationVerdict:
    """The verdict of a validation on a model.

    Attributes:
        is_finite: score, loss and weights are finite; other models are never kept or exported.
        is_best: these weights are kept.
        is_progress: patience restarts; a tie in score and loss keeps the later weights, but is not progress.
        is_chance: the score is no better than chance, so the loss decided.
    """

    is_finite: bool
    is_best: bool = False
    is_progress: bool = False
    is_chance: bool = False


def judge(
    metrics: Mapping[str, float], *, select: Lowest | Highest, state: RunState, weights_are_finite: bool
) -> ValidationVerdict:
    """Compare a validation with the best so far, whose score and loss are in `state`.

    A score whose lead over chance is measured and not above 0 says nothing: the loss decides between two such
    validations, and a score above chance is better than any of them.

    Raises:
        UserError: `metrics` lack the metric that `select` names.
    """
    if select.metric not in metrics:
        known = ", ".join(sorted(metrics)) or "nothing"
        raise UserError(f"select names the metric {select.metric!r}, but validation measures {known}")
    value, loss = metrics[select.metric], metrics.get(LOSS)
    if not (weights_are_finite and math.isfinite(value) and (loss is None or math.isfinite(loss))):
        return ValidationVerdict(is_finite=False)
    is_chance = loss is not None and not metrics.get(lead_of(select.metric), 1.0) > 0
    if state.best_step is not None and is_chance != state.best_is_chance:
        return ValidationVerdict(
            is_finite=True, is_best=not is_chance, is_progress=not is_chance, is_chance=is_chance
        )
    if is_chance and loss is not None:
        is_lower = state.best_loss is None or loss < state.best_loss
        is_best = is_lower or loss == state.best_loss
        return ValidationVerdict(is_finite=True, is_best=is_best, is_progress=is_lower, is_chance=True)
    if select.improves(value, state.best_value):
        return ValidationVerdict(is_finite=True, is_best=True, is_progress=True)
    if value != state.best_value:
        return ValidationVerdict(is_finite=True)
    if loss is None or state.best_loss is None:
        return ValidationVerdict(is_finite=True, is_best=True)
    return ValidationVerdict(
        is_finite=True, is_best=loss <= state.best_loss, is_progress=loss < state.best_loss
    )
