"""Training settings, and the check that a resumed run has the same."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from precis.storage.settings_change import first_change, refuse_change
from precis.training.schedule import LINEAR, LinearDecay, StableThenDecay, may_differ
from precis_text.config import Settings
from precis_text.errors import UserError

MOST_SEED = 2**32 - 1  # the largest seed that all generators of a run accept


#: Settings that may differ when a run is resumed. None changes a weight except the compiler, which changes rounding
#: and dropout masks; like the number of processes, it depends on the machine.
FREE_ON_RESUME = frozenset(
    {"validate_every", "save_every", "log_every", "keep_checkpoints", "patience", "skip_limit", "compiler"}
)
_KNOWN = {"precision": ("fp32", "bf16"), "compiler": ("none", "inductor", "aot_eager", "eager")}
_COUNTS = ("steps", "gradient_accumulation", "validate_every", "save_every", "log_every", "keep_checkpoints")
_LEAST = {
    **dict.fromkeys((*_COUNTS, "patience", "skip_limit"), 1),
    **dict.fromkeys(("warmup_steps", "weight_decay", "seed"), 0),
}
# Name under which recipes record a digest -> a readable description of its content.
_DIGESTS = {
    "data": ("other training pairs", "other validation pairs"), "tokenizer": ("another tokenizer",),
    "base": ("another base model",), "prompts": ("other prompts", "other passages of the documents"),
    "corpora": ("another corpus",),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Lowest(Settings):
    """The rule that the lowest validation metric marks the best checkpoint."""

    metric: str = "loss"

    def improves(self, value: float, best: float | None) -> bool:
        """Return whether `value` is finite and better than the best so far."""
        return math.isfinite(value) and (best is None or value < best)


@dataclass(frozen=True, kw_only=True)
class Highest(Settings):
    """The rule that the highest validation metric marks the best checkpoint."""

    metric: str = "rougeL"

    def improves(self, value: float, best: float | None) -> bool:
        """Return whether `value` is finite and better than the best so far."""
        return math.isfinite(value) and (best is None or value > best)


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """Settings of `precis.training.train`. Exactly one of `steps` and `epochs` is set.

    Attributes:
        steps: total optimizer steps.
        epochs: passes over the training set, fractions allowed.
        learning_rate: the peak, reached after warm-up.
        warmup_steps: steps of linear growth from `learning_rate / warmup_steps`.
        schedule: the learning rate after warm-up.
        weight_decay: decoupled, on matrices only: biases and norms are exempt.
        clip_norm: the maximum gradient norm over all parameters, after division by the targets.
        gradient_accumulation: micro-batches per optimizer step.
        precision: ``bf16`` computes under autocast; weights, gradients and optimizer stay fp32.
        compiler: the backend of `torch.compile` for training steps (validation is never compiled), or ``none``. Our
            models compile one layer of each kind, for all layers and lengths; others compile as a whole, again for
            every shape. ``inductor`` is the fastest and needs a C++ compiler or Triton.
        seed: random seed for dropout, 0 to 2**32 - 1; the data order has its own seed.
        validate_every: steps between validations; the last step is always validated. If None, only the last.
        save_every: steps between checkpoints, and the most that a kill can lose; the last step is saved too. Each
            checkpoint also saves the best weights since the previous one.
        log_every: steps between metric records, each the mean over them.
        keep_checkpoints: number of newest checkpoints kept, besides the best.
        patience: validations without improvement before an early stop; if None, the run never stops early.
        select: the validation metric that selects the best checkpoint; lower loss, then the later step, breaks ties.
            A checkpoint whose loss or weights are not finite is never the best.
        skip_limit: steps in a row with a loss or gradient that is not finite before the run fails.
    """

    steps: int | None = None
    epochs: float | None = None
    learning_rate: float = 3e-4
    warmup_steps: int = 100
    schedule: LinearDecay | StableThenDecay = LINEAR
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    clip_norm: float = 1.0
    gradient_accumulation: int = 1
    precision: Literal["fp32", "bf16"] = "fp32"
    compiler: Literal["none", "inductor", "aot_eager", "eager"] = "none"
    seed: int = 0
    validate_every: int | None = None
    save_every: int = 500
    log_every: int = 10
    keep_checkpoints: int = 2
    patience: int | None = None
    select: Lowest | Highest = Lowest()
    skip_limit: int = 10

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise UserError(f"give either steps or epochs, not steps={self.steps} and epochs={self.epochs}")
        for name, known in _KNOWN.items():
            if getattr(self, name) not in known:
                *others, last = map(repr, known)
                raise UserError(
                    f"{name}={getattr(self, name)!r} is unknown; use {', '.join(others)} or {last}"
                )
        for name, lowest in _LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= lowest:
                raise UserError(f"{name}={value} is too small; it must be at least {lowest}")
        for name in ("learning_rate", "clip_norm", "eps", "epochs"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(f"{name}={value} must be above 0")
        for name in ("learning_rate", "weight_decay", "eps", "epochs"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise UserError(f"{name}={value} must be a finite number")
        if self.seed > MOST_SEED:
            raise UserError(f"seed={self.seed} is too large; use at most {MOST_SEED}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(f"betas={self.betas}: each must be at least 0 and below 1")

    def total_steps(self, batches_per_epoch: int) -> int:
        """Return the total optimizer steps, given the number of micro-batches per epoch."""
        if self.steps is not None:
            return self.steps
        assert self.epochs is not None
        return max(1, math.ceil(self.epochs * batches_per_epoch / self.gradient_accumulation))


def refuse_other_settings(
    folder: Path, *, before: Mapping[str, Any], now: Mapping[str, Any], step: int
) -> None:
    """Refuse to resume the run in `folder` at a step with changed settings.

    Raises:
        UserError: a setting that the curve depends on has changed; the message names the first one.
    """
    free = FREE_ON_RESUME | may_differ(folder, before, now, step=step)
    old = {name: value for name, value in before.items() if name not in free}
    new = {name: value for name, value in now.items() if name not in free}
    change = first_change(old, new)
    if change is not None and (words := _in_words(*change)) is not None:
        raise UserError(
            f"the run in {folder} was started with {words}; use the original ones, or start again with --restart "
            "or another --out"
        )
    remedy = "keep the old value, or start again with --restart or another --out"
    refuse_change(f"the run in {folder}", old, new, remedy=remedy)


def _in_words(name: str, before: Any, after: Any) -> str | None:
    """Describe a change of which only digests are known, as in "other training pairs"; return None for others."""
    head, _, rest = name.partition(".")
    if head == "sets" and rest:  # of grounding: the kind of pairs, then their digests
        return f"other pairs of {rest}"
    if head not in _DIGESTS or rest:
        return None
    words = _DIGESTS[head]
    if not (isinstance(before, list) and isinstance(after, list)) or len(before) != len(after):
        return " or ".join(words)
    changed = {
        min(n, len(words) - 1) for n, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]
    }
    return " and ".join(words[n] for n in sorted(changed))
