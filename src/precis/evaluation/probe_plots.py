"""Probes as pictures, and the same numbers as CSV. Layers are counted from 1, as in the paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from precis.evaluation.probe_curves import Curve
from precis.evaluation.probes import MOST, AttentionMap, Spectrum
from precis.files import replacing, write_file

Maps = Mapping[int, AttentionMap]
"""By layer, from 1."""

_WIDTH = 4  # panels side by side
_DPI = 130
_MARKERS = "osD^vP*X"


def draw_maps(maps: Maps, file: Path, *, title: str, queries: str, keys: str) -> None:
    """Heat maps of layers beside each other (Figures 1 and 6), on one colour scale.

    Args:
        title: what they are of.
        queries, keys: what the axes count: "source token".
    """
    columns = min(_WIDTH, len(maps))
    rows = -(-len(maps) // columns)
    figure = Figure(figsize=(3.4 * columns + 0.9, 3.1 * rows + 0.7), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    # A few strong columns would leave the rest black: a square-root scale, and the strongest thousandth saturated.
    top = max(float(np.quantile(m.weights, 0.999)) for m in maps.values())
    norm = PowerNorm(0.5, vmin=0.0, vmax=max(top, 1e-6))
    image = None
    for axes, (layer, found) in zip(panels, maps.items(), strict=False):
        image = _heat(axes, found, norm)
        share = f", prefix {found.prefix_share:.0%}" if found.prefix else ""
        axes.set_title(f"layer {layer}{share}", fontsize=10)
    for axes in list(figure.axes)[len(maps) :]:
        axes.remove()
    assert image is not None
    figure.colorbar(image, ax=figure.axes, extend="max", label="mean attention weight", shrink=0.9)
    figure.suptitle(title, fontsize=11)
    figure.supylabel(f"query ({queries})", fontsize=10)
    prefixed = any(found.prefix for found in maps.values())
    figure.supxlabel(f"key ({'prefix columns | ' if prefixed else ''}{keys})", fontsize=10)
    _save(figure, file)


def _heat(axes: Any, found: AttentionMap, norm: PowerNorm) -> Any:
    rows, columns = found.weights.shape
    # the first input token is 1; prefix columns stand left of it
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


def draw_shares(shares: Mapping[str, Mapping[int, float]], file: Path, *, title: str) -> None:
    """The share of attention on the prefix over the layers, a line a site."""
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for (site, values), marker in zip(shares.items(), _MARKERS, strict=False):
        percents = [100 * value for value in values.values()]
        axes.plot(list(values), percents, marker=marker, markersize=5, label=site)
    axes.set(title=title, xlabel="layer", ylabel="attention on prefix columns (%)")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(title="attention")
    _save(figure, file)


def draw_spectra(panels: Mapping[str, Mapping[str, Spectrum]], file: Path, *, title: str) -> None:
    """Cumulative spectra (Figure 7): a panel for lower and for upper layers, a line an adapter.

    Args:
        panels: panel title -> adapter -> spectrum; one without matrices is named and not drawn.
    """
    figure = Figure(figsize=(4.6 * len(panels), 4.0), layout="constrained")
    every = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, spectra) in zip(every, panels.items(), strict=True):
        for number, (adapter, found) in enumerate(spectra.items()):
            _spectrum(axes, adapter, found, number)
        axes.axhline(MOST, color="grey", linewidth=0.8, linestyle=":")
        axes.set(title=name, xlabel="index of singular value, largest first")
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize=8)
    every[0].set_ylabel("cumulative singular values (share of their sum)")
    figure.suptitle(title, fontsize=11)
    _save(figure, file)


def _spectrum(axes: Any, adapter: str, found: Spectrum, number: int) -> None:
    """Lines often lie on each other: open markers of falling size, so that those below are seen."""
    if not found.matrices:
        axes.plot([], [], " ", label=f"{adapter} (no weight)")
        return
    index = np.arange(1, len(found.cumulative) + 1)
    axes.plot(
        index,
        found.cumulative,
        color=f"C{number % 10}",
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=max(3, 10 - 3 * number),
        markerfacecolor="none",
        markevery=max(1, len(index) // 12),
        linewidth=max(1.0, 2.6 - 0.8 * number),
        label=f"{adapter} ({MOST:.0%} at {found.rank})",
    )


def draw_curves(curves: Sequence[Sequence[Curve]], file: Path, *, xlabel: str, logarithmic: bool) -> None:
    """Scores over an axis (Figures 3, 4 and 8): a panel a metric, a line a method, bars for intervals.

    Args:
        curves: those of each metric.
        logarithmic: whether places on the x-axis are ratios; then each that occurs has a tick.
    """
    figure = Figure(figsize=(5.0 * len(curves), 3.9), layout="constrained")
    for axes, lines in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        for number, line in enumerate(lines):
            _line(axes, line, color=f"C{number % 10}", marker=_MARKERS[number % len(_MARKERS)])
        places = sorted({p.x for line in lines for p in line.points if p.x is not None})
        if logarithmic and places:
            axes.set_xscale("log")
            axes.minorticks_off()
        if len(places) <= 24:
            axes.set_xticks(places, labels=[f"{x:g}" for x in places])
        axes.set(xlabel=xlabel, ylabel=f"{lines[0].metric} (0 to 100)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    if any(p.low is not None for lines in curves for line in lines for p in line.points if not line.is_level):
        figure.suptitle("bars: the interval of a single run, the range of several", fontsize=8)
    _save(figure, file)


def _line(axes: Any, line: Curve, *, color: str, marker: str) -> None:
    if line.is_level:
        axes.axhline(line.points[0].mean, color=color, linestyle="--", linewidth=1.2, label=line.line)
        return
    axes.plot(
        [p.x for p in line.points],
        [p.mean for p in line.points],
        color=color,
        marker=marker,
        markersize=5,
        label=line.line,
    )
    for p in line.points:
        if p.low is not None and p.high is not None:  # a vertical bar from low to high
            axes.plot([p.x, p.x], [p.low, p.high], color=color, alpha=0.5, linewidth=1.5)


def _save(figure: Figure, file: Path) -> None:
    """Draw into a file that replaces the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        figure.savefig(stream, format="png", dpi=_DPI)


def write_table(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV file, written beside its place and renamed; None is an empty cell."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_file(file, content.getvalue())


def write_map(file: Path, found: AttentionMap) -> None:
    """A matrix as CSV: a row a query with the documents it is the mean of; columns p1.. of prefix, k1.. of input."""
    inputs = found.weights.shape[1] - found.prefix
    names = [f"p{n + 1}" for n in range(found.prefix)] + [f"k{n + 1}" for n in range(inputs)]
    rows = (
        [query + 1, int(documents), *(f"{weight:.6g}" for weight in weights)]
        for query, (documents, weights) in enumerate(zip(found.documents, found.weights, strict=True))
    )
    write_table(file, ["query", "documents", *names], rows)
