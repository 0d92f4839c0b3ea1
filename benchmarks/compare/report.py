"""A benchmark's results for people (a table, a plot) and for the next run (JSON)."""

import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.compare.comparisons import Bench, Figure, Ratio, ratios, size_of
from benchmarks.compare.growth import growths, marginal_costs
from benchmarks.compare.results import Measured, Results
from precis.phases.output_folders import writing_to
from precis.storage.atomic import replacing, write_file


def to_json(
    bench: Bench, results: Results, *, machine: Mapping[str, Any], whole: bool = True
) -> dict[str, Any]:
    """Return all results as JSON values: the machine, every sample, the ratios, the exponents.

    Args:
        machine: result of `benchmarks.compare.machine.describe` before the first measurement.
        whole: False: cells are still to come.
    """
    return {
        "bench": bench.name,
        "whole": whole,
        "machine": dict(machine),
        "settings": results.settings.to_dict(),
        "measured": [_measured(m, results, _tokens(bench, m.cell)) for m in results.measured],
        "left_out": [list(entry) for entry in results.left_out],
        "failed": [{**asdict(failure), "log": list(failure.log)} for failure in results.failed],
        "ratios": [ratio.to_json() for ratio in ratios(bench, results)],
        "growth": [
            {
                "contender": g.contender,
                "figure": g.figure.value,
                "exponent": round(g.exponent, 2),
                "tokens": [g.first, g.last],
            }
            for g in growths(bench, results)
        ],
        "marginal": [
            {
                "cells": [cost.cells.shorter, cost.cells.longer],
                "ours": cost.ours,
                "theirs": cost.cells.theirs,
                "ratio": _digits(cost.ratio),
            }
            for cost in marginal_costs(bench, results)
        ],
    }


def _tokens(bench: Bench, cell: str) -> int | None:
    return next(c.tokens for c in bench.cells if cell in c.rows)


def _tokens_per_second(measured: Measured, tokens: int) -> float:
    return tokens / statistics.median(sample.wall for sample in measured.samples)


def _measured(measured: Measured, results: Results, tokens: int | None) -> dict[str, Any]:
    walls = sorted(sample.wall for sample in measured.samples)
    memory = measured.memory
    return {
        "cell": measured.cell,
        "contender": measured.contender,
        "ms": _digits(1000 * statistics.median(walls)),
        "ms_low": _digits(1000 * walls[0]),
        "ms_high": _digits(1000 * walls[-1]),
        "cpu_ms": _digits(1000 * statistics.median(s.cpu for s in measured.samples)),
        "tokens_per_second": None if tokens is None else _digits(_tokens_per_second(measured, tokens)),
        "loaded": loaded(measured, results),
        "tensors_mb": _digits(memory.tensors_mb) if memory is not None else None,
        "process_added_mb": _digits(memory.added_mb) if memory is not None else None,
        "process_mb": _digits(memory.process_mb) if memory is not None else None,
        "samples": [
            {
                "ms": _digits(1000 * s.wall),
                "cpu_ms": _digits(1000 * s.cpu),
                "foreign_cpus": _digits(s.foreign),
            }
            for s in measured.samples
        ],
    }


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def loaded(measured: Measured, results: Results) -> int:
    """Count the samples during which other processes used more CPUs than the settings call quiet."""
    return sum(sample.is_loaded(results.settings.quiet) for sample in measured.samples)


