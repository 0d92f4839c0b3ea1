"""The end of a training command: its planned runs, and the pairs of its options in the commands that it prints."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from precis.cli.framework.console import finish, finish_search, finish_seeds, note
from precis_text.errors import UserError

if TYPE_CHECKING:
    from precis.cli.framework.options import TrainingSettings
    from precis.phases.data.run_pairs import NamedPairs
    from precis.phases.plans.finetuning_plan import FineTuning
    from precis.phases.plans.tuning_plan import LowRankTuning, PrefixTuning


def named_pairs_of(context: typer.Context, *, data: str | None = None) -> NamedPairs:
    """Return the pairs that the options of a command name, and perhaps an argument `data`."""
    from precis.phases.data.run_pairs import NamedPairs

    names = [field.name for field in fields(NamedPairs)]
    given = {name: context.params[name] for name in names if name in context.params}
    return NamedPairs(**({"data": data} | given))


def next_commands(
    run: Path, *, test_pairs: str, units_column: str | None = None, writes: bool = True
) -> list[str]:
    """Return the commands that score and use a trained model.

    Args:
        run: the run folder, which names the model.
        test_pairs: see `precis.phases.data.run_pairs.NamedPairs.to_test`.
        units_column: the column of units that the model needs in addition to its documents.
        writes: whether the model can summarize.
    """
    name, scores = (shlex.quote(str(place)) for place in (run, run / "evaluation"))
    units = "" if units_column is None else f" --units-column {shlex.quote(units_column)}"
    return [
        f"precis evaluate --model {name} {test_pairs} --out {scores}",
        *([f"precis summarize FILE --model {name}{units}"] if writes else []),
    ]


def train_on(
    plan: Callable[..., FineTuning | LowRankTuning | PrefixTuning],
    *,
    to_test: Callable[[], str],
    out: Path,
    training: TrainingSettings,
    seeds: int | None,
    search: bool,
    units_column: str | None = None,
    writes: bool = True,
) -> None:
    """Train what a command plans, once, with several seeds or as a search, and end the command.

    Args:
        plan: returns the plan of a run for `out`, `notify` and, with several seeds, `seed`.
        to_test: returns the options that name the test pairs; called after the pairs were found.
        units_column, writes: see `next_commands`.

    Raises:
        UserError: the command has both --seeds and --search.
    """
    from precis.phases.plans.tuning_plan import LowRankTuning
    from precis.phases.train.seed_runs import train_seeds

    restart = training.restart
    if seeds is not None:
        if search:
            raise UserError(
                "--seeds and --search exclude each other; search first, then train the best settings"
            )
        done = train_seeds(
            lambda **each: plan(**each).run(), seeds=seeds, out=out, seed=training.seed, notify=note
        )
        finish_seeds(done, restart=restart, commands=next_commands(out, test_pairs=to_test(), writes=False))
        return
    planned = plan(out=out, notify=note)
    commands = next_commands(out, test_pairs=to_test(), units_column=units_column, writes=writes)
    if search and not isinstance(planned, LowRankTuning):  # whose plan refuses a search
        finish_search(planned.search(), restart=restart, commands=commands)
    else:
        finish(planned.run(), restart=restart, commands=commands)
