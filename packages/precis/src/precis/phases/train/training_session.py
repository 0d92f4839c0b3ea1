"""The frame of every training command: lock the run folder, train in it, and export the result.

    request -> session: check the folder -> lock it for this run -> train -> export

Fine-tuning, tuning, grounding and pre-training all use `Session`; they differ in data, objective and export.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Required, TypedDict

from torch import nn

from precis.generation.model_metadata import DEFAULT
from precis.messages import Notify, silent
from precis.objectives.losses import BatchSource, InTurn, Objective
from precis.phases.output_folders import claim_folder, writing_to
from precis.phases.run_folder import SettingsFile
from precis.phases.train.model_card import CardFacts, licence_of, model_card
from precis.storage.model_files import SEEDS_FILE
from precis.storage.seal import refuse_foreign
from precis.training import Trained, TrainResult, TrainSettings, load_weights, standard_callbacks, train
from precis.training.callbacks import METRICS_FILE, Callback, read_metrics
from precis.training.interruption import finished_first
from precis.training.state_tensors import not_finite
from precis.training.training_loop import accelerator_for
from precis.training.training_run import Validate
from precis_text.errors import DivergedError, UserError
from precis_text.row import pluralize

MODEL_FOLDER = "model"
_NO_SCORES = ("kind", "step", "seconds")


class RunOptions(TypedDict, total=False):
    """Keyword arguments of every training; see `RunRequest`."""

    out: Required[str | Path]
    restart: bool
    command: Sequence[str]
    notify: Notify


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The inputs of any training besides its settings and its data.

    Attributes:
        out: the run folder. An existing run with the same settings resumes.
        start: the model to start from (run folder, Hugging Face folder or hub name); if None, a new one.
        restart: delete the run in `out` and start again.
        command: what the user typed, for the record.
        notify: receives progress messages.
        callbacks: callbacks of the loop; if None, the standard ones.
    """

    out: str | Path
    start: str | None = None
    restart: bool = False
    command: Sequence[str] = ()
    notify: Notify = silent
    callbacks: Sequence[Callback] | None = None


