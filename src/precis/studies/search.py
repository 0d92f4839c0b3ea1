"""Grid search for hyper-parameters, as Z-Code++ does it (Table 8): by validation, first training, then decoding.

    OUT/search.sqlite3   both studies, kept by Optuna; a search that was stopped goes on from here
    OUT/search.json      every trial with its settings and score, best first; written again after each trial
    OUT/trials/NNN/      a run folder for each training trial; only the best keeps its model
    OUT/model/           the best model, with the decoding that served it best
    OUT/settings.json    that trial's settings, with this decoding

Trials that are finished are not run again, and an interrupted one goes on from its checkpoint. Hopeless ones are
not pruned by comparing them step for step: those with a long warm-up or large batches are behind at first, and
`--patience` ends a run that no longer improves.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precis.data.pairs.pair import Pair
from precis.decoding import GenerationSettings
from precis.errors import DivergedError, RunError, UserError
from precis.files import write_file
from precis.generation.loading import model_use
from precis.generation.summarizer import Summarizer
from precis.lock import locked
from precis.phases.finetune import TOKENIZER_FOLDER, finetune
from precis.phases.places import own_folder
from precis.phases.run_folder import (
    SETTINGS_FILE,
    export_model,
    has_checkpoints,
    refuse_foreign,
    write_folder,
)
from precis.phases.session import MODEL_FOLDER
from precis.phases.sources import PairReader, PairSources, hold_out
from precis.recipes.runs import RunPlan
from precis.studies.grid_study import STUDY_FILE, GridStudy, Trial, load_optuna
from precis.studies.search_decoding import try_decodings
from precis.studies.search_results import RESULTS_FILE, Searched, figure
from precis.studies.search_space import SearchSpace, at_point, decoding_at_point, points
from precis.telling import Tell, silent
from precis.training import Highest, TrainResult, standard_callbacks
from precis.training.callbacks import Callback
from precis.training.settings import FREE_ON_RESUME
from precis.untrusted import read_json

TRIALS_FOLDER = "trials"
_ROUGE = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What every trial is given besides its settings."""

    sources: PairSources
    start: str | None
    tokenizer: str | None
    instruction: str | None
    examples: int | None
    sampling_seed: int | None
    command: Sequence[str]


def is_search(folder: Path) -> bool:
    """Whether the folder holds a search, finished or not."""
    return (folder / STUDY_FILE).exists()