def times_table(bench: Bench, results: Results) -> Table:
    """Build the table of milliseconds and megabytes of every contender in every cell.

    It has tokens a second if cells count tokens.
    """
    table = Table(title=f"{bench.name}: a pass, {results.settings.threads} threads")
    counted = any(cell.tokens is not None for cell in bench.cells)
    rate = ("tokens/s",) if counted else ()
    for head in (
        "cell",
        "contender",
        "ms (low-high)",
        "CPU ms",
        *rate,
        "loaded",
        "tensors MB",
        "process +MB",
    ):
        table.add_column(head, justify="left" if head in ("cell", "contender") else "right")
    for row, tokens in ((row, cell.tokens) for cell in bench.cells for row in cell.rows):
        for number, measured in enumerate(m for m in results.measured if m.cell == row):
            walls = sorted(1000 * s.wall for s in measured.samples)
            memory = measured.memory
            table.add_row(
                row if number == 0 else "",
                measured.contender,
                f"{statistics.median(walls):.1f} ({walls[0]:.1f}-{walls[-1]:.1f})",
                f"{1000 * statistics.median(s.cpu for s in measured.samples):.1f}",
                *([_rate(measured, tokens)] if counted else []),
                f"{loaded(measured, results)}/{len(walls)}",
                _mb(memory.tensors_mb if memory is not None else None),
                _mb(memory.added_mb if memory is not None else None),
            )
    return table


def _mb(size: float | None) -> str:
    return "" if size is None else f"{size:.0f}"


def _rate(measured: Measured, tokens: int | None) -> str:
    return "" if tokens is None else f"{_tokens_per_second(measured, tokens):,.0f}"


def ratios_table(found: list[Ratio]) -> Table:
    """Build the table of ratios with their spread, goals and verdicts."""
    table = Table(title="ratios (above 1: we are faster or smaller)")
    for head in ("comparison", "ratio", "rounds", "CPU", "goal", ""):
        table.add_column(head, justify="left" if head in ("comparison", "") else "right")
    for ratio in found:
        spread = f"{ratio.low:.2f}-{ratio.high:.2f}" if ratio.low != ratio.high else ""
        table.add_row(
            ratio.name,
            f"{ratio.value:.2f}",
            spread,
            f"{ratio.cpu:.2f}" if ratio.cpu is not None else "",
            ", ".join(f"{goal:.3g}" for goal in ratio.goals),
            ratio.verdict,
        )
    return table


def write_plot(bench: Bench, results: Results, path: Path) -> None:
    """Plot the time and tensors' memory of every contender over the cells, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 5), constrained_layout=True)
    cells = [row for cell in bench.cells for row in cell.rows]
    for contender in bench.contenders:
        found = [m for cell in cells if (m := results.of(cell, contender.name)) is not None]
        places = [cells.index(m.cell) for m in found]
        axes[0].plot(
            places,
            [1000 * statistics.median(s.wall for s in m.samples) for m in found],
            marker="o",
            linestyle="none",
            label=contender.name,
        )
        sizes = [size_of(m, Figure.tensors) for m in found]
        axes[1].plot(
            [place for place, mb in zip(places, sizes, strict=True) if mb is not None],
            [mb for mb in sizes if mb is not None],
            marker="o",
            linestyle="none",
            label=contender.name,
        )
    for axis, title in zip(axes, ("ms a pass", f"peak MB of {Figure.tensors}"), strict=True):
        axis.set_yscale("log")
        axis.set_xticks(range(len(cells)), cells, rotation=30, ha="right")
        axis.set_title(title)
        axis.grid(alpha=0.3)
    axes[0].legend()
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
    pyplot.close(figure)


def write_json(
    bench: Bench, results: Results, folder: Path, *, machine: Mapping[str, Any], whole: bool = True
) -> dict[str, Any]:
    """Write `bench-NAME.json` to a folder in place of an earlier one, and return its content."""
    content = to_json(bench, results, machine=machine, whole=whole)
    with writing_to(folder, doing="writing benchmarks to", is_ours=is_ours):
        write_file(folder / f"bench-{bench.name}.json", json.dumps(content, indent=1) + "\n")
    return content


def is_ours(folder: Path) -> bool:
    """Test whether a folder contains only files of benchmarks, as earlier versions left it."""
    return all(re.fullmatch(r"bench-.*\.(json|png)", path.name) for path in folder.iterdir())


def write(bench: Bench, results: Results, folder: Path, *, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Write `bench-NAME.json` and `bench-NAME.png` to a folder, and return the content of the first."""
    content = write_json(bench, results, folder, machine=machine)
    write_plot(bench, results, folder / f"bench-{bench.name}.png")
    return content
