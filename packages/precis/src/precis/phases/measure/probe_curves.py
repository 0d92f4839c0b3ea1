"""Plots scores of several runs over the layer of the prefix (Figure 3) or the share of the training data (4 and 8).

A run is given as

    an evaluated folder of precis tune or finetune: scores.json, there or one level below, contains the scores; the
        adapter names the layers with a prefix; settings.json records the number of training pairs;
    a .csv or .json list, one run per row, for everything else: columns line, x, task, scores (a folder or
        scores.json, relative to the list), system, or the scores, such as rougeL, rougeL_low and rougeL_high.
        Line and scores are required, and an empty x draws a level for comparison.

Layers are counted from 1, shares are in percent.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precis.evaluation.probe_plots import Curve, Measured, ScoreInterval, curves, draw_curves
from precis.phases.data.run_pairs import PairSources, examples_in_share
from precis.phases.folder_check import SETTINGS_FILE
from precis.phases.measure.probe_files import write_table
from precis.phases.output_folders import writing_to
from precis.storage.atomic import write_json
from precis.storage.model_files import find_adapter
from precis.tuning.adapter_folder import read_adapter
from precis.tuning.discourse import METHODS, USUAL, Hierarchical, Tuning
from precis.tuning.prefix import AllLayers, LowLayers, NoPrefix, SingleLayer, TopLayers
from precis_text.bounded_io import JsonError, parse_json, read_json
from precis_text.config import nearest
from precis_text.errors import UserError
from precis_text.text_files import NotTextError, read_text

SCORES_FILE = "scores.json"
FINE_TUNING = "fine-tuning"
USUAL_METRICS = ("rouge1", "rouge2", "rougeL")
_OWN_COLUMNS = ("line", "x", "task", "scores", "system")
_BOUNDS = ("_low", "_high")


@dataclass(frozen=True)
class RunFacts:
    """The record of a run folder: its adapter's settings, if it has one, and its settings.json."""

    folder: Path
    tuning: Tuning | None
    record: Mapping[str, Any]

    @property
    def method(self) -> str:
        """The paper's name of the method."""
        return FINE_TUNING if self.tuning is None else method_name(self.tuning)


@dataclass(frozen=True)
class Axis:
    """The x axis: the property in which runs differ.

    Attributes:
        label: the label, with its unit.
        place: returns a run's line and its position on the axis.
        least: the smallest position; all are above 0.
        range: the same in words.
        logarithmic: whether the scale is logarithmic.
    """

    label: str
    place: Callable[[RunFacts], tuple[str, float | None]]
    least: float
    range: str
    logarithmic: bool = False


def _by_layer(run: RunFacts) -> tuple[str, float | None]:
    prefix = None if run.tuning is None else run.tuning.prefix
    if prefix is None or isinstance(prefix, NoPrefix):
        return run.method, None
    match prefix.layers:
        case SingleLayer(index=index):
            return run.method, index + 1
        case TopLayers(count=count):
            return f"{run.method}, top {count}", None
        case LowLayers(count=count):
            return f"{run.method}, low {count}", None
        case AllLayers():
            return f"{run.method}, all layers", None


def _by_share(run: RunFacts) -> tuple[str, float | None]:
    """Return the sampled share of all pairs, counted again; two digits, so that tasks of different size align."""
    try:
        examples = run.record["identity"]["examples"]
        if examples is None:
            return run.method, 100.0
        sources, seed = PairSources.from_dict(run.record["sources"]), run.record["run"]["train"]["seed"]
    except (KeyError, TypeError, UserError):
        raise UserError(
            f"{run.folder}: its {SETTINGS_FILE} does not record the number of training pairs; give a list with "
            "columns line, x, scores (see: precis probe curves --help)"
        ) from None
    return run.method, float(f"{100 * examples / examples_in_share(sources, 1.0, seed=seed):.2g}")


BY_LAYER = Axis("layer with the prefix", _by_layer, 1.0, "the lowest layer is 1; leave x empty for a level")
BY_SHARE = Axis("share of the training pairs (%)", _by_share, 0.0, "it is above 0", logarithmic=True)


