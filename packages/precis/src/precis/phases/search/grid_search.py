"""Grid search for hyper-parameters, as in Z-Code++ (Table 8): by validation, first training, then decoding.

A `Searchable` is trained at each point: a whole model, or a prefix (`prefix_search`), without a second stage.

    OUT/search.sqlite3   both studies, kept by Optuna; a stopped search resumes from here
    OUT/search.json      every trial with its settings and score, best first; rewritten after each trial
    OUT/trials/NNN/      a run folder for each training trial; only the best keeps its model
    OUT/model/           the best model, with its best decoding settings; for a prefix OUT/adapter/
    OUT/settings.json    that trial's settings, with this decoding

Finished trials are not run again, and an interrupted one resumes from its checkpoint. The search does not prune trials
by comparing them step by step: those with a long warmup or large batches are behind at first. `--patience` ends a run
that no longer improves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, final

from precis.evaluation.rouge import Rouge
from precis.generation.adapters import base_of, place_of_base, write_base
from precis.generation.input_plan import DocumentEncoder
from precis.generation.model_location import locate
from precis.generation.summarizer import Summarizer
from precis.messages import Notify, silent
from precis.phases.folder_check import SETTINGS_FILE
from precis.phases.output_folders import claim_folder
from precis.phases.run_folder import CARD_FILE, export_folder, export_model, has_checkpoints
from precis.phases.search.grid_study import STUDY_FILE, GridStudy, Trial, load_optuna
from precis.phases.search.prefix_search import PrefixSpace, TunedPrefix
from precis.phases.search.search_space import SearchSpace, at_point, decoding_at_point, points
from precis.phases.train.finetuning import TOKENIZER_FOLDER, finetune
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.training_pairs import read_pairs_of
from precis.phases.train.training_session import MODEL_FOLDER
from precis.phases.train.validation_scores import evenly_spaced
from precis.recipes.run_plan import RunPlan
from precis.storage.atomic import write_json
from precis.storage.locks import locked
from precis.storage.model_files import ADAPTER_FOLDER
from precis.storage.seal import SEAL, refuse_foreign
from precis.table import Table
from precis.training import Highest, Trained, TrainResult, standard_callbacks
from precis.training.callbacks import Callback
from precis.training.training_settings import FREE_ON_RESUME
from precis_text.bounded_io import read_json
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import DivergedError, RunError, UserError

TRIALS_FOLDER = "trials"
RESULTS_FILE = "search.json"
_ROUGE = ("rouge1", "rouge2", "rougeL")
_EXPORTS = (MODEL_FOLDER, TOKENIZER_FOLDER, ADAPTER_FOLDER)
_SHARED = ("start", "tokenizer", "instruction", "examples", "sampling_seed")  # by all trials of a search
_DECODED_ROWS = 200  # dev rows, if the run does not set how many it summarizes
_DECODING_BATCH = 16


def is_search(folder: Path) -> bool:
    """Return whether the folder contains a search, finished or not."""
    return (folder / STUDY_FILE).exists()


def refuse_search(out: str | Path) -> None:
    """Refuse to train once in a folder that contains a search."""
    if is_search(Path(out)):
        raise UserError(f"{out}: contains a search; add --search, or use another --out")


def refuse_without_search(options: Mapping[str, Any], *, search: bool) -> None:
    """Refuse options of a search without `--search`."""
    for option, value in (("--trials", options.get("trials")), ("--space", options.get("space") or None)):
        if value is not None and not search:
            raise UserError(f"{option} is for a search; add --search")


@final
@dataclass(frozen=True, kw_only=True)
class FineTunedModel:
    """A fine-tuned model as a `Searchable`."""

    run: RunPlan
    makes: Literal["model", "adapter"] = "model"

    def check(self, point: Mapping[str, int | float]) -> None:
        """Raise `UserError` if a value of a point is out of its setting's range."""
        at_point(self.run, point)

    def train(self, point: Mapping[str, int | float], request: PairRequest) -> Trained:
        """Fine-tune at a point."""
        return finetune(at_point(self.run, point), request)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that all trials share, as JSON values."""
        return self.run.to_dict()


Searchable = FineTunedModel | TunedPrefix
Space = SearchSpace | PrefixSpace


def search(
    subject: Searchable,
    request: PairRequest,
    *,
    space: Space,
    trials: int | None = None,
    callbacks: Callable[[], Sequence[Callback]] = standard_callbacks,
) -> Searched:
    """Train at the points of `space`, decode the best model in several ways, and export it; or resume that.

    Training trials are ranked by `run.train.select` on the validation set, decodings by ROUGE on up to
    `run.generated_rows` rows of it. No trial sees the test set.

    Args:
        subject: the training, with all settings that `space` does not search; its `train.seed` also orders the grid.
        request: the same for every trial.
        trials: number of points of the training grid to try in total: the first ones of an order drawn from the seed,
            so a larger number later adds to the finished ones. If None, every point.
        callbacks: creates the callbacks of each training run.

    Raises:
        UserError: Optuna is not installed, settings are inconsistent, or `out` contains another search or a run.
        RunError: training failed without diverging (a diverged trial counts as failed), or no trial succeeded.
    """
    folder = claim_folder(request.out)
    _refuse(subject, space, folder, trials=trials)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        for name in _EXPORTS:
            refuse_foreign(folder / name)
        if request.restart:
            _forget(folder)
        return _Search(subject, space, request, folder, callbacks).run(trials)


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The result of a search: `model` is the folder of the best model or adapter, None if it was interrupted.

    Attributes:
        trials, decodings: the finished trials of each stage, best first, failed ones last.
        metric, decoding_metric: the metrics that rank them.
    """

    folder: Path
    model: Path | None
    trials: list[Trial]
    decodings: list[Trial]
    metric: str
    decoding_metric: str

    def tables(self) -> list[Table]:
        """Return the tables of the stages that have trials, for the terminal."""
        stages = {"training": (self.trials, self.metric), "decoding": (self.decodings, self.decoding_metric)}
        return [_table(title, trials, metric) for title, (trials, metric) in stages.items() if trials]


