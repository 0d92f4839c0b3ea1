"""What a person reads when a training has ended: how long, how good, where the model lies, what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from precis.training import Trained


def closing_lines(
    made: Path, *, kind: str = "model", done: Trained | None = None, commands: Sequence[str] = ()
) -> list[str]:
    """The closing summary of a finished training, a line each.

    Args:
        made: what the training has left behind, a `kind`.
        done: how the training went; if None, nothing is said about time and scores.
        commands: what to type next, the most useful first.
    """
    rows = [(kind, str(made)), *([] if done is None else _figures(done))]
    rows += [("" if number else "next", command) for number, command in enumerate(commands)]
    width = max(len(name) for name, _ in rows) + 2
    return [f"{f'{name}:' if name else '':<{width}}{text}" for name, text in rows]


def _figures(done: Trained) -> Iterator[tuple[str, str]]:
    """Time and best score, each with its name."""
    result = done.result
    early = f", stopped early of {result.total_steps:,}" if result.stopped_early else ""
    yield "time", f"{_duration(result.seconds)} of training, {result.step:,} steps{early}"
    if result.best_step is None or result.best_metric is None:
        return
    other = done.kept == "last" and result.best_step != result.step
    exported = f"; exported are the last weights, of step {result.step:,}" if other else ""
    yield "best", f"{result.metric} {result.best_metric:.3f} at step {result.best_step:,}{exported}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
