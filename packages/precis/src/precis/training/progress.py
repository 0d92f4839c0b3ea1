"""The display of a run's progress: a bar on a terminal, occasional lines elsewhere."""

import sys
import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from precis.training.callbacks import StartInfo, StepInfo, TrainResult, ValidationInfo
from precis.training.validation import is_bound
from precis_text.terminal_text import escape_line

_SMOOTHING = 0.9  # of the displayed loss and speed; files contain the raw values


class ProgressBar:
    """A bar with loss, rate, tokens/s and time left. Without a terminal: one line per metric record."""

    def __init__(self, *, console: Console | None = None) -> None:
        """Write to `console`, by default standard error, so that standard output stays clean."""
        self._console = console or Console(file=sys.stderr)
        self._bar: Progress | None = None
        self._task: TaskID
        self._loss: float | None = None
        self._speed: float | None = None
        self._began: float
        self._first_step: int

    def on_start(self, info: StartInfo) -> None:
        """Print the parameters and devices, and start the bar."""
        if info.resumed_from is not None:
            self._print(f"resuming from {info.resumed_from}")
        trained = f"{info.trainable_parameters:,} of {info.parameters:,} parameters"
        where = info.device if info.processes == 1 else f"{info.processes} processes, {info.device}"
        if info.first_step < info.total_steps:
            self._print(f"training {trained} on {where}: steps {info.first_step + 1} to {info.total_steps}")
        self._began, self._first_step = time.perf_counter(), info.first_step
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("step"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._bar.start()
            self._task = self._bar.add_task(
                "train", total=info.total_steps, completed=info.first_step, figures=""
            )

    def on_step(self, info: StepInfo) -> None:
        """Advance the bar, or print the record; report the compile time."""
        if info.compiling:
            self._print(f"compiled in {info.compiling:.0f} s at step {info.step}")
        if not info.skipped:
            self._loss = _smooth(self._loss, info.loss)
        self._speed = _smooth(self._speed, info.tokens / max(info.seconds - info.compiling, 1e-9))
        if self._bar is not None:
            loss = f"loss {self._loss or 0:.3f}"
            figures = f"{loss}  rate {info.learning_rate:.1e}  {self._speed:,.0f} tokens/s"
            self._bar.update(self._task, completed=info.step, figures=figures)
        elif info.record is not None:
            self._print(self._line(info, info.record))

    def on_validation(self, info: ValidationInfo) -> None:
        """Print the validation's metrics."""
        shown = {name: value for name, value in info.metrics.items() if not is_bound(name)}
        figures = "  ".join(f"{name} {value:.3f}" for name, value in shown.items())
        best = "  (best so far)" if info.improved else ""
        self._print(f"validation at step {info.step}: {figures}{best}  [{info.seconds:.0f} s]")

    def on_end(self, result: TrainResult | None) -> None:
        """Remove the bar and print the result."""
        if self._bar is not None:
            self._bar.stop()
        if result is not None:
            early = "stopped early" if result.stopped_early else "done"
            how = "interrupted" if result.interrupted else early
            best = f"; best at step {result.best_step}: {result.best_metric:.3f}" if result.best_step else ""
            self._print(f"{how} at step {result.step} of {result.total_steps}{best}")

    def _line(self, info: StepInfo, record: Mapping[str, float]) -> str:
        each = (time.perf_counter() - self._began) / (info.step - self._first_step)
        return (
            f"step {info.step}/{info.total_steps}  loss {record.get('loss', float('nan')):.3f}  "
            f"rate {info.learning_rate:.1e}  {record['tokens_per_second']:,.0f} tokens/s  "
            f"{_duration(each * (info.total_steps - info.step))} left"
        )

    def _print(self, text: str) -> None:
        self._console.print(escape_line(text), markup=False, highlight=False, soft_wrap=True)


def _smooth(old: float | None, new: float) -> float:
    return new if old is None else _SMOOTHING * old + (1 - _SMOOTHING) * new


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
