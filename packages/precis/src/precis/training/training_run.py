"""Everything around the steps of a run: resuming, callbacks, validation, checkpoints, the result."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list
from torch import nn, optim

from precis.process import trim_heap
from precis.storage.locks import locked
from precis.storage.seal import DamagedError
from precis.training.callbacks import (
    METRICS_FILE,
    Callback,
    StartInfo,
    StepInfo,
    TrainResult,
    ValidationInfo,
    Watchers,
)
from precis.training.checkpoint import Checkpoints, RunState, Saved, restore
from precis.training.interruption import Interruption, StopRequested
from precis.training.processes import Pieces, wait_for_everyone
from precis.training.state_tensors import not_finite, size_in_bytes
from precis.training.training_settings import refuse_other_settings
from precis.training.updates import VALIDATION, Totals, Updater, add_to_window, window_means
from precis.training.validation import LOSS, evaluating, judge
from precis_text.errors import DivergedError

logger = logging.getLogger("precis.training")

Validate = Callable[[nn.Module], Mapping[str, float]]


class Run:
    """One call of `precis.training.train`: its state, and its operations except the update.

    With several processes, all have the same state; only the main one writes files and calls callbacks.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        *,
        pieces: Pieces | None = None,
        updater: Updater,
        identity: Mapping[str, Any],
        batches_per_epoch: int,
        folder: Path,
        validate: Validate | None,
        callbacks: Sequence[Callback],
    ) -> None:
        """Set up a run of `model`, the plain model without Accelerate's wrapper. If training uses a sharded copy,
        `pieces` synchronizes `model` with it.
        """
        self.state = RunState()
        self._model = model
        self._optimizer = optimizer
        self._pieces = pieces
        self._updater = updater
        self._settings = settings = updater.settings
        self._total_steps = total_steps = updater.total_steps
        self._batches_per_epoch = batches_per_epoch
        self._folder = folder
        self._accelerator = accelerator = updater.accelerator
        self._validate = validate
        self._watchers = Watchers(callbacks if accelerator.is_main_process else ())
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
        """Resume the run from its newest valid checkpoint, or start it; end the callbacks after the body."""
        self._tell_long_warmup()
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder) if self._accelerator.is_main_process else nullcontext():
            resumed_from = self._take_up(resume=resume)
            self._model.train()
            try:
                self._watchers.start(self._start_info(resumed_from))
                self._clock = time.perf_counter()
                yield
            finally:
                self._watchers.end(self._result)

    def goes_on(self) -> bool:
        """Return whether the run makes another step."""
        return not (self._stop or self.state.step >= self._total_steps or self._patience_spent())

    def record_step(self, totals: Totals, *, compiling: float = 0.0) -> None:
        """Count the step and notify the callbacks; raise after too many steps in a row that were not finite.

        Args:
            compiling: seconds of the step spent compiling.
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
            step=state.step, total_steps=self._total_steps, loss=totals.mean_loss, learning_rate=learning_rate,
            gradient_norm=totals.gradient_norm, tokens=totals.tokens, seconds=seconds, compiling=compiling,
            skipped=not totals.finite, record=self._record_if_due(),
        )  # fmt: skip
        self._watchers.step(info)
        self._give_up_if_stuck()

    def validate_if_due(self, interruption: Interruption) -> None:
        """Validate after every `validate_every` steps and after the last, unless this step has been
        validated.

        A signal aborts the validation and stops the run, which validates when it resumes.
        """
        state, every = self.state, self._settings.validate_every
        due = state.step >= self._total_steps or (every is not None and state.step % every == 0)
        if self._validate is None or self._stop or not due or state.step == state.validated_step:
            return
        began = time.perf_counter()
        measured = self._measure(self._validate, interruption)
        if measured is None:
            self._stop = True
            return
        metrics, bad_weights = measured
        info = ValidationInfo(
            step=state.step, metrics=metrics, seconds=time.perf_counter() - began,
            improved=self._judge(metrics, bad_weights), best_step=state.best_step, best_value=state.best_value,
        )  # fmt: skip
        self._watchers.validation(info)
        trim_heap()  # batches of many shapes leave gaps that later ones do not fill
        self._clock += time.perf_counter() - began  # validation is not training time

    def save_if_due(self) -> None:
        """Save every `save_every` steps, and when the run ends or is interrupted at this step.

        The best weights between two saves stay in memory, and the next save writes them too. A run killed before that
        save resumes from the previous one, repeats the same steps and finds the same weights.
        """
        step = self.state.step
        if step == self._saved_step:
            return
        if step % self._settings.save_every and self.goes_on():
            # If the model is sharded, validation has just gathered the whole one.
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
        """Return the run's result; raise `DivergedError` if it is complete and none of its models is usable."""
        state = self.state
        if not self._stop or self._complete():
            self._refuse_diverged()
        best = state.step if state.best_step is None else state.best_step
        self._result = TrainResult(
            step=state.step, total_steps=self._total_steps, best_step=state.best_step,
            best_metric=state.best_value, best_checkpoint=self._checkpoints.best_path(best),
            stopped_early=self._patience_spent() and state.step < self._total_steps,
            interrupted=self._stop and not self._complete(), metrics=self._validation_metrics,
            skipped_steps=state.skipped_steps, tokens=state.tokens, seconds=state.seconds,
            is_finite=state.is_finite, metric=self._settings.select.metric, best_is_chance=state.best_is_chance,
        )  # fmt: skip
        return self._result

    def _take_up(self, *, resume: bool) -> Path | None:
        """Load the newest valid checkpoint, and return its folder; None for a new run."""
        saved: Saved | None = None
        if self._accelerator.is_main_process:
            if not resume:
                self._checkpoints.clear()
                (self._folder / METRICS_FILE).unlink(missing_ok=True)
            self._checkpoints.tidy()
            saved = self._checkpoints.newest_valid(logger.warning, model=self._model)
            if saved is None:
                self._checkpoints.clear()  # best weights of a run without a checkpoint
            self._checkpoints.check_space_for_run(size_in_bytes(self._model))
        saved = broadcast_object_list([saved])[0]
        if saved is None:
            return None
        refuse_other_settings(
            self._folder, before=saved.settings, now=self._settings_record, step=saved.state.step
        )
        restore(self._model, self._optimizer, saved.folder)
        if self._pieces:
            self._pieces.scatter()
        self.state = saved.state
        self._saved_step = self.state.step
        self._forget_damaged_best()
        if self._accelerator.is_main_process:
            self._checkpoints.remove_newer(self.state.step)
            self._checkpoints.prune(best=self.state.best_step)  # a kill may have prevented it
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
            self.state.best_step = self.state.best_value = self.state.best_loss = None
            self.state.best_is_chance = False

    def _start_info(self, resumed_from: Path | None) -> StartInfo:
        sizes = [(p.numel(), p.requires_grad) for p in self._model.parameters()]
        return StartInfo(
            folder=self._folder, first_step=self.state.step, total_steps=self._total_steps,
            trainable_parameters=sum(size for size, trained in sizes if trained),
            parameters=sum(size for size, _ in sizes), processes=self._accelerator.num_processes,
            device=str(self._accelerator.device), resumed_from=resumed_from,
        )  # fmt: skip

    def _record_if_due(self) -> dict[str, float] | None:
        state = self.state
        if state.step % self._settings.log_every and state.step < self._total_steps:
            return None
        epoch = state.step * self._settings.gradient_accumulation / self._batches_per_epoch
        means = window_means(state.window)
        record = {"epoch": epoch, **means, "tokens": state.tokens, "seconds": state.seconds}
        state.window = {}
        return record

    def _measure(
        self, validate: Validate, interruption: Interruption
    ) -> tuple[Mapping[str, float], str | None] | None:
        """Return the main process's metrics, and the name of a weight that is not finite, in every process; None if a
        signal aborted the validation in the main one.
        """
        self._updater.seed(self.state.step, micro_batch=VALIDATION)
        measured: tuple[Mapping[str, float], str | None] | None = None
        model = self._model
        try:
            with (
                self._pieces.weights_gathered() if self._pieces else nullcontext(),
                evaluating(model),
                self._updater.precision(),
                interruption.may_abort(),  # innermost: a signal cannot interrupt the return to training mode
            ):
                metrics = {name: float(value) for name, value in validate(model).items()}
                measured = metrics, not_finite(model)
        except StopRequested:
            logger.warning("validation at step %d was aborted by a signal", self.state.step)
        return broadcast_object_list([measured])[0]

    def _judge(self, metrics: Mapping[str, float], bad_weights: str | None) -> bool:
        """Record the validation in the state, and return whether it is the best so far."""
        state = self.state
        verdict = judge(
            metrics, select=self._settings.select, state=state, weights_are_finite=bad_weights is None
        )
        if bad_weights is not None:
            logger.warning("step %d: the weights %s are not finite", state.step, bad_weights)
        state.validated_step = state.step
        state.is_finite = verdict.is_finite
        state.stale_validations = 0 if verdict.is_progress else state.stale_validations + 1
        if verdict.is_best:
            state.best_step, state.best_value = state.step, metrics[self._settings.select.metric]
            state.best_loss, state.best_is_chance = metrics.get(LOSS), verdict.is_chance
        self._validation_metrics = metrics
        self._saved_step = None  # a checkpoint of this step lacks this validation
        return verdict.is_best

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
            best = self._checkpoints.save_best(self.state) if self._accelerator.is_main_process else None
            kept = f"checkpoints in {self._checkpoints.folder} are unchanged"
            raise DivergedError(
                f"loss or gradient was not finite for {row} steps in a row, up to step {self.state.step}; "
                f"check the data of these steps, skip more of them with a skip_limit above {row}, or "
                f"{self._begin_anew()}; "
                + (kept if best is None else f"the best finite weights so far are kept in {best}")
            )

    def _refuse_diverged(self) -> None:
        """Raise `DivergedError` if a finished run lacks a usable model; warn if its last model is not usable."""
        state = self.state
        if state.step and state.skipped_steps == state.step:
            raise DivergedError(
                f"loss or gradient was not finite at any of the {state.step} steps, so the model was not trained; "
                f"check the data, or {self._begin_anew()}"
            )
        if state.is_finite:
            return
        if state.best_step is None:
            raise DivergedError(
                f"the model has diverged: its loss or weights were not finite at any validation; {self._begin_anew()}"
            )
        logger.warning(
            "the model has diverged: at step %d its loss or its weights are not finite; the best finite model is from "
            "step %d",
            state.validated_step,
            state.best_step,
        )

    def _begin_anew(self) -> str:
        return f"start again with --restart and a learning rate (--lr) below {self._settings.learning_rate:g}"

    def _tell_long_warmup(self) -> None:
        warmup, total = self._settings.warmup_steps, self._total_steps
        if warmup >= total:
            logger.warning(
                "warmup_steps=%d is not below steps=%d: the learning rate never reaches its peak; "
                "train longer, or add --set train.warmup_steps=%d",
                warmup,
                total,
                total // 10,
            )