def method_name(tuning: Tuning) -> str:
    """Return the paper's name for some settings, whatever their numbers; "other" if it does not name them."""
    known = {_kinds(build(NoPrefix(), USUAL)): name for name, build in METHODS.items()}
    name = known.get(_kinds(tuning), "other")
    if not isinstance(tuning.prefix, NoPrefix):
        return name
    return FINE_TUNING if name == "prefix" else f"{FINE_TUNING} {name}"


def _kinds(tuning: Tuning) -> tuple[type, ...]:
    plan = tuning.encoder
    layers = (plan.lower, plan.upper) if isinstance(plan, Hierarchical) else (plan.layer, plan.layer)
    return tuple(kind for layer in layers for kind in (type(layer.prefix), type(layer.normalizer)))


def read_runs(places: Sequence[Path], axis: Axis) -> list[Measured]:
    """Read the scores of all runs; raise `UserError` if a place is not a run or a list, or lacks values."""
    found: list[Measured] = []
    for place in places:
        found += [_run(place, axis)] if place.is_dir() else _list(place, axis)
    return found


def _run(folder: Path, axis: Axis) -> Measured:
    adapter = find_adapter(folder)
    tuning = read_adapter(adapter).tuning if adapter is not None else None
    file = folder / SETTINGS_FILE
    record = read_json(file) if file.is_file() else {}
    if tuning is None and not record:
        raise UserError(f"{folder}: is not a run folder; it contains neither an adapter nor {SETTINGS_FILE}")
    line, x = axis.place(RunFacts(folder, tuning, record))
    sources = record.get("sources")
    task = str(sources.get("task") or "") if isinstance(sources, Mapping) else ""
    return Measured(line=line, x=x, task=task, name=str(folder), metrics=read_scores(folder))


def read_scores(place: Path, *, system: str | None = None) -> dict[str, ScoreInterval]:
    """Read the scores of one system, from a scores.json of precis evaluate or an object such as {"rougeL": 31.2}.

    Args:
        place: the file, or a folder that contains it directly or one level below.
        system: required if the file has several models.

    Raises:
        UserError: the file is missing, there are several, or it lacks that system.
    """
    file = _scores_file(place)
    record = read_json(file)
    systems = record.get("systems")
    metrics: Any = record
    if isinstance(systems, Mapping):
        chosen = system or _only_model(systems, file)
        if chosen not in systems:
            raise UserError(f"{file}: unknown system {chosen!r}{nearest(chosen, systems)}")
        metrics = systems[chosen].get("metrics", {})
    found = {name: _estimate(value) for name, value in metrics.items()}
    scores = {name: value for name, value in found.items() if value is not None}
    if not scores:
        raise UserError(f"{file}: contains no scores; give a file that precis evaluate wrote")
    return scores


def _only_model(systems: Mapping[str, Any], file: Path) -> str:
    models = [name for name, system in systems.items() if system.get("kind") == "model"]
    if len(models) != 1:
        names = ", ".join(repr(name) for name in models) or "none"
        raise UserError(f"{file}: has {len(models)} models ({names}); name one in a list's column system")
    return models[0]


def _scores_file(place: Path) -> Path:
    if place.is_file():
        return place
    if (place / SCORES_FILE).is_file():
        return place / SCORES_FILE
    below = sorted(place.glob(f"*/{SCORES_FILE}"))
    if len(below) == 1:
        return below[0]
    if below:
        raise UserError(f"{place}: has several scores, {below[0]} and {below[1]}; name one in a list")
    raise UserError(
        f"{place}: no {SCORES_FILE} here or one level below; run: precis evaluate --out {place}/scores"
    )


def _estimate(value: Any) -> ScoreInterval | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ScoreInterval(float(value))
    if isinstance(value, Mapping) and isinstance(value.get("mean"), int | float):
        return ScoreInterval(float(value["mean"]), value.get("low"), value.get("high"))
    return None


