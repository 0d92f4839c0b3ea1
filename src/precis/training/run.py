"""What surrounds the steps of a run: taking it up, telling the callbacks, validating, saving, finishing."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import nn, optim

from precis.errors import RunError, UserError
from precis.files import DamagedError
from precis.lock import locked
from precis.training.callbacks import (
    METRICS_FILE,
    Callback,
    StartInfo,
    StepInfo,
    TrainResult,
    ValidationInfo,
)
from precis.training.checkpoint import Checkpoints, RunState, Saved, restore
from precis.training.interruption import Interruption, StopRequested
from precis.training.processes import wait_for_everyone
from precis.training.randomness import VALIDATION, seed_position
from precis.training.records import add_to_window, window_means
from precis.training.settings import FREE_ON_RESUME, TrainSettings
from precis.training.sharding import Pieces
from precis.training.tensors import size_in_bytes
from precis.training.updates import Totals, Updater
from precis.training.validation import evaluating

logger = logging.getLogger("precis.training")

Validate = Callable[[nn.Module], Mapping[str, float]]


class Run:
    """One call of `precis.training.train`: its state, and its verbs besides the update itself.

    With several processes, all keep the same state; the main one alone writes files and calls callbacks.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        *,
        pieces: Pieces | None = None,
        updater: Updater,
        settings: TrainSettings,
        identity: Mapping[str, Any],
        total_steps: int,
        batches_per_epoch: int,
        folder: Path,
        accelerator: Accelerator,
        validate: Validate | None,
        callbacks: Sequence[Callback],
    ) -> None:
        """`model` is the plain model, without what Accelerate wraps around it; `pieces` keeps it in step with what is
        trained, where that is a copy in pieces.
        """
        self.state = RunState()
        self._model = model
        self._optimizer = optimizer
        self._pieces = pieces
        self._updater = updater
        self._settings = settings
        self._total_steps = total_steps
        self._batches_per_epoch = batches_per_epoch
        self._folder = folder
        self._accelerator = accelerator
        self._validate = validate
        self._callbacks = callbacks if accelerator.is_main_process else ()
        self._checkpoints = Checkpoints(folder / "checkpoints", keep=settings.keep_checkpoints)
        record = {**settings.to_dict(), "total_steps": total_steps, **identity}
        self._settings_record: dict[str, Any] = json.loads(json.dumps(record))  # as it will be read back
        self._stop = False
        self._saved_step: int | None = None
        self._validation_metrics: Mapping[str, float] = {}
        self._result: TrainResult | None = None
        self._clock = time.perf_counter()

    @contextmanager
    def begun(self, *, resume: bool) -> Iterator[None]:
        """Take the run up where its newest good checkpoint left it, or begin it; end the callbacks."""
        if self._settings.warmup_steps >= self._total_steps:
            logger.warning(
                "warmup_steps=%d is not below the %d steps of the run: the learning rate never reaches its peak",
                self._settings.warmup_steps,
                self._total_steps,
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder) if self._accelerator.is_main_process else nullcontext():
            resumed_from = self._take_up(resume=resume)
            self._model.train()
            try:
                for callback in self._callbacks:
                    callback.on_start(self._start_info(resumed_from))
                self._clock = time.perf_counter()
                yield
            finally:
                for callback in self._callbacks:
                    callback.on_end(self._result)

    def goes_on(self) -> bool:
        """Whether another step is to be made."""
        return not (self._stop or self.state.step >= self._total_steps or self._patience_spent())

    def record_step(self, totals: Totals, *, compiling: float = 0.0) -> None:
        """Count the step and tell the callbacks; give up after too many in a row that were not finite.

        Args:
            compiling: seconds of the step that went into compiling.
        """
        state = self.state
        now = time.perf_counter()
        seconds, self._clock = now - self._clock, now
        learning_rate = self._updater.learning_rate(state.step)
        state.step += 1
        state.seconds += seconds
        state.tokens += totals.tokens
        self._stop = self._stop or totals.stop > 0
        self._count_skips(totals)
        add_to_window(state.window, totals, learning_rate=learning_rate, seconds=seconds)
        info = StepInfo(
            step=state.step,
            total_steps=self._total_steps,
            loss=totals.mean_loss,
            learning_rate=learning_rate,
            gradient_norm=totals.gradient_norm,
            tokens=totals.tokens,
            seconds=seconds,
            compiling=compiling,
            skipped=not totals.finite,
            record=self._record_if_due(),
        )
        for callback in self._callbacks:
            callback.on_step(info)
        self._give_up_if_stuck()

    def validate_if_due(self, interruption: Interruption) -> None:
        """Validate after every `validate_every` steps and after the last, unless this step has been
        validated.

        A signal cuts a validation short; the run stops then, and makes up for it when it is resumed.
        """
        state, every = self.state, self._settings.validate_every
        due = state.step >= self._total_steps or (every is not None and state.step % every == 0)
        if self._validate is None or self._stop or not due or state.step == state.validated_step:
            return
        began = time.perf_counter()
        metrics = self._measure(self._validate, interruption)
        if metrics is None:
            self._stop = True
            return
        info = ValidationInfo(
            step=state.step,
            metrics=metrics,
            seconds=time.perf_counter() - began,
            improved=self._judge(metrics),
            best_step=state.best_step,
            best_value=state.best_value,
        )
        for callback in self._callbacks:
            callback.on_validation(info)
        self._clock += time.perf_counter() - began  # validation is no training time

    def save_if_due(self) -> None:
        """Save every `save_every` steps, and when this step is the last, or the last for now.

        The weights of a step that is the best between two saves are kept in memory: the next save writes them too,
        and a run killed before it goes on from the save before, makes the same steps and finds them again.
        """
        step = self.state.step
        if step == self._saved_step:
            return
        if step % self._settings.save_every and self.goes_on():
            # Where the model is in pieces, validation has just put the whole one together.
            if step == self.state.best_step and self._accelerator.is_main_process:
                self._checkpoints.hold(self._model, step)
            return
        began = time.perf_counter()
        with self._pieces.state_gathered() if self._pieces else nullcontext():
            if self._accelerator.is_main_process:
                self._checkpoints.save(self._model, self._optimizer, self.state, self._settings_record)
        wait_for_everyone(self._accelerator)
        self._saved_step = step
        self._clock += time.perf_counter() - began

    def finish(self) -> TrainResult:
        """Say how the run ended."""
        state = self.state
        best = state.step if state.best_step is None else state.best_step
        self._result = TrainResult(
            step=state.step,
            total_steps=self._total_steps,
            best_step=state.best_step,
            best_metric=state.best_value,
            best_checkpoint=self._checkpoints.best_path(best),
            stopped_early=self._patience_spent() and state.step < self._total_steps,
            interrupted=self._stop and not self._complete(),
            metrics=self._validation_metrics,
            skipped_steps=state.skipped_steps,
            tokens=state.tokens,
            seconds=state.seconds,
        )
        return self._result

    def _take_up(self, *, resume: bool) -> Path | None:
        """Load the newest good checkpoint; its folder, or None for a fresh start."""
        saved: Saved | None = None
        if self._accelerator.is_main_process:
            if not resume:
                self._checkpoints.clear()
                (self._folder / METRICS_FILE).unlink(missing_ok=True)
            self._checkpoints.tidy()
            saved = self._checkpoints.newest_valid(logger.warning, model=self._model)
            if saved is None:
                self._checkpoints.clear()  # best weights of a run that never got a checkpoint
            self._checkpoints.check_space_for_run(size_in_bytes(self._model))
        saved = broadcast_object_list([saved])[0]
        if saved is None:
            return None
        _refuse_other_settings(saved, self._settings_record)
        restore(self._model, self._optimizer, saved.folder)
        if self._pieces:
            self._pieces.scatter()
        self.state = saved.state
        self._saved_step = self.state.step
        self._forget_damaged_best()
        if self._accelerator.is_main_process:
            self._checkpoints.remove_newer(self.state.step)
            self._checkpoints.prune(best=self.state.best_step)  # what a kill kept from being removed
            self._checkpoints.mark_best(self.state, self._settings_record)
        return saved.folder

    def _forget_damaged_best(self) -> None:
        best = self.state.best_step
        if best is None or best == self.state.step:
            return
        try:
            self._checkpoints.verify_best(best, model=self._model)
        except DamagedError as damage:
            logger.warning("best checkpoint %s is lost: %s", self._checkpoints.best_path(best), damage)
            self.state.best_step = self.state.best_value = None

    def _start_info(self, resumed_from: Path | None) -> StartInfo:
        sizes = [(p.numel(), p.requires_grad) for p in self._model.parameters()]
        return StartInfo(
            folder=self._folder,
            first_step=self.state.step,
            total_steps=self._total_steps,
            trainable_parameters=sum(size for size, trained in sizes if trained),
            parameters=sum(size for size, _ in sizes),
            processes=self._accelerator.num_processes,
            device=str(self._accelerator.device),
            resumed_from=resumed_from,
        )

    def _record_if_due(self) -> dict[str, float] | None:
        state = self.state
        if state.step % self._settings.log_every and state.step < self._total_steps:
            return None
        epoch = state.step * self._settings.gradient_accumulation / self._batches_per_epoch
        record = {
            "epoch": epoch,
            **window_means(state.window),
            "tokens": state.tokens,
            "seconds": state.seconds,
        }
        state.window = {}
        return record

    def _measure(self, validate: Validate, interruption: Interruption) -> Mapping[str, float] | None:
        """What `validate` says, the same in every process; None if a signal cut it short in the main one."""
        seed_position(
            seed=self._settings.seed,
            step=self.state.step,
            rank=self._accelerator.process_index,
            micro_batch=VALIDATION,
        )
        metrics: Mapping[str, float] | None = None
        model = self._model
        try:
            with (
                self._pieces.weights_gathered() if self._pieces else nullcontext(),
                evaluating(model),
                self._updater.precision(),
                interruption.may_abort(),  # innermost: a signal cannot interrupt the return to training mode
            ):
                metrics = {name: float(value) for name, value in validate(model).items()}
        except StopRequested:
            logger.warning("validation at step %d cut short by a signal", self.state.step)
        return broadcast_object_list([metrics])[0]

    def _judge(self, metrics: Mapping[str, float]) -> bool:
        """Note the validation in the state; whether it is the best so far."""
        state, select = self.state, self._settings.select
        if select.metric not in metrics:
            known = ", ".join(sorted(metrics)) or "nothing"
            raise UserError(f"select names the metric {select.metric!r}, but validation measures {known}")
        value = metrics[select.metric]
        improved = select.improves(value, state.best_value)
        state.validated_step = state.step
        state.stale_validations = 0 if improved else state.stale_validations + 1
        if improved:
            state.best_step, state.best_value = state.step, value
        self._validation_metrics = metrics
        self._saved_step = None  # what a checkpoint of this step says about validation is out of date
        return improved

    def _complete(self) -> bool:
        validated = self._validate is None or self.state.validated_step == self.state.step
        return self.state.step >= self._total_steps and validated

    def _patience_spent(self) -> bool:
        patience = self._settings.patience
        return patience is not None and self.state.stale_validations >= patience

    def _count_skips(self, totals: Totals) -> None:
        state = self.state
        if totals.finite:
            state.skipped_in_row = 0
            return
        state.skipped_steps += 1
        state.skipped_in_row += 1
        what = f"loss {totals.mean_loss}, gradient norm {totals.gradient_norm}"
        logger.warning("step %d skipped: %s", state.step, what)

    def _give_up_if_stuck(self) -> None:
        row = self.state.skipped_in_row
        if row >= self._settings.skip_limit:
            raise RunError(
                f"loss or gradient was not finite for {row} steps in a row, up to step {self.state.step}; "
                f"look at the data of these steps, go on over more of them with a skip_limit above {row}, or begin "
                f"anew in another folder with a learning_rate below {self._settings.learning_rate}; "
                f"checkpoints in {self._checkpoints.folder} are untouched"
            )


def _refuse_other_settings(saved: Saved, now: Mapping[str, Any]) -> None:
    """Raise `UserError` at the first setting that the curve depends on and that has changed."""
    before = {name: value for name, value in saved.settings.items() if name not in FREE_ON_RESUME}
    after = {name: value for name, value in now.items() if name not in FREE_ON_RESUME}
    change = first_change(before, after)
    if change is not None:
        name, old, new = change
        folder = saved.folder.parent.parent
        raise UserError(
            f"the run in {folder} was started with {name}={old!r} and is now given {new!r}; "
            f"keep the old value, or begin anew with --restart or another --out"
        )


def first_change(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The dotted name, old and new value of the first difference between two JSON values; None is as good as absent."""
    if before == after:
        return None
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return path, before, after
    for name in sorted(before.keys() | after.keys()):
        change = first_change(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        if change is not None:
            return change
    return None
