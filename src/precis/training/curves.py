"""The curves of a run as one picture: losses, the other validation metrics, the learning rate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precis.training.callbacks import (
    METRICS_FILE,
    StartInfo,
    StepInfo,
    TrainResult,
    ValidationInfo,
    read_metrics,
)

CURVES_FILE = "curves.png"
_LOSSES = ("loss", "nll")
_NO_CURVE = {"kind", "step", "seconds"}


class Curves:
    """Draws ``curves.png`` from ``metrics.jsonl`` after every validation and at the end; comes after
    `JsonLines`.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def on_start(self, info: StartInfo) -> None:
        """Remember the run folder."""
        self._folder = info.folder

    def on_step(self, info: StepInfo) -> None:
        """Nothing: drawing takes a fraction of a second."""

    def on_validation(self, info: ValidationInfo) -> None:
        """Draw."""
        self._draw()

    def on_end(self, result: TrainResult | None) -> None:
        """Draw."""
        self._draw()

    def _draw(self) -> None:
        if self._folder is not None and (self._folder / METRICS_FILE).exists():
            draw_curves(read_metrics(self._folder / METRICS_FILE), self._folder / CURVES_FILE)


def draw_curves(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the records of a ``metrics.jsonl`` to a PNG file; nothing when there are none."""
    from matplotlib.figure import Figure  # not pyplot: no display, no global state; slow to import

    training = [r for r in records if r["kind"] == "train"]
    validation = [r for r in records if r["kind"] == "validation"]
    if not records:
        return
    shown = sorted({name for r in validation for name in r} - _NO_CURVE)
    losses = [name for name in shown if name in _LOSSES]
    # Accuracy lies in 0..1 and scores in 0..100: on one axis the former would be a line at the bottom.
    scores = [name for name in shown if name not in {*_LOSSES, "accuracy"}] or ["accuracy"]
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    loss_axes, score_axes, rate_axes = figure.subplots(1, 3)
    _plot(loss_axes, training, ["loss"], "training", style="-")
    _plot(loss_axes, validation, losses, "validation", style="o-")
    _plot(score_axes, validation, scores, "validation", style="o-")
    _plot(rate_axes, training, ["learning_rate"], "", style="-")
    for axes, title in (
        (loss_axes, "loss per target"),
        (score_axes, "validation"),
        (rate_axes, "learning rate"),
    ):
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend()
    temporary = path.with_name(f".{path.name}")
    figure.savefig(temporary, format="png", dpi=110)
    temporary.replace(path)


def _plot(
    axes: Any, records: Sequence[dict[str, Any]], names: Sequence[str], label: str, *, style: str
) -> None:
    for name in names:
        points = [(r["step"], r[name]) for r in records if r.get(name) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), style, markersize=3, label=f"{label} {name}".strip())