def _list(file: Path, axis: Axis) -> list[Measured]:
    if not file.is_file():
        raise UserError(f"{file}: no such run folder or list")
    try:
        text = read_text(file)
        rows: Any = list(csv.DictReader(text.splitlines())) if file.suffix == ".csv" else parse_json(text)
    except NotTextError as problem:
        raise UserError(f"{file}: cannot be read ({problem})") from None
    except JsonError as problem:
        raise UserError(f"{file}: is not valid JSON: {problem}") from None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UserError(f"{file}: is not a list of runs; give rows with line, x and scores")
    return [_row(row, file, axis, f"{file}: row {number}") for number, row in enumerate(rows, start=1)]


def _row(row: Mapping[str, Any], file: Path, axis: Axis, where: str) -> Measured:
    line = row.get("line")
    if not line:
        raise UserError(f"{where}: lacks line, the name of its method; columns: {', '.join(map(str, row))}")
    x = None if row.get("x") in (None, "") else _number(row["x"], f"{where}, x")
    if x is not None and (x <= 0.0 or x < axis.least):
        raise UserError(f"{where}, x: {x:g} is not a valid {axis.label}; {axis.range}")
    if row.get("scores"):
        scores = read_scores(file.parent / str(row["scores"]), system=row.get("system") or None)
    else:
        scores = _own_scores(row, where)
    return Measured(line=str(line), x=x, task=str(row.get("task") or ""), metrics=scores, name=where)


def _own_scores(row: Mapping[str, Any], where: str) -> dict[str, ScoreInterval]:
    cells = {str(name): value for name, value in row.items() if value not in (None, "")}
    numbers = {n: _number(v, f"{where}, {n}") for n, v in cells.items() if n not in _OWN_COLUMNS}
    names = [name for name in numbers if not name.endswith(_BOUNDS)]
    if not names:
        raise UserError(
            f"{where}: lacks scores; name a file in the column scores, or give a column such as rougeL"
        )
    return {n: ScoreInterval(numbers[n], numbers.get(f"{n}_low"), numbers.get(f"{n}_high")) for n in names}


def _number(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UserError(f"{where}: {value!r} is not a number") from None
    if not math.isfinite(number):
        raise UserError(f"{where}: {value!r} is not a finite number")
    return number


def draw_runs(
    measured: Sequence[Measured], axis: Axis, out: Path, *, metrics: Sequence[str] = ()
) -> list[tuple[Curve, ...]]:
    """Write OUT/curves.png, curves.csv (the points) and curves.json (every run); return the curves of each metric.

    Args:
        metrics: a panel each; if empty, those of ROUGE-1, -2 and -L that all runs have.

    Raises:
        UserError: no run has a position on the axis, or the runs lack a metric.
    """
    if all(run.x is None for run in measured):
        raise UserError(f"no run has a position on the axis {axis.label!r}; see: precis probe curves --help")
    panels = [curves(measured, metric) for metric in metrics or _shared_metrics(measured)]
    rows = [
        [curve.metric, curve.line, p.x, p.mean, p.low, p.high, p.runs]
        for panel in panels
        for curve in panel
        for p in curve.points
    ]
    runs = [
        {
            "run": run.name,
            "line": run.line,
            "x": run.x,
            "task": run.task,
            "scores": {name: vars(estimate) for name, estimate in run.metrics.items()},
        }
        for run in measured
    ]
    with writing_to(out, doing="writing a probe to"):
        draw_curves(panels, out / "curves.png", xlabel=axis.label, logarithmic=axis.logarithmic)
        write_table(out / "curves.csv", ["metric", "line", "x", "mean", "low", "high", "runs"], rows)
        write_json(out / "curves.json", {"axis": axis.label, "runs": runs})
    return panels


def _shared_metrics(measured: Sequence[Measured]) -> list[str]:
    shared = [name for name in measured[0].metrics if all(name in run.metrics for run in measured)]
    usual = [name for name in USUAL_METRICS if name in shared]
    if not shared:
        raise UserError(f"{measured[0].name} and the other runs do not share a score")
    return usual or shared
