"""The curves of a run in one plot: losses and their parts, accuracies, scores, the learning rate."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from precis.storage.atomic import replacing
from precis.training.callbacks import (
    METRICS_FILE,
    Callback,
    StartInfo,
    TrainResult,
    ValidationInfo,
    read_metrics,
)
from precis.training.validation import is_bound

CURVES_FILE = "curves.png"
_COLUMNS = 4
_SHARE = 20  # drawing takes at most one part in 20 of the time
#: Name of each part of a loss -> title and unit.
_PARTS = {
    "mlm": ("MLM loss", "nats per target"), "rtd": ("RTD loss", "nats per target"),
    "csp": ("CSP loss", "nats per target"), "choice": ("Choice loss", "nats"),
    "length": ("Length loss", "squared error of log words"),
}  # fmt: skip
_ACCURACIES = ("accuracy", "baseline", "recall", "first")
_NO_CURVE = {"kind", "step", "seconds", "epoch", "gradient_norm", "skipped", "tokens_per_second", "tokens"}


class Curves(Callback):
    """A callback that plots ``metrics.jsonl`` to ``curves.png`` after validations and at the end, after `JsonLines`.

    A plot takes about a second, so it is skipped if drawing would take more than a twentieth of the time.
    """

    def __init__(self, *, kept: Literal["best", "last"] = "best") -> None:
        """Mark the step whose weights the run keeps: its best validation or its last one."""
        self._kept = kept
        self._folder: Path | None = None
        self._marked: int | None = None
        self._not_before = 0.0

    def on_start(self, info: StartInfo) -> None:
        """Remember the run folder."""
        self._folder = info.folder

    def on_validation(self, info: ValidationInfo) -> None:
        """Draw the plot, unless the last one was too recent."""
        self._marked = info.best_step if self._kept == "best" else info.step
        if time.monotonic() >= self._not_before:
            self._draw()

    def on_end(self, result: TrainResult | None) -> None:
        """Draw the final plot."""
        if result is not None:
            self._marked = result.best_step if self._kept == "best" else result.step
        self._draw()

    def _draw(self) -> None:
        began = time.monotonic()
        if self._folder is not None and (self._folder / METRICS_FILE).exists():
            draw_curves(
                read_metrics(self._folder / METRICS_FILE), self._folder / CURVES_FILE, kept=self._marked
            )
        self._not_before = time.monotonic() + _SHARE * (time.monotonic() - began)


def draw_curves(records: Sequence[dict[str, Any]], path: Path, *, kept: int | None = None) -> None:
    """Plot the records of a ``metrics.jsonl`` to a PNG file; do nothing if there are none.

    Args:
        kept: the step whose weights are kept; a dashed line marks it, and a ring each validation at that step.
    """
    from matplotlib.figure import Figure  # not pyplot: no display, no global state; slow to import
    from matplotlib.ticker import MaxNLocator

    training = [r for r in records if r["kind"] == "train"]
    validation = [r for r in records if r["kind"] == "validation"]
    if not records:
        return
    known = {name for r in records for name in r if not is_bound(name)} - _NO_CURVE
    panels = _panels(known)
    rows = -(-len(panels) // _COLUMNS)
    columns = -(-len(panels) // rows)
    figure = Figure(figsize=(4.4 * columns, 3.8 * rows), layout="constrained")
    figure.suptitle(f"{path.resolve().parent.name} (dots: validation)")
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for (title, unit, names), axes in zip(
        panels, grid, strict=False
    ):  # in this order, so that unused axes stay in `grid`
        many = len(known.intersection(names)) > 1
        _plot(axes, training, names, "training", many=many, style="-")
        _plot(axes, validation, names, "validation", many=many, style="o-")
        if kept is not None:
            axes.axvline(kept, color="0.4", linestyle="--", linewidth=1, label=f"kept: step {kept:,}")
            _plot(axes, [r for r in validation if r["step"] == kept], names, None, many=many, style="ko")
        axes.set(title=title, xlabel="optimizer step", ylabel=unit)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:  # none if no value was finite
            axes.legend(fontsize="small")
    for axes in grid:
        axes.set_visible(False)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=110)


def _panels(names: set[str]) -> list[tuple[str, str, list[str]]]:
    """Return title, unit and metrics of each panel. Metrics of one scale share a panel; each part of a loss has one."""
    sets = sorted(name for name in names if name.startswith("loss/"))  # of a mixture
    # Accuracy is in 0..1 and scores in 0..100: on one axis the former would be a line at the bottom.
    detection = ["rtd_accuracy", "rtd_baseline"]  # the small difference between them matters
    accuracies = sorted(name for name in names if name.endswith(_ACCURACIES) and name not in detection)
    scores = sorted(names - {"loss", "nll", "learning_rate", *_PARTS, *sets, *detection, *accuracies})
    panels = [
        ("Loss per target", "nats", ["loss", "nll"]), ("Loss of each set", "nats per target", sets),
        *((*heading, [name]) for name, heading in _PARTS.items()),
        ("RTD accuracy", "share of tokens", detection), ("Accuracy", "share of targets", accuracies),
        ("Scores", "0 to 100", scores), ("Learning rate", "rate", ["learning_rate"]),
    ]  # fmt: skip
    return [(title, unit, shown) for title, unit, shown in panels if names.intersection(shown)]


def _plot(
    axes: Any,
    records: Sequence[dict[str, Any]],
    names: Sequence[str],
    label: str | None,
    *,
    many: bool,
    style: str,
) -> None:
    """Plot one line per metric; if there are several, each has a colour and one entry in the legend."""
    named = axes.get_legend_handles_labels()[1]
    for number, name in enumerate(names):
        points = [(r["step"], r[name]) for r in records if r.get(name) is not None]
        if points:
            steps, values = zip(*points, strict=True)
            told = None if label is None or name in named else name if many else label
            ring = {"markerfacecolor": "none", "markersize": 7} if label is None else {"markersize": 3}
            colour = {"color": f"C{number % 10}"} if many and label is not None else {}
            shown = "." if style == "-" and len(points) == 1 else style  # a line needs two points
            axes.plot(steps, values, shown, label=told, **ring, **colour)
