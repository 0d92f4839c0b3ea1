"""The curves of a run as one picture: losses and their parts, accuracies, scores, the learning rate."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precis.files import replacing
from precis.training.callbacks import (
    METRICS_FILE,
    StartInfo,
    StepInfo,
    TrainResult,
    ValidationInfo,
    read_metrics,
)

CURVES_FILE = "curves.png"
_COLUMNS = 4  # panels side by side
_SHARE = 20  # of the time at most one part in so many is spent drawing
_LOSSES = ("nll", "mlm", "rtd", "csp")
_ACCURACIES = ("accuracy", "baseline", "recall")
_NO_CURVE = {"kind", "step", "seconds", "epoch", "gradient_norm", "skipped", "tokens_per_second", "tokens"}


class Curves:
    """Draws ``curves.png`` from ``metrics.jsonl`` after validations and at the end; comes after `JsonLines`.

    A picture takes about a second, so that one is left out where drawing would take more than a twentieth of the time.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._best: int | None = None
        self._not_before = 0.0

    def on_start(self, info: StartInfo) -> None:
        """Remember the run folder."""
        self._folder = info.folder

    def on_step(self, info: StepInfo) -> None:
        """Nothing: drawing takes a fraction of a second."""

    def on_validation(self, info: ValidationInfo) -> None:
        """Draw."""
        self._best = info.best_step
        if time.monotonic() >= self._not_before:
            self._draw()

    def on_end(self, result: TrainResult | None) -> None:
        """Draw."""
        self._best = self._best if result is None else result.best_step
        self._draw()

    def _draw(self) -> None:
        began = time.monotonic()
        if self._folder is not None and (self._folder / METRICS_FILE).exists():
            draw_curves(
                read_metrics(self._folder / METRICS_FILE), self._folder / CURVES_FILE, best=self._best
            )
        self._not_before = time.monotonic() + _SHARE * (time.monotonic() - began)


def draw_curves(records: Sequence[dict[str, Any]], path: Path, *, best: int | None = None) -> None:
    """Draw the records of a ``metrics.jsonl`` to a PNG file, with a line at the step of the best checkpoint; nothing
    when there are none.
    """
    from matplotlib.figure import Figure  # not pyplot: no display, no global state; slow to import

    training = [r for r in records if r["kind"] == "train"]
    validation = [r for r in records if r["kind"] == "validation"]
    if not records:
        return
    panels = _panels({name for r in records for name in r} - _NO_CURVE)
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4 * columns, 3.6 * rows), layout="constrained")
    every = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in every[len(panels) :]:
        axes.remove()
    for axes, (title, names) in zip(every, panels, strict=False):
        _plot(axes, training, names, "training", style="-")
        _plot(axes, validation, names, "validation", style="o-")
        if best is not None:
            axes.axvline(best, color="0.6", linestyle="--", linewidth=1, label=f"best, step {best}")
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:  # none where nothing was finite
            axes.legend()
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=110)


def _panels(names: set[str]) -> list[tuple[str, list[str]]]:
    """What is drawn together: things of one scale. Each part of a loss that has several is a panel of its own."""
    parts = [name for name in _LOSSES if name in names and name != "nll"]
    sets = sorted(name for name in names if name.startswith("loss/"))  # of a mixture
    panels: list[tuple[str, list[str]]] = [("loss per target", ["loss", "nll"]), ("loss of each set", sets)]
    panels += [(name.upper(), [name]) for name in parts]
    # Accuracy lies in 0..1 and scores in 0..100: on one axis the former would be a line at the bottom.
    detection = ["rtd_accuracy", "rtd_baseline"]  # their difference is small and is what counts
    accuracies = sorted(name for name in names if name.endswith(_ACCURACIES) and name not in detection)
    scores = sorted(names - {"loss", "learning_rate", *_LOSSES, *sets, *detection, *accuracies})
    panels += [("RTD accuracy", detection), ("accuracy", accuracies), ("score", scores)]
    panels += [("learning rate", ["learning_rate"])]
    return [(title, shown) for title, shown in panels if names.intersection(shown)]


def _plot(
    axes: Any, records: Sequence[dict[str, Any]], names: Sequence[str], label: str, *, style: str
) -> None:
    for name in names:
        points = [(r["step"], r[name]) for r in records if r.get(name) is not None]
        if points:
            marks = style if len(points) > 1 else "o"  # a line of one point would not be seen
            axes.plot(*zip(*points, strict=True), marks, markersize=3, label=f"{label} {name}".strip())
