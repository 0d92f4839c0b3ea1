"""The values that a hyper-parameter search tries: Z-Code++ Table 8, changed by `--space NAME=VALUE,VALUE`.

The table's learning rates are for a large model; for our smallest ones the search uses multiples of the recipe's rate.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar, get_args

from precis.recipes.catalogue import TRAINED_FROM_NOTHING
from precis.recipes.overrides import with_changes
from precis.recipes.run_plan import RunPlan
from precis_text.config import Settings, nearest
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

Grid = Mapping[str, Sequence[int | float]]

#: The setting of a run for each range of the training grid.
TRAINING = {
    "warmup_steps": "train.warmup_steps", "learning_rate": "train.learning_rate", "batch_size": "batch_size",
    "epochs": "train.epochs",
}  # fmt: skip
Space = TypeVar("Space", bound=Settings)
_DECODING = ("beams", "length_penalty", "no_repeat_ngram")
# These options, if given, also fix a range of another setting.
_SETTLED_BY = {
    "train.steps": "epochs",
    "batch_tokens": "batch_size",
    "train.gradient_accumulation": "batch_size",
}
_NONE = ("", "none", "off")
_AROUND = (0.25, 0.5, 1.0, 2.0)  # times the learning rate of a small model's recipe


@dataclass(frozen=True, kw_only=True)
class SearchSpace(Settings):
    """Ranges of the two grids. The defaults are the paper's (Z-Code++ Table 8); an empty range is not searched.

    The paper does not give the step of its length penalties from 0.5 to 1.2; here it is 0.1. Nor does it say that it
    searches decoding separately from training: together they would be 7680 training runs.

    Attributes:
        warmup_steps, learning_rate, batch_size, epochs: the training grid, 120 points; `batch_size` in pairs.
        beams, length_penalty, no_repeat_ngram: the decoding grid, 64 points, for the best model only.
    """

    warmup_steps: tuple[int, ...] = (50, 100, 500, 1000, 1500)
    learning_rate: tuple[float, ...] = (5e-6, 8e-6, 9e-6, 1e-5)
    batch_size: tuple[int, ...] = (16, 32, 64)
    epochs: tuple[float, ...] = (10, 20)
    beams: tuple[int, ...] = (2, 4, 5, 8)
    length_penalty: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
    no_repeat_ngram: tuple[int, ...] = (0, 3)

    def __post_init__(self) -> None:
        refuse_values_twice(self)

    @property
    def training_grid(self) -> Grid:
        """The training ranges to search."""
        return self._grid(TRAINING)

    @property
    def decoding_grid(self) -> Grid:
        """The decoding ranges to search."""
        return self._grid(_DECODING)

    def _grid(self, names: Iterable[str]) -> Grid:
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def refuse_values_twice(space: Settings) -> None:
    """Raise `UserError` if a range of `space` has a value twice."""
    for field in dataclasses.fields(space):
        values = getattr(space, field.name)
        if len(set(values)) < len(values):
            raise UserError(f"--space {field.name}: a value is given twice; give each value once")


def points(grid: Grid) -> list[dict[str, int | float]]:
    """Return every combination of the values; without ranges only one, which changes nothing."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def at_point(run: RunPlan, point: Mapping[str, int | float]) -> RunPlan:
    """Return `run` with the values of a point; a searched batch size counts pairs, and searched epochs replace steps.

    A searched batch size is the whole batch of a step, even if the recipe accumulates several batches.

    Raises:
        UserError: a value is out of the setting's range.
    """
    changes = {TRAINING[name]: value for name, value in point.items()}
    whole = {"train.gradient_accumulation": 1} if "batch_size" in point else {}
    return with_changes(run, {**whole, **changes})


def decoding_at_point(settings: GenerationSettings, point: Mapping[str, int | float]) -> GenerationSettings:
    """Return `settings` at a point of the decoding grid; raise `UserError` if a value is out of the setting's range."""
    changes: Mapping[str, Any] = point
    return replace(settings, **changes)


def resolve_space(
    run: RunPlan, *, examples: int | None = None, asked: Iterable[str] = (), ranges: Iterable[str] = ()
) -> SearchSpace:
    """Return the ranges that options describe: Table 8's, except for the learning rates of our smallest models.

    Args:
        run: with the few-shot settings already applied if `examples` are given.
        examples: few-shot: no batch is larger than this, the run's steps replace epochs, and warmups that would not
            end before them are left out.
        asked: dotted names of settings that other options set: they are not searched.
        ranges: `NAME=VALUE,VALUE` texts, `NAME=none` for a range that is not searched; they take precedence.

    Raises:
        UserError: a range is unknown, does not consist of numbers, or belongs to a setting that was set.
    """
    space = SearchSpace()
    if run.name in TRAINED_FROM_NOTHING:
        space = replace(space, learning_rate=tuple(times * run.train.learning_rate for times in _AROUND))
    if examples is not None:
        space = _for_few(space, run, examples)
    by_setting = {**{path: name for name, path in TRAINING.items()}, **_SETTLED_BY}
    by_setting |= {f"generation.{name}": name for name in _DECODING}
    settled = {by_setting[path]: path for path in asked if path in by_setting}
    return with_ranges(replace(space, **dict.fromkeys(settled, ())), ranges, settled=settled)


def with_ranges(space: Space, ranges: Iterable[str], *, settled: Mapping[str, str] | None = None) -> Space:
    """Return `space` with `NAME=VALUE,VALUE` texts applied; `settled` are the ranges that other settings have fixed.

    Raises:
        UserError: a range is unknown, is given twice, does not consist of numbers, or is fixed.
    """
    hints = typing.get_type_hints(type(space))
    changes: dict[str, Any] = {}
    for text in ranges:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals:
            raise UserError(f"--space {text}: write NAME=VALUE,VALUE, for example learning_rate=1e-4,3e-4")
        if name not in hints:
            raise UserError(f"--space: unknown range {name!r}{nearest(name, hints)}")
        if name in (settled or {}):
            raise UserError(f"--space {name}: {(settled or {})[name]} was also given; leave one of them out")
        if name in changes:
            raise UserError(f"--space {name} is given twice; give all its values in one")
        changes[name] = _values(text, values, get_args(hints[name])[0])
    return replace(space, **changes)


def _values(text: str, values: str, kind: type[int] | type[float]) -> tuple[int | float, ...]:
    if values.strip().lower() in _NONE:
        return ()
    try:
        numbers = tuple(kind(value) for value in values.split(","))
    except ValueError:
        wanted = "whole numbers" if kind is int else "numbers"
        raise UserError(f"--space {text}: write {wanted} separated by commas, or none") from None
    if not all(math.isfinite(number) for number in numbers):
        raise UserError(f"--space {text}: a range must contain finite numbers only")
    return numbers


def _for_few(space: SearchSpace, run: RunPlan, examples: int) -> SearchSpace:
    steps = run.train.steps
    return replace(
        space,
        batch_size=tuple(dict.fromkeys(min(size, examples) for size in space.batch_size)),
        epochs=space.epochs if steps is None else (),
        warmup_steps=tuple(warmup for warmup in space.warmup_steps if steps is None or warmup < steps),
    )