class _Search:
    """One call of `search`: its two studies and its actions."""

    def __init__(
        self,
        subject: Searchable,
        space: Space,
        request: PairRequest,
        folder: Path,
        callbacks: Callable[[], Sequence[Callback]],
    ) -> None:
        run = subject.run
        self._subject, self._base, self._space, self._request = subject, run, space, request
        self._folder, self._tell, self._callbacks = folder, request.notify, callbacks
        select = run.train.select
        self._metric = select.metric
        self._decoding_metric = select.metric if select.metric in _ROUGE else "rougeL"
        pairs = read_pairs_of(request.sources, seed=run.train.seed)
        for _ in pairs.train:  # the digests are known after everything is read
            pass
        self._dev = pairs.dev  # the same for every trial
        digests = [reader.digest for reader in pairs.readers]
        self._training = GridStudy(
            folder / STUDY_FILE,
            "training",
            space.training_grid,
            seed=run.train.seed,
            highest=isinstance(select, Highest),
            asked=_asked(subject, space, request, digests),
        )
        self._decoding: GridStudy | None = None

    def run(self, trials: int | None) -> Searched:
        """Run both stages and the export."""
        size = self._training.size
        wanted = size if trials is None else min(trials, size)
        self._tell(f"search: {wanted} of the {size} points of the training grid, ranked by {self._metric}")
        self._tidy()
        if not self._train(wanted):
            return self._searched(None)
        best = self._training.best
        if best is None:
            raise RunError(
                f"all {wanted} trials in {self._folder / TRIALS_FOLDER} failed to give a usable model; see their errors"
            )
        if self._subject.makes == "adapter":
            self._export_adapter(best)
        else:
            self._export(best, self._decode(best))
        return self._searched(self._folder / self._subject.makes)

    def _train(self, wanted: int) -> bool:
        """Run training trials until `wanted` are finished; return False if a signal interrupted one."""
        tell_more = self._tell  # only for the first trial: most of it is the same for all
        while (done := len(self._training.finished)) < wanted:
            trial, is_new = self._training.take()
            place = self._place(trial.number)
            self._tell(f"trial {done + 1} of {wanted}: {trial.words} (in {place})")
            try:
                result = self._fine_tune(trial, place, restart=is_new, notify=tell_more)
            except DivergedError as error:  # a bad point of the grid, not a bad machine
                self._training.finish(trial, None, why=str(error))
                self._tell(f"trial {trial.number:03d} failed: {error}")
            else:
                if result.interrupted:
                    return False
                facts = {name: getattr(result, name) for name in ("best_step", "stopped_early")}
                facts |= {"steps": result.step, "seconds": round(result.seconds, 1)}
                self._training.finish(trial, result.best_metric, **facts)
                self._tell(f"trial {trial.number:03d}: {self._metric} {_figure(result.best_metric)}")
            tell_more = silent
            self._tidy()
            self._write()
        return True

    def _fine_tune(self, trial: Trial, place: Path, *, restart: bool, notify: Notify) -> TrainResult:
        shared = self._folder / TOKENIZER_FOLDER
        request = replace(
            self._request, out=place, restart=restart, notify=notify, callbacks=self._callbacks()
        )
        if request.tokenizer is None and request.start is None and shared.is_dir():
            request = replace(request, tokenizer=str(shared))
        done = self._subject.train(trial.values, request)
        if not shared.is_dir() and (own := place / TOKENIZER_FOLDER).is_dir():  # trained once for all trials
            export_folder(shared, lambda new: shutil.copytree(own, new, dirs_exist_ok=True))
        return done.result

    def _decode(self, best: Trial) -> GenerationSettings:
        """Try the decoding grid on the best model; return its best settings."""
        self._decoding = GridStudy(
            self._folder / STUDY_FILE,
            f"decoding of trial {best.number:03d}",
            self._space.decoding_grid,
            seed=self._base.train.seed,
            highest=True,
        )
        if len(self._decoding.finished) < self._decoding.size:
            self._try_decodings(self._place(best.number), self._decoding)
        chosen = self._decoding.best
        assert chosen is not None
        return decoding_at_point(self._base.generation, chosen.values)

    def _try_decodings(self, model: Path, study: GridStudy) -> None:
        """Score every unscored point of the decoding grid, as validation does (0 to 100)."""
        run, metric = self._base, self._decoding_metric
        summarizer = Summarizer.from_pretrained(model)
        encode = DocumentEncoder(summarizer.tokenizer)
        # Training skips pairs without tokens if told to skip bad ones; they must not end a search either.
        usable = [pair for pair in self._dev if encode.reads(encode(pair.document))]
        shown = evenly_spaced(usable, run.generated_rows or _DECODED_ROWS)
        documents, references = [pair.document for pair in shown], [pair.all_references for pair in shown]
        rouge = Rouge.choose((text for texts in references for text in texts), types=(metric,))
        self._tell(f"decoding: {study.size} settings on {len(shown):,} dev pairs, ranked by {metric}")
        while (done := len(study.finished)) < study.size:
            trial, _ = study.take()
            settings = decoding_at_point(run.generation, trial.values)
            written = summarizer.summarize(
                documents, settings=settings, batch_size=_DECODING_BATCH, long="truncate", short="write"
            )
            value = float(rouge.score([summary.text for summary in written], references)[metric].mean())
            study.finish(trial, value)
            self._tell(f"decoding {done + 1} of {study.size}: {trial.words}: {metric} {_figure(value)}")
            self._write()

    def _export(self, best: Trial, generation: GenerationSettings) -> None:
        place = self._place(best.number)
        location = locate(place)
        summarizer = Summarizer.from_pretrained(location)
        export_model(
            summarizer.model,
            summarizer.tokenizer,
            generation,
            location.use,
            self._folder / MODEL_FOLDER,
            card=(place / MODEL_FOLDER / CARD_FILE).read_text(encoding="utf-8"),
        )
        self._record(best, generation)

    def _export_adapter(self, best: Trial) -> None:
        """Copy the best trial's adapter, which then names its base from its new place."""
        old, new = self._place(best.number) / ADAPTER_FOLDER, self._folder / ADAPTER_FOLDER

        def write(into: Path) -> None:
            shutil.copytree(old, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns(SEAL))
            write_base(place_of_base(base_of(old), new), into)

        export_folder(new, write)
        self._record(best, self._base.generation)

    def _record(self, best: Trial, generation: GenerationSettings) -> None:
        """Write settings.json and search.json."""
        record = read_json(self._place(best.number) / SETTINGS_FILE)
        record["run"]["generation"] = generation.to_dict()
        record["trial"] = best.number
        write_json(self._folder / SETTINGS_FILE, record)
        self._write()

    def _tidy(self) -> None:
        """Delete the checkpoints of finished trials, and their models except the best one."""
        best = self._training.best
        for trial in self._training.finished:
            place = self._place(trial.number)
            useless = ["checkpoints"]
            if best is not None and trial.number != best.number:
                useless += _EXPORTS
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
        """Write search.json: both stages in the tables' order, and the search space."""
        found = self._searched(None)
        write_json(
            self._folder / RESULTS_FILE,
            {
                "metric": found.metric,
                "trials": [trial.to_dict() for trial in found.trials],
                "decoding_metric": found.decoding_metric,
                "decodings": [trial.to_dict() for trial in found.decodings],
                "space": self._space.to_dict(),
            },
        )


