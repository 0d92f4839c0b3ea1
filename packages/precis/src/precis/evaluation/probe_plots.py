"""Plots of probes: attention maps, spectra of prefixes, and scores of many runs as curves.

Layers are counted from 1, as in "Discourse-Aware Prompt Design for Text Generation". Its Figures 4 and 8 average over
tasks; seeds are repeated runs of one task.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from precis.evaluation.probes import MOST, AttentionMap, Spectrum
from precis.evaluation.score_report import title_of
from precis.storage.atomic import replacing
from precis_text.config import nearest
from precis_text.errors import UserError

Maps = Mapping[int, AttentionMap]
"""Attention maps by layer, from 1."""

_WIDTH = 14.0  # most inches of panels next to each other
_DPI = 130
_MARKERS = "osD^vP*X"
_MOST_LABELS = 64  # most tokens labelled on an axis; beyond that, evenly spaced ones
_LABEL = 0.13  # inches of a token's label


@final
@dataclass(frozen=True)
class ScoreInterval:
    """A score with its interval, if known."""

    mean: float
    low: float | None = None
    high: float | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """The scores of one run.

    Attributes:
        line: the line that it belongs to: a method.
        x: its position on the x-axis; if None, it is a reference level, the same for all x.
        metrics: scores by name.
        task: runs of different tasks are averaged; runs of the same are repetitions.
        name: for messages.
    """

    line: str
    x: float | None
    metrics: Mapping[str, ScoreInterval]
    task: str = ""
    name: str = ""


@final
@dataclass(frozen=True)
class Point:
    """A point of a curve.

    Attributes:
        low, high: a task's interval if it has one run, else the lowest and the highest mean. Like the mean, they are
            averaged over tasks. Both are None for a single run without interval.
        runs: number of runs in the mean.
    """

    x: float | None
    mean: float
    low: float | None
    high: float | None
    runs: int


@final
@dataclass(frozen=True)
class Curve:
    """One line of one metric, with points from the left; a level (x is None) is a separate curve."""

    line: str
    metric: str
    points: tuple[Point, ...]

    @property
    def is_level(self) -> bool:
        """True if the curve is the same for all x."""
        return self.points[0].x is None


def curves(measured: Sequence[Measured], metric: str) -> tuple[Curve, ...]:
    """Build the lines of one metric, in order of first appearance.

    Args:
        measured: runs, at least one.

    Raises:
        UserError: a run lacks the metric, or the points are averages of different tasks.
    """
    for run in measured:
        if metric not in run.metrics:
            raise UserError(f"{run.name}: lacks the score {metric!r}{nearest(metric, run.metrics)}")
    tasks = {run.task for run in measured}
    places: dict[tuple[str, bool], dict[float | None, list[Measured]]] = {}
    for run in measured:
        places.setdefault((run.line, run.x is None), {}).setdefault(run.x, []).append(run)
    for (line, _), found in places.items():
        for x, runs in found.items():
            missing = tasks - {run.task for run in runs}  # or a curve would show the tasks and not the method
            if missing:
                where = line if x is None else f"{line} at {x:g}"
                raise UserError(
                    f"{where} lacks runs of {', '.join(sorted(missing)) or 'an unnamed task'}, which other points "
                    "average in; add them, or plot the tasks separately"
                )
    return tuple(
        Curve(line, metric, tuple(_point(x, found[x], metric) for x in sorted(found, key=lambda x: x or 0.0)))
        for (line, _), found in places.items()
    )


def _point(x: float | None, runs: Sequence[Measured], metric: str) -> Point:
    by_task: dict[str, list[ScoreInterval]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run.metrics[metric])
    parts = [_one_task(found) for found in by_task.values()]
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    known = len(lows) == len(highs) == len(parts)
    return Point(
        x,
        mean=_mean([part.mean for part in parts]),
        low=_mean(lows) if known else None,
        high=_mean(highs) if known else None,
        runs=len(runs),
    )


def _one_task(found: Sequence[ScoreInterval]) -> ScoreInterval:
    if len(found) == 1:
        return found[0]
    means = [estimate.mean for estimate in found]
    return ScoreInterval(_mean(means), min(means), max(means))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def draw_maps(
    maps: Maps,
    file: Path,
    *,
    title: str,
    queries: str,
    keys: str,
    query_tokens: Sequence[str] = (),
    key_tokens: Sequence[str] = (),
) -> None:
    """Draw heat maps of layers next to each other (Figures 1 and 6), on one colour scale.

    Args:
        title: the title of the figure.
        queries, keys: the units of the axes: "source token".
        query_tokens, key_tokens: token labels for the axes; if empty, they show positions.
    """
    width = max(3.4, _LABEL * min(len(key_tokens), _MOST_LABELS) + 1.0)
    height = max(3.1, _LABEL * min(len(query_tokens), _MOST_LABELS) + 1.0)
    columns = min(len(maps), max(1, int(_WIDTH // width)))
    rows = -(-len(maps) // columns)
    figure = Figure(figsize=(width * columns + 0.9, height * rows + 0.7), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    # A few strong columns would leave the rest black: use a square-root scale and saturate the strongest thousandth.
    top = max(float(np.quantile(m.weights, 0.999)) for m in maps.values())
    norm = PowerNorm(0.5, vmin=0.0, vmax=max(top, 1e-6))
    image = None
    for axes, (layer, found) in zip(panels, maps.items(), strict=False):
        image = _heat(axes, found, norm)
        _name_tokens(axes, found, query_tokens, key_tokens)
        share = f", prefix {found.prefix_share:.0%}" if found.prefix else ""
        axes.set_title(f"layer {layer}{share}", fontsize=10)
    for axes in list(figure.axes)[len(maps) :]:
        axes.remove()
    assert image is not None
    figure.colorbar(image, ax=figure.axes, extend="max", label="mean attention weight", shrink=0.9)
    figure.supylabel(f"query ({queries})", fontsize=10)
    prefixed = any(found.prefix for found in maps.values())
    figure.supxlabel(f"key ({'prefix columns | ' if prefixed else ''}{keys})", fontsize=10)
    _head(figure, title)
    _save(figure, file)


def _heat(axes: Any, found: AttentionMap, norm: PowerNorm) -> Any:
    rows, columns = found.weights.shape
    # the first input token is 1; prefix columns are left of it
    extent = (0.5 - found.prefix, columns - found.prefix + 0.5, rows + 0.5, 0.5)
    image = axes.imshow(
        found.weights, norm=norm, aspect="auto", extent=extent, interpolation="nearest", cmap="viridis"
    )
    if found.prefix:
        axes.axvline(0.5, color="white", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(lambda x, _: f"p{x + found.prefix:.0f}" if x < 0.5 else f"{x:.0f}")
    axes.tick_params(labelsize=8)
    return image


def _name_tokens(
    axes: Any, found: AttentionMap, query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> None:
    """Label tokens along the axes; prefix columns keep their numbers."""
    if query_tokens:
        places = _evenly(len(query_tokens))
        axes.set_yticks([n + 1 for n in places], [_plain(query_tokens[n]) for n in places], fontsize=7)
    if key_tokens:
        places = _evenly(len(key_tokens))
        prefix = sorted({1, found.prefix}) if found.prefix else []
        ticks = [*(n - found.prefix for n in prefix), *(n + 1 for n in places)]
        names = [*(f"p{n}" for n in prefix), *(_plain(key_tokens[n]) for n in places)]
        axes.set_xticks(ticks, names, rotation=90, fontsize=7)


def _evenly(count: int) -> range:
    return range(0, count, -(-count // _MOST_LABELS))


def draw_shares(shares: Mapping[str, Mapping[int, float]], file: Path, *, title: str) -> None:
    """Draw the share of attention on the prefix over the layers, one line per site."""
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for (site, values), marker in zip(shares.items(), _MARKERS, strict=False):
        percents = [100 * value for value in values.values()]
        axes.plot(list(values), percents, marker=marker, markersize=5, label=site)
    axes.set(xlabel="layer", ylabel="attention on prefix columns (%)")
    axes.set_ylim(bottom=0)
    _whole_numbers(axes, columns=2)
    _head(figure, title)
    _save(figure, file)


def draw_spectra(panels: Mapping[str, Mapping[str, Spectrum]], file: Path, *, title: str) -> None:
    """Draw cumulative spectra (Figure 7): a panel each for lower and upper layers, one line per adapter.

    Args:
        panels: panel title -> adapter -> spectrum; one without matrices is only named in the legend.
    """
    figure = Figure(figsize=(4.6 * len(panels), 4.0), layout="constrained")
    every = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, spectra) in zip(every, panels.items(), strict=True):
        for number, (adapter, found) in enumerate(spectra.items()):
            _spectrum(axes, adapter, found, number)
        axes.axhline(MOST, color="grey", linewidth=0.8, linestyle=":")
        axes.set(title=name, xlabel="index of singular value, largest first")
        axes.set_ylim(0, 1.06)
        _whole_numbers(axes, columns=1)
    every[0].set_ylabel("cumulative singular values\n(share of their sum)")
    _head(figure, title)
    _save(figure, file)


def _whole_numbers(axes: Any, *, columns: int) -> None:
    """Format an axis of whole numbers, with a legend below."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, fontsize=8)


