"""Callbacks of a run: the protocol, and the callbacks that write files.

Callbacks observe a run and cannot change it: an error in one is logged, and the run continues (`Watchers`).
Only the main process calls them.
"""

import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from precis.storage.atomic import appending, write_file, write_whole
from precis.storage.locks import is_file_of
from precis_text.bounded_io import parse_json
from precis_text.errors import UserError

logger = logging.getLogger("precis.training")
METRICS_FILE = "metrics.jsonl"


@dataclass(frozen=True, kw_only=True)
class StartInfo:
    """The start of a run, before step `first_step` + 1; `resumed_from` is the checkpoint, if it resumes from one."""

    folder: Path
    first_step: int
    total_steps: int
    trainable_parameters: int
    parameters: int
    processes: int
    device: str
    resumed_from: Path | None = None


@dataclass(frozen=True, kw_only=True)
class StepInfo:
    """A finished optimizer step.

    Attributes:
        step: its number, counted from 1.
        loss: mean per target over the global batch.
        gradient_norm: before clipping.
        tokens: read and written in this step, over all processes.
        seconds: wall-clock time of the step.
        compiling: the part of that time that `torch.compile` took, for the first steps and for new shapes.
        skipped: loss or gradient was not finite, so the weights were not updated (if objectives take turns, those of
            the failing turn and of later ones).
        record: the means since the last record, to be logged, every `log_every` steps; else None.
    """

    step: int
    total_steps: int
    loss: float
    learning_rate: float
    gradient_norm: float
    tokens: int
    seconds: float
    skipped: bool
    compiling: float = 0.0
    record: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class ValidationInfo:
    """A finished validation; `best_step` and `best_value` already include it."""

    step: int
    metrics: Mapping[str, float]
    seconds: float
    improved: bool
    best_step: int | None
    best_value: float | None


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """The result of a run.

    Attributes:
        step: optimizer steps done.
        total_steps: optimizer steps planned.
        metric: the validation metric that ranks checkpoints.
        best_step, best_metric: step and `metric` of the best validation; None if there was none.
        best_is_chance: no score was above chance, so the loss chose the best validation.
        best_checkpoint: its folder, for `load_weights`; without validation the last checkpoint.
        is_finite: whether loss and weights were finite at the last validation; those of the best always were.
        stopped_early: patience ran out.
        interrupted: SIGTERM or SIGINT stopped the run; the same command resumes it.
        metrics: those of the last validation in this process.
        skipped_steps: steps skipped because loss or gradient was not finite.
        seconds: training time, over all restarts.
    """

    step: int
    total_steps: int
    best_step: int | None
    best_metric: float | None
    best_checkpoint: Path
    stopped_early: bool
    interrupted: bool
    metrics: Mapping[str, float] = field(default_factory=dict)
    skipped_steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    is_finite: bool = True
    metric: str = "loss"
    best_is_chance: bool = False


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The output of a training run of any phase.

    Attributes:
        folder: the run folder.
        result: the result of the loop.
        model: the exported model; None if the run was interrupted or exports an adapter.
        adapter: the exported adapter; None if the run was interrupted or exports a model.
        kept: which weights were exported.
        is_main: whether this process wrote the export. If there are several, only that one should print.
    """

    folder: Path
    result: TrainResult
    model: Path | None = None
    adapter: Path | None = None
    kept: Literal["best", "last"] = "best"
    is_main: bool = True


class Callback(Protocol):
    """An observer of a run; a subclass defines the methods for the events it needs.

    `on_end` is always called; `result` is None after an error.
    """

    def on_start(self, info: StartInfo) -> None:
        """Handle the start of the run."""
        return

    def on_step(self, info: StepInfo) -> None:
        """Handle a finished step."""
        return

    def on_validation(self, info: ValidationInfo) -> None:
        """Handle a finished validation."""
        return

    def on_end(self, result: TrainResult | None) -> None:
        """Handle the end of the run."""
        return


class StepLines(Callback):
    """A file of JSON records, one per line, each with its step, written completely and flushed immediately.

    JSON does not have NaN: values that are not finite become null. A resumed run does not repeat steps. If another
    program replaces the file, the next lines go to the new one.
    """

    def __init__(self, name: str) -> None:
        """Write to the file `name` in the run folder."""
        self._name = name
        self._path = Path()
        self._file: BinaryIO | None = None
        self._waiting = b""  # lines that a full disk did not take

    def on_start(self, info: StartInfo) -> None:
        """Remove the steps that a resumed run repeats, and a last line that a kill left incomplete."""
        self._path = info.folder / self._name
        if self._path.exists():
            kept = [record for record in read_metrics(self._path) if record["step"] <= info.first_step]
            write_file(self._path, "".join(_line(record) for record in kept))

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append whole lines; raise OSError if they could not be written.

        On a full disk nothing is appended: half a line would make the file unreadable. The lines are kept and written
        before the next ones, or at the end of the run.
        """
        self._waiting += "".join(map(_line, records)).encode()
        self._write_waiting()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        if self._file is not None and not is_file_of(self._path, self._file.fileno()):
            self._file = self._file.close()  # another program replaced or deleted it
        self._file = self._file or appending(self._path)
        end = self._file.seek(0, os.SEEK_END)
        try:
            write_whole(self._path, self._file, self._waiting)
        except OSError:
            self._file.truncate(end)
            raise
        self._waiting = b""

    def on_end(self, result: TrainResult | None) -> None:
        """Write what is left, and close the file if it is open."""
        try:
            self._write_waiting()
        finally:
            self._file = None if self._file is None else self._file.close()