def _refuse(subject: Searchable, space: Space, folder: Path, *, trials: int | None) -> None:
    """Raise `UserError` for errors that would otherwise appear later, perhaps after hours."""
    load_optuna()
    if trials is not None and trials < 1:
        raise UserError(f"--trials {trials}: use 1 or more")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError("--search runs in one process; start it without torchrun")
    if has_checkpoints(folder):
        raise UserError(f"{folder} contains a run, not a search; use another --out")
    for point in points(space.training_grid):
        subject.check(point)
    for point in points(space.decoding_grid):
        decoding_at_point(subject.run.generation, point)


def _forget(folder: Path) -> None:
    for name in (TRIALS_FOLDER, *_EXPORTS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (STUDY_FILE, RESULTS_FILE, SETTINGS_FILE):
        (folder / name).unlink(missing_ok=True)


def _asked(subject: Searchable, space: Space, request: PairRequest, digests: list[str]) -> dict[str, Any]:
    """Return the settings that all trials of a search share: trials are comparable only while these stay the same."""
    settings = subject.to_dict()
    settings["train"] = {name: v for name, v in settings["train"].items() if name not in FREE_ON_RESUME}
    return {
        **settings,
        "space": space.to_dict(),
        "data": digests,
        **{name: getattr(request, name) for name in _SHARED},
    }


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _table(title: str, trials: Sequence[Trial], metric: str) -> Table:
    names = list(trials[0].values)
    best_steps = any("best_step" in trial.facts for trial in trials)
    rows = []
    for trial in trials:
        cells = [f"{trial.number:03d}", *(f"{trial.values[name]:g}" for name in names)]
        cells.append("failed" if trial.value is None else _figure(trial.value))
        rows.append([*cells, *([str(trial.facts.get("best_step", ""))] if best_steps else [])])
    return Table(header=["trial", *names, metric, *(["step"] if best_steps else [])], rows=rows, title=title)