def _spectrum(axes: Any, adapter: str, found: Spectrum, number: int) -> None:
    """Draw a spectrum; lines often coincide, so open markers of decreasing size keep lower ones visible."""
    if not found.matrices:
        axes.plot([], [], " ", label=_plain(f"{adapter} (no weight)"))
        return
    index = np.arange(1, len(found.cumulative) + 1)
    axes.plot(
        index, found.cumulative, color=f"C{number}", marker=_MARKERS[number % len(_MARKERS)],
        markersize=max(3, 10 - 3 * number), markerfacecolor="none", markevery=max(1, len(index) // 12),
        linewidth=max(1.0, 2.6 - 0.8 * number), label=_plain(f"{adapter} ({MOST:.0%} at {found.rank})"),
    )  # fmt: skip


def draw_curves(
    curves: Sequence[Sequence[Curve]],
    file: Path,
    *,
    xlabel: str,
    logarithmic: bool,
    bars: str = "bars: the interval of a single run, the range of several",
) -> None:
    """Draw scores over an axis (Figures 3, 4 and 8): a panel per metric, a line per method, bars for intervals.

    Args:
        curves: the curves of each metric; all metrics have the same lines.
        logarithmic: whether positions on the x-axis are ratios.
        bars: the meaning of the bars.
    """
    figure = Figure(figsize=(5.0 * len(curves), 4.4), layout="constrained")
    for axes, lines in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        for number, line in enumerate(lines):
            _line(axes, line, color=f"C{number}", marker=_MARKERS[number % len(_MARKERS)])
        places = sorted({p.x for line in lines for p in line.points if p.x is not None})
        if logarithmic and places:
            axes.set_xscale("log")
            axes.minorticks_off()
        if len(places) <= 24:
            shown = _apart(places, logarithmic=logarithmic)
            axes.set_xticks(shown, labels=[f"{x:g}" for x in shown])
        metric = title_of(lines[0].metric)
        axes.set_title(_plain(metric), fontsize=10)
        axes.set(xlabel=xlabel, ylabel=_plain(f"{metric} (0 to 100)"))
        axes.grid(alpha=0.3)
    columns = 2 if len(curves) == 1 else 4
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=8)
    if any(p.low is not None for lines in curves for line in lines for p in line.points if not line.is_level):
        _head(figure, bars, size=8)
    _save(figure, file)


