"""What may watch a run: the protocol, and the watchers that write files.

Callbacks are told what happened and cannot change it: an error in one is said, and the run goes on (`watchers.py`).
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

from precis.errors import UserError
from precis.files import appending, write_file, write_whole
from precis.untrusted import parse_json

logger = logging.getLogger("precis.training")
METRICS_FILE = "metrics.jsonl"


@dataclass(frozen=True, kw_only=True)
class StartInfo:
    """The run is about to make step `first_step` + 1; `resumed_from` is the checkpoint it goes on from."""

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
    """One optimizer step is done.

    Attributes:
        step: its number, counted from 1.
        loss: mean per target over the global batch.
        gradient_norm: before clipping.
        tokens: read and written in this step, over all processes.
        seconds: wall-clock time of the step.
        compiling: how much of that `torch.compile` took for itself, for the first steps and for new shapes.
        skipped: loss or gradient was not finite, and the weights were left alone (of objectives that take turns, those
            of the turn it happened in and of later ones).
        record: every `log_every` steps the means since the last record, to be written down; else None.
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
    """A validation is done; `best_step` and `best_value` already include it."""

    step: int
    metrics: Mapping[str, float]
    seconds: float
    improved: bool
    best_step: int | None
    best_value: float | None


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """How a run ended.

    Attributes:
        step: optimizer steps done.
        total_steps: optimizer steps planned.
        metric: the validation metric by which checkpoints are compared.
        best_step, best_metric: step and `metric` of the best validation; None if there was none.
        best_checkpoint: its folder, for `load_weights`; without validation the last checkpoint.
        is_finite: whether loss and weights were at the last validation; those of the best always were.
        stopped_early: patience ran out.
        interrupted: SIGTERM or SIGINT asked to stop; the same command goes on from here.
        metrics: of the last validation in this process.
        skipped_steps: steps left out because loss or gradient was not finite.
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


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training leaves behind, whichever phase it belongs to.

    Attributes:
        folder: the run folder.
        result: how the loop ended.
        model: the exported model; None if the run was interrupted, or if what it exports is an adapter.
        adapter: the exported adapter; None if the run was interrupted, or if what it exports is a model.
        kept: which weights were exported.
        is_main: whether this process wrote the export. Of several processes only that one should print anything.
    """

    folder: Path
    result: TrainResult
    model: Path | None = None
    adapter: Path | None = None
    kept: Literal["best", "last"] = "best"
    is_main: bool = True


class Callback(Protocol):
    """A watcher of a run; a subclass defines the methods for what it wants to hear.

    `on_end` is called however the run ends; `result` is None after an error.
    """

    def on_start(self, info: StartInfo) -> None:
        """The run is about to begin."""
        return

    def on_step(self, info: StepInfo) -> None:
        """A step is done."""
        return

    def on_validation(self, info: ValidationInfo) -> None:
        """A validation is done."""
        return

    def on_end(self, result: TrainResult | None) -> None:
        """The run has ended."""
        return


class StepLines(Callback):
    """A file of JSON records, one a line, each with its step, written whole and flushed at once.

    JSON has no NaN: what is not finite becomes null. A resumed run tells no step twice.
    """

    def __init__(self, name: str) -> None:
        """`name` is the file's name in the run folder."""
        self._name = name
        self._path = Path()
        self._file: BinaryIO | None = None

    def on_start(self, info: StartInfo) -> None:
        """Remove the steps that a resumed run makes again, and with them a last line that a kill left unfinished."""
        self._path = info.folder / self._name
        if self._path.exists():
            kept = [record for record in read_metrics(self._path) if record["step"] <= info.first_step]
            write_file(self._path, "".join(_line(record) for record in kept))

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a line whole or, on a full disk, not at all: half a line would spoil the file for its readers."""
        if self._file is None:
            self._file = appending(self._path)
        end, line = self._file.seek(0, os.SEEK_END), _line(record).encode()
        try:
            write_whole(self._path, self._file, line)
        except OSError:
            self._file.truncate(end)
            raise

    def on_end(self, result: TrainResult | None) -> None:
        """Close the file, if it was opened."""
        if self._file is not None:
            self._file.close()
            self._file = None


class JsonLines(StepLines):
    """Appends every record and validation to ``metrics.jsonl``."""

    def __init__(self) -> None:
        super().__init__(METRICS_FILE)

    def on_step(self, info: StepInfo) -> None:
        """Write the record, when there is one."""
        if info.record is not None:
            self.write({"kind": "train", "step": info.step, **info.record})

    def on_validation(self, info: ValidationInfo) -> None:
        """Write the validation metrics."""
        self.write({"kind": "validation", "step": info.step, "seconds": info.seconds, **info.metrics})


class TensorBoard:
    """Writes the same numbers as TensorBoard events to the run's ``tensorboard`` folder."""

    def __init__(self) -> None:
        self._writer: Any = None

    def on_start(self, info: StartInfo) -> None:
        """Open the event file; what it showed beyond the resumed step is hidden."""
        from torch.utils.tensorboard import SummaryWriter  # half a second to import

        self._writer = SummaryWriter(str(info.folder / "tensorboard"), purge_step=info.first_step + 1)

    def on_step(self, info: StepInfo) -> None:
        """Write the record, when there is one."""
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
    """The records of a ``metrics.jsonl``, without a last line that is not whole.

    Raises:
        UserError: another line is not.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(parse_json(line))
        except ValueError as error:
            if number < len(lines):
                raise UserError(
                    f"{path}: line {number} is damaged ({error}); mend it, or move the file away to begin another"
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

    At the start nothing is lost yet, so an error there ends the run: a folder that cannot be written for one. A
    library that is not installed only leaves its callback out.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = list(callbacks)
        self._told: set[int] = set()

    def start(self, info: StartInfo) -> None:
        """The run is about to begin.

        Raises:
            Exception: what a callback raises, but for an ImportError.
        """
        for callback in [*self._callbacks]:
            try:
                callback.on_start(info)
            except ImportError as error:
                self._tell(callback, error)
                self._callbacks.remove(callback)

    def step(self, info: StepInfo) -> None:
        """A step is done."""
        self._call(lambda callback: callback.on_step(info))

    def validation(self, info: ValidationInfo) -> None:
        """A validation is done."""
        self._call(lambda callback: callback.on_validation(info))

    def end(self, result: TrainResult | None) -> None:
        """The run has ended; `result` is None after an error, which no error of a callback may hide."""
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
            "%s failed (%s); the run goes on, and later errors of this kind are not shown",
            type(callback).__name__,
            " ".join(what.split()),
        )