def search(
    run: RunPlan,
    *,
    space: SearchSpace,
    sources: PairSources,
    out: str | Path,
    trials: int | None = None,
    start: str | None = None,
    tokenizer: str | None = None,
    instruction: str | None = None,
    examples: int | None = None,
    sampling_seed: int | None = None,
    restart: bool = False,
    command: Sequence[str] = (),
    tell: Tell = silent,
    callbacks: Callable[[], Sequence[Callback]] = standard_callbacks,
) -> Searched:
    """Train at the points of `space`, decode the best model in several ways, and export it; or go on with that.

    Training trials are judged by `run.train.select` on the validation set, decodings by ROUGE on up to
    `run.generated_rows` rows of it. No trial sees the test set.

    Args:
        run: all settings that `space` does not search; `run.train.seed` also orders the grid.
        trials: how many points of the training grid to try in all: the first ones of an order drawn from the seed,
            so that a larger number later adds to what is there. None: every point.
        restart: forget what is in `out`.
        callbacks: makes the watchers of each training.
        The others are those of `finetune`, the same for every trial.

    Raises:
        UserError: Optuna is not installed, settings do not fit together, or `out` holds another search or a run.
        RunError: training failed otherwise than by diverging (such a trial counts as failed), or no trial succeeded.
    """
    folder = own_folder(out)
    _refuse(run, space, folder, trials=trials)
    given = _Given(
        sources=sources,
        start=start,
        tokenizer=tokenizer,
        instruction=instruction,
        examples=examples,
        sampling_seed=sampling_seed,
        command=command,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        for name in (MODEL_FOLDER, TOKENIZER_FOLDER):
            refuse_foreign(folder / name)
        if restart:
            _forget(folder)
        return _Search(run, space, given, folder, tell=tell, callbacks=callbacks).run(trials)


class _Search:
    """One call of `search`: its two studies and its verbs."""

    def __init__(
        self,
        run: RunPlan,
        space: SearchSpace,
        given: _Given,
        folder: Path,
        *,
        tell: Tell,
        callbacks: Callable[[], Sequence[Callback]],
    ) -> None:
        self._base, self._space, self._given = run, space, given
        self._folder, self._tell, self._callbacks = folder, tell, callbacks
        select = run.train.select
        self._metric = select.metric
        self._decoding_metric = select.metric if select.metric in _ROUGE else "rougeL"
        self._dev, digests = _read(given.sources, seed=run.train.seed)
        self._training = GridStudy(
            folder / STUDY_FILE,
            "training",
            space.training_grid,
            seed=run.train.seed,
            highest=isinstance(select, Highest),
            asked=_asked(run, space, given, digests),
        )
        self._decoding: GridStudy | None = None

    def run(self, trials: int | None) -> Searched:
        """Both stages and the export."""
        size = self._training.size
        wanted = size if trials is None else min(trials, size)
        self._tell(f"search: {wanted} of the {size} points of the training grid, judged by {self._metric}")
        self._tidy()
        if not self._train(wanted):
            return self._searched(None)
        best = self._training.best
        if best is None:
            raise RunError(
                f"none of the {wanted} trials in {self._folder / TRIALS_FOLDER} gave a usable model"
            )
        settings = self._decode(best)
        self._export(best, settings)
        return self._searched(self._folder / MODEL_FOLDER)

    def _train(self, wanted: int) -> bool:
        """Run training trials until `wanted` are finished; False if a signal interrupted one."""
        tell_more = self._tell  # of the first trial here alone: most of it is true of all
        while (done := len(self._training.finished)) < wanted:
            trial, is_new = self._training.take()
            place = self._place(trial.number)
            self._tell(f"trial {done + 1} of {wanted}: {trial.words} (in {place})")
            try:
                result = self._fine_tune(trial, place, restart=is_new, tell=tell_more)
            except DivergedError as error:  # a bad point of the grid, not a bad machine
                self._training.finish(trial, None, why=str(error))
                self._tell(f"trial {trial.number:03d} failed: {error}")
            else:
                if result.interrupted:
                    return False
                self._training.finish(trial, result.best_metric, **_facts(result))
                self._tell(f"trial {trial.number:03d}: {self._metric} {figure(result.best_metric)}")
            tell_more = _say_nothing
            self._tidy()
            self._write()
        return True

    def _fine_tune(self, trial: Trial, place: Path, *, restart: bool, tell: Tell) -> TrainResult:
        given = self._given
        shared = self._folder / TOKENIZER_FOLDER
        tokenizer = given.tokenizer or (str(shared) if shared.is_dir() and given.start is None else None)
        done = finetune(
            at_point(self._base, trial.values),
            sources=given.sources,
            out=place,
            start=given.start,
            tokenizer=tokenizer,
            instruction=given.instruction,
            examples=given.examples,
            sampling_seed=given.sampling_seed,
            restart=restart,
            command=given.command,
            tell=tell,
            callbacks=self._callbacks(),
        )
        if not shared.is_dir() and (own := place / TOKENIZER_FOLDER).is_dir():  # trained once for all trials
            write_folder(shared, lambda new: shutil.copytree(own, new, dirs_exist_ok=True))
        return done.result

    def _decode(self, best: Trial) -> GenerationSettings:
        """Try the decoding grid on the best model; the settings that serve it best."""
        self._decoding = GridStudy(
            self._folder / STUDY_FILE,
            f"decoding of trial {best.number:03d}",
            self._space.decoding_grid,
            seed=self._base.train.seed,
            highest=True,
        )
        if len(self._decoding.finished) < self._decoding.size:
            try_decodings(
                self._place(best.number),
                self._decoding,
                self._base,
                dev=self._dev,
                metric=self._decoding_metric,
                tell=self._tell,
                noted=self._write,
            )
        chosen = self._decoding.best
        assert chosen is not None
        return decoding_at_point(self._base.generation, chosen.values)

    def _export(self, best: Trial, generation: GenerationSettings) -> None:
        place = self._place(best.number)
        summarizer = Summarizer.from_pretrained(place)
        export_model(
            summarizer.model,
            summarizer.tokenizer,
            generation,
            model_use(place),
            self._folder / MODEL_FOLDER,
        )
        record = read_json(place / SETTINGS_FILE)
        record["run"]["generation"] = generation.to_dict()
        record["trial"] = best.number
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write_file(self._folder / SETTINGS_FILE, text)
        self._write()

    def _tidy(self) -> None:
        """Delete what a finished trial no longer needs: its checkpoints, and its model unless it is the best."""
        best = self._training.best
        for trial in self._training.finished:
            place = self._place(trial.number)
            useless = ["checkpoints"]
            if best is not None and trial.number != best.number:
                useless += [MODEL_FOLDER, TOKENIZER_FOLDER]
            for name in useless:
                shutil.rmtree(place / name, ignore_errors=True)

    def _place(self, number: int) -> Path:
        return self._folder / TRIALS_FOLDER / f"{number:03d}"

    def _searched(self, model: Path | None) -> Searched:
        return Searched(
            folder=self._folder,
            model=model,
            trials=self._training.finished,
            decodings=self._decoding.finished if self._decoding is not None else [],
            metric=self._metric,
            decoding_metric=self._decoding_metric,
        )

    def _write(self) -> None:
        self._searched(None).write(space=self._space)


def _refuse(run: RunPlan, space: SearchSpace, folder: Path, *, trials: int | None) -> None:
    """Raise `UserError` at what would fail later, perhaps after hours."""
    load_optuna()
    if trials is not None and trials < 1:
        raise UserError(f"--trials {trials}: use 1 or more")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError("--search runs in one process: start it without torchrun")
    if has_checkpoints(folder):
        raise UserError(f"{folder}: holds a run, not a search; use another --out")
    for point in points(space.training_grid):
        at_point(run, point)
    for point in points(space.decoding_grid):
        decoding_at_point(run.generation, point)


def _forget(folder: Path) -> None:
    for name in (TRIALS_FOLDER, MODEL_FOLDER, TOKENIZER_FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (STUDY_FILE, RESULTS_FILE, SETTINGS_FILE):
        (folder / name).unlink(missing_ok=True)


def _read(sources: PairSources, *, seed: int) -> tuple[list[Pair], list[str]]:
    """The validation pairs that every trial uses, and the digests of what was read."""
    reader = PairReader(sources.train, skip_bad=sources.skip_bad)
    if sources.dev is None:
        return hold_out(reader, seed=seed)[1], [reader.digest]
    for _ in reader:
        pass
    dev_reader = PairReader(sources.dev, skip_bad=sources.skip_bad)
    return list(dev_reader), [reader.digest, dev_reader.digest]


def _asked(run: RunPlan, space: SearchSpace, given: _Given, digests: list[str]) -> dict[str, Any]:
    """What all trials of a search have in common: they can only be compared while it stays the same."""
    settings = run.to_dict()
    settings["train"] = {name: v for name, v in settings["train"].items() if name not in FREE_ON_RESUME}
    return {
        **settings,
        "space": space.to_dict(),
        "data": digests,
        "start": given.start,
        "tokenizer": given.tokenizer,
        "instruction": given.instruction,
        "examples": given.examples,
        "sampling_seed": given.sampling_seed,
    }


def _facts(result: TrainResult) -> dict[str, Any]:
    return {
        "best_step": result.best_step,
        "steps": result.step,
        "stopped_early": result.stopped_early,
        "seconds": round(result.seconds, 1),
    }


def _say_nothing(_: str) -> None:
    """In place of `tell`."""
