"""One training with several seeds: each is a run of its own, and one table has the mean and its interval.

    OUT/seeds.json     the seeds
    OUT/seed-0/ ...    a run folder for each seed

An interrupted run resumes like any other, and more seeds can be added later. `precis evaluate --model OUT` scores
all runs and pools them: its intervals cover other seeds and other documents.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from precis.evaluation.significance import OVER_RUNS, TOO_FEW_FOR_T, Interval
from precis.messages import Notify, silent
from precis.phases.output_folders import writing_to
from precis.recipes.run_options import check_seed
from precis.storage.atomic import write_file
from precis.storage.locks import LOCK_FILE, is_marked
from precis.storage.model_files import SEEDS_FILE
from precis.table import Table
from precis.training import Trained
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class SeedRuns:
    """The runs of one training by seed, in `folder`: those that are finished, and at most one interrupted."""

    folder: Path
    runs: dict[int, Trained]

    @property
    def interrupted(self) -> bool:
        """True if a signal stopped one of the runs."""
        return any(run.result.interrupted for run in self.runs.values())

    @property
    def interval(self) -> Interval | None:
        """The mean of the runs' best validation scores, with its interval over seeds; None without scores."""
        found = [run.result.best_metric for run in self.runs.values()]
        scores = [score for score in found if score is not None]
        if not scores or len(scores) < len(found):
            return None
        return OVER_RUNS.runs_interval(np.array(scores)[:, None])

    def table(self) -> Table:
        """Return the best validation score of each run, and their mean."""
        results = {seed: run.result for seed, run in self.runs.items()}
        metric = next(iter(results.values())).metric
        rows = [
            [str(seed), _score(found.best_metric), str(found.best_step or ""), f"{found.seconds:.0f}"]
            for seed, found in results.items()
        ]
        mean = self.interval
        if mean is not None and len(rows) > 1:
            rows.append(["mean", f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]", "", ""])
        over_seeds = "95% interval, Student's t over seeds"
        if len(results) == TOO_FEW_FOR_T:
            over_seeds = "the range of the runs"
        return Table(
            header=["seed", metric, "step", "seconds"],
            rows=rows,
            texts=("seed",),
            caption=f"validation scores; in brackets: {over_seeds}",
            lines_above=(len(results),),
        )


def train_seeds(
    train: Callable[..., Trained],
    *given: Any,
    seeds: int,
    out: str | Path,
    seed: int | None = None,
    notify: Notify = silent,
    **options: Any,
) -> SeedRuns:
    """Train with several seeds, one after another; a repeated call resumes, and may ask for more seeds.

    Args:
        train: `precis.finetune`, `precis.tune` or `precis.ground`; called with a run folder as `out`, and a `seed`.
        given: its positional arguments.
        seeds: the number of seeds.
        out: the folder that receives a run folder for each seed.
        seed: the first seed; if None, 0.
        notify: receives progress messages; those of later seeds are left out, as most of them are the same.
        options: further keyword arguments of `train`.

    Raises:
        UserError: `seeds` is below 1, `out` holds something else, or what `train` raises.
        RunError: training failed.

    Examples:
        >>> import precis
        >>> shape = ["model.hidden_size=16", "model.encoder_layers=1", "model.decoder_layers=1"]
        >>> brief = {"recipe": "zcodepp-micro", "steps": 1, "settings": shape}
        >>> done = train_seeds(precis.finetune, "pairs", seeds=2, out="runs/seeds", **brief)
        >>> [run.folder.name for run in done.runs.values()]
        ['seed-0', 'seed-1']
    """
    first = 0 if seed is None else seed
    wanted = range(first, first + seeds)
    folder = Path(out)
    _refuse(folder, seeds, last=first + seeds - 1)
    done = SeedRuns(folder=folder, runs={})
    with writing_to(folder, doing="training in", is_ours=lambda place: (place / SEEDS_FILE).is_file()):
        write_file(folder / SEEDS_FILE, json.dumps({"seeds": [*wanted]}) + "\n")
        for number, each in enumerate(wanted):
            place = folder / f"seed-{each}"
            notify(f"seed {each} ({number + 1} of {seeds}): {place}")
            told = notify if number == 0 else silent
            run = train(*given, out=place, seed=each, notify=told, **options)
            done = replace(done, runs={**done.runs, each: run})
            if run.result.interrupted:
                break
    return done


def _refuse(folder: Path, seeds: int, *, last: int) -> None:
    """Refuse what would otherwise fail after the first run."""
    if seeds < 1:
        raise UserError(f"--seeds {seeds}: use 1 or more")
    check_seed("--seed", last)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError(
            "--seeds runs in one process; under torchrun start one command for each --seed, with its own --out"
        )
    others = [path for path in folder.iterdir() if path.name != LOCK_FILE] if folder.is_dir() else []
    if is_marked(folder) and others and not (folder / SEEDS_FILE).is_file():
        raise UserError(
            f"{folder}: contains a run or a search; use another --out for runs with several seeds"
        )


def _score(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
