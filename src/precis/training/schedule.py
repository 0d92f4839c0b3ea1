"""How the learning rate goes: a pure function of the step, so that a resumed run needs no memory of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from precis.config import Settings, nearest
from precis.errors import UserError


@dataclass(frozen=True, kw_only=True)
class LinearDecay(Settings):
    """After warm-up the rate falls in a straight line. It would be 0 one step past the last."""

    def share(self, step: int, *, warmup_steps: int, total_steps: int) -> float:
        """The share of the peak at a step after warm-up."""
        return max(0, total_steps - step) / max(1, total_steps - warmup_steps)


@dataclass(frozen=True, kw_only=True)
class StableThenDecay(Settings):
    """After warm-up the rate stays at its peak, and falls in the last steps only (warm-up, stable, decay).

    So a run need not know its length: as long as its rate has not begun to fall, it may be resumed with other `steps`.
    The fall is ``1 - sqrt(done)``, the best of those that Hägele et al. (2024, Figure 5) compare.

    Attributes:
        decay_steps: steps in which the rate falls; 0 keeps it to the end.
    """

    decay_steps: int = 200

    def __post_init__(self) -> None:
        if self.decay_steps < 0:
            raise UserError(f"schedule.decay_steps={self.decay_steps} is too small; it must be at least 0")

    def share(self, step: int, *, warmup_steps: int, total_steps: int) -> float:
        """The share of the peak at a step after warm-up."""
        fallen = step - max(warmup_steps, self.decays_from(total_steps))
        left = total_steps - max(warmup_steps, self.decays_from(total_steps))
        return 1 - sqrt(min(1, fallen / left)) if fallen > 0 else 1.0

    def decays_from(self, total_steps: int) -> int:
        """The first step of the fall."""
        return total_steps - self.decay_steps


Schedule = LinearDecay | StableThenDecay
LINEAR = LinearDecay()
_NAMES: Mapping[str, Schedule] = {"linear": LINEAR, "stable": StableThenDecay()}


def schedule_named(name: str) -> Schedule:
    """The schedule that `--set train.schedule=NAME` asks for.

    Raises:
        UserError: there is no such schedule.
    """
    if name not in _NAMES:
        raise UserError(f"schedule={name}: no such schedule{nearest(name, _NAMES)}")
    return _NAMES[name]


def learning_rate_at(
    step: int, *, peak: float, warmup_steps: int, total_steps: int, schedule: Schedule = LINEAR
) -> float:
    """The rate of optimizer step `step`, counted from 0: linear warm-up, then what the schedule says.

    Warm-up: ``peak * (step + 1) / warmup_steps``, so the first step already learns something.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    return peak * schedule.share(step, warmup_steps=warmup_steps, total_steps=total_steps)


_LENGTH = frozenset({"steps", "epochs", "total_steps", "schedule"})


def may_differ(
    folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], *, step: int
) -> frozenset[str]:
    """The settings that say how long a run is, if its rate has fallen neither as it was told nor as it is told now.

    Raises:
        UserError: the run may get another length, and is beyond the step where the rate would fall with this one.
    """
    for record in (before, now):
        schedule = record.get("schedule") or {}
        if schedule.get("type") != StableThenDecay.__name__:
            return frozenset()
        decay, steps = schedule["decay_steps"], record["total_steps"]
        falls = StableThenDecay(decay_steps=decay).decays_from(steps)
        if step > falls and record is now and any(before.get(name) != now.get(name) for name in _LENGTH):
            raise UserError(
                f"the run in {folder} is at step {step}, and with {steps} steps its rate would fall from step {falls} "
                f"on; give it {step + decay} steps or more"
            )
        if step > falls:
            return frozenset()
    return _LENGTH