def _line(axes: Any, line: Curve, *, color: str, marker: str) -> None:
    if line.is_level:
        axes.axhline(line.points[0].mean, color=color, linestyle="--", linewidth=1.2, label=_plain(line.line))
        return
    axes.plot(
        [p.x for p in line.points], [p.mean for p in line.points], color=color, marker=marker, markersize=5,
        label=_plain(line.line),
    )  # fmt: skip
    for p in line.points:
        if p.low is not None and p.high is not None:  # a vertical bar from low to high
            axes.plot([p.x, p.x], [p.low, p.high], color=color, alpha=0.5, linewidth=1.5)


def _apart(places: Sequence[float], *, logarithmic: bool) -> list[float]:
    """Choose the positions whose ticks have room after the previous one."""
    where = [math.log(x) if logarithmic else x for x in places]
    room = 0.06 * (where[-1] - where[0]) if where else 0.0
    shown: list[int] = []
    for n, place in enumerate(where):
        if not shown or place - where[shown[-1]] >= room:
            shown.append(n)
    return [places[n] for n in shown]


def _head(figure: Figure, title: str, *, size: int = 11) -> None:
    """Set a title, wrapped to the width of the figure."""
    letters = int(figure.get_figwidth() * 125 / size)
    figure.suptitle(textwrap.fill(_plain(title), letters), fontsize=size)


def _plain(text: str) -> str:
    """Escape a name for matplotlib: "$" would start a formula, and "_" would hide it from a legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _save(figure: Figure, file: Path) -> None:
    """Save a figure; it replaces the old file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        figure.savefig(stream, format="png", dpi=_DPI)
