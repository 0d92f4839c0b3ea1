"""The settings of a training run with names of their own: keyword arguments in Python, options of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from precis_text.errors import UserError


class TrainingOptions(TypedDict, total=False):
    """The settings of every training; None, or a missing one, keeps the recipe's value.

    Attributes:
        epochs: passes over the training data.
        steps: optimizer steps, instead of `epochs`.
        batch_size: rows in a batch over all processes: pairs, or blocks of text.
        learning_rate: the peak learning rate.
        seed: random seed for weights, data order and dropout, 0 to 2**32 - 1.
        precision: the number format of the computation.
        settings: further settings as texts, such as `train.warmup_steps=100`; the option `--set` of a command.
    """

    epochs: float | None
    steps: int | None
    batch_size: int | None
    learning_rate: float | None
    seed: int | None
    precision: Literal["fp32", "bf16"] | None
    settings: Sequence[str] | None


class PairTrainingOptions(TrainingOptions, total=False):
    """The settings of every training on pairs.

    Attributes:
        batch_tokens: source and target tokens in a batch, instead of `batch_size`.
        max_source, max_target: longest document and summary in tokens; longer ones are truncated and counted.
        validate_every: steps between validations.
        patience: stop after this many validations without improvement.
        select: the metric that selects the best checkpoint, such as "loss" or "rougeL".
    """

    batch_tokens: int | None
    max_source: int | None
    max_target: int | None
    validate_every: int | None
    patience: int | None
    select: str | None


class BlockTrainingOptions(TrainingOptions, total=False):
    """The settings of a training on packed text: `block_length`, the tokens in a block, and those of every training."""

    block_length: int | None


class ScorerTrainingOptions(TypedDict, total=False):
    """The settings of the training of a sentence scorer; see `TrainingOptions` and `PairTrainingOptions`."""

    epochs: float | None
    learning_rate: float | None
    max_source: int | None
    seed: int | None
    settings: Sequence[str] | None


_SETTINGS = {
    "epochs": "train.epochs", "steps": "train.steps", "batch_size": "batch_size",
    "batch_tokens": "batch_tokens", "block_length": "block_length", "learning_rate": "train.learning_rate",
    "max_source": "max_source", "max_target": "max_target", "seed": "train.seed",
    "precision": "train.precision", "validate_every": "train.validate_every", "patience": "train.patience",
}  # fmt: skip
"""Option -> the setting of a run that it changes."""

EITHER = {"epochs": "steps", "steps": "epochs", "batch_size": "batch_tokens", "batch_tokens": "batch_size"}
"""Options that exclude each other."""

_SPELLED = {"learning_rate": "--lr"}
HIGHEST_SEED = 2**32 - 1  # the largest that all libraries accept


def check_seed(option: str, value: int | None) -> None:
    """Raise `UserError` if a seed is negative or too large for some generator."""
    if value is not None and not 0 <= value <= HIGHEST_SEED:
        raise UserError(f"{option} {value}: use 0 to {HIGHEST_SEED}")


def settings_of(option: str) -> tuple[str, ...]:
    """Return the settings of a run that an option determines: its own, and the one that excludes it."""
    names = (option, EITHER.get(option, ""))
    return tuple(_SETTINGS[name] for name in names if name in _SETTINGS) + (
        ("train.select",) if option == "select" else ()
    )


def option_changes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, by dotted name, that options change; `settings` and `select` are not among them.

    Args:
        options: one of the groups of this module.

    Raises:
        UserError: one of `settings` also changes one of them, or one that excludes it; or the seed is out of range.
    """
    check_seed("--seed", options.get("seed"))
    values = {path: options.get(name) for name, path in _SETTINGS.items()}
    changes = {path: value for path, value in values.items() if value is not None}
    by_path = {path: name for name, path in _SETTINGS.items()}
    for assignment in options.get("settings") or ():
        name = by_path.get(assignment.partition("=")[0].strip(), "")
        for other in (name, EITHER.get(name, "")):
            if _SETTINGS.get(other) in changes:
                spelled = _SPELLED.get(other, f"--{other.replace('_', '-')}")
                raise UserError(f"{spelled} and --set {assignment} exclude each other; give one of them")
    return changes
