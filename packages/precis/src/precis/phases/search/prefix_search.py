"""A search for the settings of a prefix: the ranges of the discourse prefixes' Table 7, changed by `--space`.

It is the grid search of `precis.phases.search.grid_search` with other points. Table 7 has one top-p, one rate and one
beam width, so these are searched only if `--space` gives values. The best adapter becomes OUT/adapter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

from precis.nn.normalizers import TopP
from precis.phases.search.search_space import TRAINING, Grid, at_point, refuse_values_twice, with_ranges
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune
from precis.recipes.adapter_recipes import TunePlan
from precis.recipes.run_plan import RunPlan
from precis.training import Trained
from precis.tuning import METHODS
from precis_text.config import Settings
from precis_text.errors import UserError

_ATTENTION = ("encoder_segments", "decoder_segments", "mass", "temperature")


@dataclass(frozen=True, kw_only=True)
class PrefixSpace(Settings):
    """The ranges of a search for a prefix; the defaults are the paper's (Table 7), and an empty one is not searched.

    Attributes:
        encoder_segments, decoder_segments: the table's block sizes of encoder and decoder.
        mass: TruncSA's top-p.
        temperature: the table's tau for soft attention; for top-p the table lacks 0.01.
        warmup_steps, learning_rate, batch_size, epochs: see `SearchSpace`.
    """

    encoder_segments: tuple[int, ...] = (1, 2, 3)
    decoder_segments: tuple[int, ...] = (1, 2)
    mass: tuple[float, ...] = ()
    temperature: tuple[float, ...] = (1.0, 0.1, 0.01)
    warmup_steps: tuple[int, ...] = ()
    learning_rate: tuple[float, ...] = ()
    batch_size: tuple[int, ...] = ()
    epochs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        refuse_values_twice(self)

    @property
    def training_grid(self) -> Grid:
        """The ranges to search."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: values for name, values in named.items() if values}

    @property
    def decoding_grid(self) -> Grid:
        """The empty grid: Table 7 has one beam width."""
        return {}


@final
@dataclass(frozen=True, kw_only=True)
class TunedPrefix:
    """A prefix, its attention and its training settings, outside of the grid, as a training that a search repeats."""

    prefix: TunePlan
    run: RunPlan
    makes: Literal["model", "adapter"] = "adapter"

    def check(self, point: Mapping[str, int | float]) -> None:
        """Raise `UserError` if a value of a point is out of its setting's range."""
        self._at(point)

    def train(self, point: Mapping[str, int | float], request: PairRequest) -> Trained:
        """Train a prefix at a point."""
        prefix, run = self._at(point)
        return tune(prefix, run, request)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that all trials share, as JSON values."""
        return {**self.run.to_dict(), "plan": self.prefix.to_dict()}

    def _at(self, point: Mapping[str, int | float]) -> tuple[TunePlan, RunPlan]:
        of_run = {name: value for name, value in point.items() if name in TRAINING}
        of_prefix: Mapping[str, Any] = {name: value for name, value in point.items() if name in _ATTENTION}
        prefix = replace(self.prefix, attention=replace(self.prefix.attention, **of_prefix))
        return prefix, at_point(self.run, of_run)


def prefix_space(method: str, *, asked: Iterable[str] = (), ranges: Iterable[str] = ()) -> PrefixSpace:
    """Return the ranges for a method: those of Table 7 for the settings that it uses.

    Args:
        method: a name of `precis.tuning.METHODS`.
        asked: dotted names of settings that other options set: they are not searched.
        ranges: `NAME=VALUE,VALUE` texts, `NAME=none` for a range that is not searched; they take precedence.

    Raises:
        UserError: a range is unknown, does not consist of numbers, belongs to a setting that was set or that the
            method does not use; or nothing is left to search.
    """
    ranges, used = [*ranges], METHODS[method].reads
    for text in ranges:
        name = text.partition("=")[0].strip()
        if name in _ATTENTION and name not in used:
            raise UserError(f"--space {name} does not apply to --method {method}; omit it")
    space = PrefixSpace(**{name: () for name in _ATTENTION if name not in used})
    if isinstance(METHODS[method].sparse, TopP):
        space = replace(space, temperature=(1.0, 0.1))
    settled = {path.removeprefix("attention."): path for path in asked if path.startswith("attention.")}
    settled |= {name: path for name, path in TRAINING.items() if path in {*asked}}
    known = {name: path for name, path in settled.items() if hasattr(space, name)}
    found = with_ranges(replace(space, **dict.fromkeys(known, ())), ranges, settled=known)
    if not found.training_grid:
        raise UserError(
            f"--method {method}: Table 7 gives no range for its settings; name one, such as --space "
            "learning_rate=0.001,0.003"
        )
    return found