class Session:
    """One training in its run folder. All processes take part, but only the main one prints and writes.

    Attributes:
        folder: the run folder.
        accelerator: the devices and processes.
        is_main: whether this process is the main one.
        notify: `request.notify` in the main process; it does nothing in the others.
    """

    def __init__(
        self, request: RunRequest, objective: Objective | InTurn, *, exports: Sequence[str] = (MODEL_FOLDER,)
    ) -> None:
        """Check the run folder; write nothing yet.

        Args:
            objective: the training objective; it determines how processes work together.
            exports: folders that a finished run leaves in its run folder; a restart deletes them.

        Raises:
            UserError: the folder contains something that precis did not write, runs with several seeds, or the
                starting model.
        """
        self._request, self._exports = request, exports
        self.folder = claim_folder(request.out)
        if (self.folder / SEEDS_FILE).is_file():
            raise UserError(
                f"{self.folder}: contains runs with several seeds; add --seeds, or use another --out"
            )
        start = None if request.start in (None, DEFAULT) else Path(request.start)
        if start is not None and start.exists() and start.resolve().is_relative_to(self.folder.resolve()):
            raise UserError(
                f"--model {request.start} is inside --out {self.folder}, which the run would overwrite; "
                "use another --out"
            )
        self.accelerator = accelerator_for(objective)
        self.is_main = self.accelerator.is_main_process
        self.notify: Notify = request.notify if self.is_main else silent

    @contextmanager
    def lock_folder(self) -> Iterator[None]:
        """Lock the folder while the body runs; raise `UserError` if another process is training in it."""
        with writing_to(self.folder, doing="training in") if self.is_main else nullcontext():
            yield

    def run(
        self,
        model: nn.Module,
        *,
        objective: Objective | InTurn,
        batches: BatchSource,
        validate: Validate,
        settings: TrainSettings,
        record: Mapping[str, Any],
        export: Callable[[str], None],
        keep: Literal["best", "last"] = "best",
        makes: Literal["model", "adapter"] = "model",
        watchers: Sequence[Callback] = (),
    ) -> Trained:
        """Train, or resume the folder's run; unless the run is interrupted, export the weights to keep.

        Args:
            record: contents of settings.json; "identity" is what the loss curve depends on besides `settings`.
            export: writes the export with the given card, the text of a README.md; called in the main process,
                with the kept weights in `model`.
            keep: which weights to export.
            makes: the folder that the result names.
            watchers: further callbacks of this kind of training.

        Raises:
            UserError: the folder contains another run, or something foreign in the place of an export.
            DivergedError: the weights to export are not finite, or for `keep="last"` their loss is not.
            RunError: training failed otherwise.
        """
        request = self._request
        for name in self._exports:
            refuse_foreign(self.folder / name)
        if request.restart and self.is_main:
            for name in self._exports:
                shutil.rmtree(self.folder / name, ignore_errors=True)
        standard = standard_callbacks(kept=keep) if request.callbacks is None else request.callbacks
        settings_file = SettingsFile({**record, "command": [*request.command]}, self.notify)
        result = train(
            model,
            batches=batches,
            objective=objective,
            settings=settings,
            folder=self.folder,
            validate=validate,
            callbacks=[settings_file, *standard, *watchers],
            accelerator=self.accelerator,
            resume=not request.restart,
            identity=json.loads(json.dumps(record["identity"])),  # in the form that a resumed run reads back
        )
        done = Trained(folder=self.folder, result=result, kept=keep, is_main=self.is_main)
        if result.interrupted:
            return done
        if keep == "best":
            load_weights(model, result.best_checkpoint)
        self._refuse_diverged(model, result, keep)
        if self.is_main:
            with finished_first(f"the {makes} was written"):
                export(self._card(record, done, makes))
        made = self.folder / makes
        return replace(done, model=made) if makes == "model" else replace(done, adapter=made)

    def _card(self, record: Mapping[str, Any], done: Trained, makes: Literal["model", "adapter"]) -> str:
        """Return the card of the finished run."""
        result, start = done.result, self._request.start
        step = result.best_step if done.kept == "best" and result.best_step is not None else result.step
        measured = read_metrics(self.folder / METRICS_FILE) if (self.folder / METRICS_FILE).exists() else []
        rows = [row for row in measured if row["kind"] == "validation" and row["step"] == step]
        scores = {name: value for row in rows for name, value in row.items() if name not in _NO_SCORES}
        facts = CardFacts(
            name=self.folder.resolve().name, kind=makes, start=start, licence=licence_of(start),
            record=record, scores=scores, step=step,
        )  # fmt: skip
        return model_card(facts)

    def _refuse_diverged(self, model: nn.Module, result: TrainResult, keep: str) -> None:
        """Raise `DivergedError` before any export; the checkpoint may come from a version without this check."""
        why = None
        if (bad := not_finite(model)) is not None:
            why = f"its weights {bad} are not finite"
        elif keep == "last" and not result.is_finite:
            why = "its loss was not finite at the last validation"
        if why is not None:
            raise DivergedError(
                f"the model trained in {self.folder} has diverged: {why}, so it is not exported; start again with "
                "--restart and a lower learning rate (--lr)"
            )


def with_validation_interval(
    train: TrainSettings, batches_per_epoch: int, *, times: int, each_epoch: bool = True
) -> TrainSettings:
    """Return `train` with a validation interval, if it lacks one: at least `times` validations in a run.

    Args:
        each_epoch: also validate at least once per epoch.
    """
    if train.validate_every is not None:
        return train
    every = max(1, train.total_steps(batches_per_epoch) // times)
    if each_epoch:
        every = min(every, max(1, batches_per_epoch // train.gradient_accumulation))
    return replace(train, validate_every=every)


def closing_lines(
    made: Path, *, kind: str = "model", done: Trained | None = None, commands: Sequence[str] = ()
) -> list[str]:
    """Return the closing lines of a finished training.

    Args:
        made: the exported folder, a `kind`.
        done: the finished training; if None, time and scores are omitted.
        commands: next commands, the most useful first.
    """
    rows = [(kind, str(made)), *([] if done is None else _figures(done))]
    rows += [("" if number else "next", command) for number, command in enumerate(commands)]
    width = max(len(name) for name, _ in rows) + 2
    return [f"{f'{name}:' if name else '':<{width}}{text}" for name, text in rows]


def _figures(done: Trained) -> Iterator[tuple[str, str]]:
    """Yield time and best score, each with its name."""
    result = done.result
    early = f", stopped early of {result.total_steps:,}" if result.stopped_early else ""
    yield "time", f"{_duration(result.seconds)} of training, {pluralize(result.step, 'step')}{early}"
    if result.best_step is None or result.best_metric is None:
        return
    other = done.kept == "last" and result.best_step != result.step
    exported = f"; the last weights, of step {result.step:,}, are exported" if other else ""
    by = ", chosen by loss: no score is above chance" if result.best_is_chance else ""
    yield "best", f"{result.metric} {result.best_metric:.3f} at step {result.best_step:,}{by}{exported}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
