"""Learning-rate schedules: pure functions of the step, so a resumed run needs no saved state."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from precis_text.config import Settings, nearest
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class LinearDecay(Settings):
    """A linear decay after warm-up, which would reach 0 one step past the last."""

    def share(self, step: int, *, warmup_steps: int, total_steps: int) -> float:
        """Return the fraction of the peak rate at a step after warm-up; steps end below `total_steps`."""
        return (total_steps - step) / (total_steps - warmup_steps)


@dataclass(frozen=True, kw_only=True)
class StableThenDecay(Settings):
    """A constant rate after warm-up, which decays only in the last steps (warm-up, stable, decay).

    A run need not know its length: until the decay starts, it may be resumed with other `steps`. The decay is
    ``1 - sqrt(done)``, the best of those that Hägele et al. (2024, Figure 5) compare.

    Attributes:
        decay_steps: steps in which the rate decays; 0 keeps it constant to the end.
    """

    decay_steps: int = 200

    def __post_init__(self) -> None:
        if self.decay_steps < 0:
            raise UserError(f"schedule.decay_steps={self.decay_steps} is too small; it must be at least 0")

    def share(self, step: int, *, warmup_steps: int, total_steps: int) -> float:
        """Return the fraction of the peak rate at a step after warm-up."""
        fallen = step - max(warmup_steps, self.decays_from(total_steps))
        left = total_steps - max(warmup_steps, self.decays_from(total_steps))
        return 1 - sqrt(fallen / left) if fallen > 0 else 1.0

    def decays_from(self, total_steps: int) -> int:
        """Return the first step of the decay."""
        return total_steps - self.decay_steps


Schedule = LinearDecay | StableThenDecay
LINEAR = LinearDecay()
_NAMES: Mapping[str, Schedule] = {"linear": LINEAR, "stable": StableThenDecay()}


def schedule_named(name: str) -> Schedule:
    """Return the schedule of `--set train.schedule=NAME`; raise `UserError` if the name is unknown."""
    if name not in _NAMES:
        raise UserError(f"schedule={name}: unknown schedule{nearest(name, _NAMES)}")
    return _NAMES[name]


def learning_rate_at(
    step: int, *, peak: float, warmup_steps: int, total_steps: int, schedule: Schedule = LINEAR
) -> float:
    """Return the rate of optimizer step `step`, counted from 0: linear warm-up, then the schedule.

    Warm-up: ``peak * (step + 1) / warmup_steps``, so the first step already has a rate above 0.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    return peak * schedule.share(step, warmup_steps=warmup_steps, total_steps=total_steps)


_LENGTH = frozenset({"steps", "epochs", "total_steps", "schedule"})


def may_differ(
    folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], *, step: int
) -> frozenset[str]:
    """Return the settings of a run's length, if its rate has not started to decay by the old or new settings.

    Raises:
        UserError: the length may change, but the run is past the step where the new length would start the decay.
    """
    for record in (before, now):
        schedule = record.get("schedule") or {}
        if schedule.get("type") != StableThenDecay.__name__:
            return frozenset()
        decay, steps = schedule["decay_steps"], record["total_steps"]
        falls = StableThenDecay(decay_steps=decay).decays_from(steps)
        if step > falls and record is now:  # not by the old settings, so the length has changed
            raise UserError(
                f"the run in {folder} is at step {step}, but with {steps} steps its rate would decay from step "
                f"{falls} on; use at least {step + decay} steps"
            )
        if step > falls:
            return frozenset()
    return _LENGTH
