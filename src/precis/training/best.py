"""Which validation is the best so far: a finite one, by its score, then by its loss, then the later one.

Scores are tied more often than one thinks: every first, short or small run has a ROUGE-L of 0 at all validations,
while its loss falls.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from precis.errors import UserError
from precis.training.checkpoint import RunState
from precis.training.settings import Highest, Lowest

LOSS = "loss"


@dataclass(frozen=True)
class Verdict:
    """What a validation says of a model.

    Attributes:
        is_finite: score, loss and weights are; no other model is ever kept or exported.
        is_best: these weights are to be kept.
        is_progress: patience begins anew; a tie in score and loss keeps the later weights, but is none.
    """

    is_finite: bool
    is_best: bool = False
    is_progress: bool = False


def judge(
    metrics: Mapping[str, float], *, select: Lowest | Highest, state: RunState, weights_are_finite: bool
) -> Verdict:
    """Compare a validation with the best so far, of which `state` knows score and loss.

    Raises:
        UserError: `metrics` lack what `select` names.
    """
    if select.metric not in metrics:
        known = ", ".join(sorted(metrics)) or "nothing"
        raise UserError(f"select names the metric {select.metric!r}, but validation measures {known}")
    value, loss = metrics[select.metric], metrics.get(LOSS)
    if not (weights_are_finite and math.isfinite(value) and (loss is None or math.isfinite(loss))):
        return Verdict(is_finite=False)
    if select.improves(value, state.best_value):
        return Verdict(is_finite=True, is_best=True, is_progress=True)
    if value != state.best_value:
        return Verdict(is_finite=True)
    if loss is None or state.best_loss is None:  # a run folder of an older version does not know it
        return Verdict(is_finite=True, is_best=True)
    return Verdict(is_finite=True, is_best=loss <= state.best_loss, is_progress=loss < state.best_loss)