class JsonLines(StepLines):
    """A callback that appends every record and validation to ``metrics.jsonl``."""

    def __init__(self) -> None:
        super().__init__(METRICS_FILE)

    def on_step(self, info: StepInfo) -> None:
        """Write the record, if there is one."""
        if info.record is not None:
            self.write({"kind": "train", "step": info.step, **info.record})

    def on_validation(self, info: ValidationInfo) -> None:
        """Write the validation metrics."""
        self.write({"kind": "validation", "step": info.step, "seconds": info.seconds, **info.metrics})


class TensorBoard:
    """A callback that writes the same numbers as TensorBoard events to the run's ``tensorboard`` folder."""

    def __init__(self) -> None:
        self._writer: Any = None

    def on_start(self, info: StartInfo) -> None:
        """Open the event file, and hide its events after the resumed step."""
        from torch.utils.tensorboard import SummaryWriter  # half a second to import

        self._writer = SummaryWriter(str(info.folder / "tensorboard"), purge_step=info.first_step + 1)

    def on_step(self, info: StepInfo) -> None:
        """Write the record, if there is one."""
        for name, value in (info.record or {}).items():
            self._writer.add_scalar(f"train/{name}", value, info.step)

    def on_validation(self, info: ValidationInfo) -> None:
        """Write the validation metrics."""
        for name, value in info.metrics.items():
            self._writer.add_scalar(f"validation/{name}", value, info.step)
        self._writer.flush()

    def on_end(self, result: TrainResult | None) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the whole records of a ``metrics.jsonl``; raise `UserError` if a line before the last is damaged."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(parse_json(line))
        except ValueError as error:
            if number < len(lines):
                raise UserError(
                    f"{path}: line {number} is damaged ({error}); fix it, or move the file away to start a new one"
                ) from None
    return records


def _line(record: Mapping[str, Any]) -> str:
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in record.items()
    }
    return json.dumps(finite, ensure_ascii=False, allow_nan=False) + "\n"


class Watchers:
    """The callbacks of one run.

    At the start there is nothing to lose yet, so an error there, such as a read-only folder, ends the run. If a library
    is not installed, only its callback is left out.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = list(callbacks)
        self._told: set[int] = set()

    def start(self, info: StartInfo) -> None:
        """Start every callback.

        Raises:
            Exception: any exception of a callback except ImportError.
        """
        for callback in [*self._callbacks]:
            try:
                callback.on_start(info)
            except ImportError as error:
                self._tell(callback, error)
                self._callbacks.remove(callback)

    def step(self, info: StepInfo) -> None:
        """Report a finished step."""
        self._call(lambda callback: callback.on_step(info))

    def validation(self, info: ValidationInfo) -> None:
        """Report a finished validation."""
        self._call(lambda callback: callback.on_validation(info))

    def end(self, result: TrainResult | None) -> None:
        """Report the end of the run; `result` is None after an error, which a callback's error must not hide."""
        self._call(lambda callback: callback.on_end(result))

    def _call(self, call: Callable[[Callback], None]) -> None:
        for callback in self._callbacks:
            try:
                call(callback)
            except Exception as error:
                self._tell(callback, error)

    def _tell(self, callback: Callback, error: Exception) -> None:
        if id(callback) in self._told:
            return
        self._told.add(id(callback))
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        logger.warning(
            "%s failed (%s); the run continues, and later errors of this callback are not shown",
            type(callback).__name__,
            " ".join(what.split()),
        )
