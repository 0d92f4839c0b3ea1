"""Runs are found with their scores, their layers and their share of the data, or a list says these."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from precis.data.tasks.tasks import Part
from precis.evaluation.probe_plots import ScoreInterval
from precis.phases.data.run_pairs import PairSources
from precis.phases.measure.probe_curves import (
    BY_LAYER,
    BY_SHARE,
    draw_runs,
    method_name,
    read_runs,
    read_scores,
)
from precis.tuning import METHODS, Adapter, MethodSettings, NoPrefix, Prefix
from precis.tuning.adapter_folder import BaseRecord
from precis.tuning.prefix import LowLayers, SingleLayer, TopLayers
from precis_text.errors import UserError

BASE = BaseRecord(architecture="Bart", shapes=("2x2x4",) * 3, digest="0" * 64)


def write(file: Path, record: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record))
    return file


def scores(folder: Path, **metrics: float) -> Path:
    """A report of precis evaluate with one model and one baseline."""
    means = {name: {"mean": mean, "low": mean - 1, "high": mean + 1} for name, mean in metrics.items()}
    lead = {"rougeL": {"mean": 9.0, "low": 8.0, "high": 10.0}}
    systems = {
        "tiny greedy": {"kind": "model", "metrics": means},
        "LEAD-3": {"kind": "baseline", "metrics": lead},
    }
    return write(folder / "evaluation" / "scores.json", {"examples": 3, "systems": systems})


def run(
    folder: Path, *, layers: Any = None, method: str = "prefix", mean: float = 30.0, **record: Any
) -> Path:
    """A run folder; without layers it has no adapter."""
    scores(folder, rouge1=mean + 5, rougeL=mean)
    if layers is not None:
        prefix = Prefix(length=4, layers=layers)
        Adapter(METHODS[method](prefix, MethodSettings()), BASE, {}).save(folder / "adapter")
    write(folder / "settings.json", record)
    return folder


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_recognised_whatever_its_numbers(name: str) -> None:
    settings = MethodSettings(encoder_segments=3, mass=0.5, temperature=0.1, target_length=9)
    assert method_name(METHODS[name](Prefix(length=7), settings)) == name


def test_sparse_attention_on_the_whole_model_is_fine_tuning() -> None:
    assert method_name(METHODS["softsa"](NoPrefix(), MethodSettings())) == "fine-tuning softsa"


def test_single_layers_are_places_from_one_and_other_choices_are_levels(tmp_path: Path) -> None:
    folders = [
        run(tmp_path / "a", layers=SingleLayer(index=0)),
        run(tmp_path / "b", layers=SingleLayer(index=5), method="hierblock"),
        run(tmp_path / "c", layers=TopLayers(count=4)),
        run(tmp_path / "d", layers=LowLayers(count=7)),
        run(tmp_path / "e", identity={}),
    ]
    assert [(found.line, found.x) for found in read_runs(folders, BY_LAYER)] == [
        ("prefix", 1),
        ("hierblock", 6),
        ("prefix, top 4", None),
        ("prefix, low 7", None),
        ("fine-tuning", None),
    ]


def test_the_share_is_counted_from_the_run_s_own_data(tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps({"document": f"d{n}", "summary": "s"}) + "\n" for n in range(79)))
    record = {
        "run": {"train": {"seed": 0}},
        "sources": PairSources(
            train=Part(source=str(train)), dev=Part(source=str(train)), task="xsum"
        ).to_dict(),
    }
    few = run(tmp_path / "few", layers=SingleLayer(index=0), identity={"examples": 4}, **record)  # type: ignore[arg-type]
    whole = run(tmp_path / "whole", identity={"examples": None}, **record)  # type: ignore[arg-type]
    found = read_runs([few, whole], BY_SHARE)
    assert [(one.line, one.x, one.task) for one in found] == [
        ("prefix", 5.1, "xsum"),
        ("fine-tuning", 100.0, "xsum"),
    ]


def test_a_run_that_does_not_say_its_data_wants_a_list(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"settings.json does not record.*line, x, scores"):
        read_runs([run(tmp_path / "a", layers=SingleLayer(index=0))], BY_SHARE)


def test_scores_are_those_of_the_model_and_not_of_baselines(tmp_path: Path) -> None:
    scores(tmp_path, rougeL=31.0)
    assert read_scores(tmp_path) == {"rougeL": ScoreInterval(31.0, 30.0, 32.0)}


def test_plain_scores_are_read_too(tmp_path: Path) -> None:
    file = write(tmp_path / "s.json", {"rougeL": 31.5, "note": "x", "bleu": {"mean": 20.0}})
    assert read_scores(file) == {"rougeL": ScoreInterval(31.5), "bleu": ScoreInterval(20.0)}


def test_scores_that_are_not_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no scores.json here.*precis evaluate"):
        read_scores(tmp_path)
    two = {name: {"kind": "model", "metrics": {"rougeL": {"mean": 1.0}}} for name in ("greedy", "beam 5")}
    file = write(tmp_path / "a" / "scores.json", {"systems": two})
    with pytest.raises(UserError, match=r"2 models \('greedy', 'beam 5'\)"):
        read_scores(file)
    assert read_scores(file, system="greedy") == {"rougeL": ScoreInterval(1.0)}
    with pytest.raises(UserError, match="unknown system 'greddy'; did you mean 'greedy'"):
        read_scores(file, system="greddy")
    write(tmp_path / "b" / "scores.json", {})
    with pytest.raises(UserError, match="several scores"):
        read_scores(tmp_path)
    with pytest.raises(UserError, match="contains no scores"):
        read_scores(tmp_path / "b")


def test_a_csv_list_states_places_and_scores(tmp_path: Path) -> None:
    scores(tmp_path / "runs" / "a", rougeL=31.0)
    file = tmp_path / "list.csv"
    file.write_text("line,x,task,scores,rougeL,rougeL_low,rougeL_high\nA,5,e2e,runs/a,,,\nB,,e2e,,20,19,22\n")
    first, second = read_runs([file], BY_SHARE)
    assert (first.line, first.x, first.task, first.metrics["rougeL"].mean) == ("A", 5.0, "e2e", 31.0)
    assert (second.x, second.metrics) == (None, {"rougeL": ScoreInterval(20.0, 19.0, 22.0)})


def test_a_json_list_is_the_same(tmp_path: Path) -> None:
    file = write(tmp_path / "list.json", [{"line": "A", "x": 5, "rougeL": 31.0}])
    (found,) = read_runs([file], BY_SHARE)
    assert (found.line, found.x, found.metrics) == ("A", 5.0, {"rougeL": ScoreInterval(31.0)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("line,x,rougeL\nA,five,30\n", "row 1, x: 'five' is not a number"),
        ("line,x,rougeL\nA,5,high\n", "row 1, rougeL: 'high' is not a number"),
        ("line,x,rougeL\nA,nan,30\n", "row 1, x: 'nan' is not a finite number"),
        ("line,x,rougeL\nA,inf,30\n", "row 1, x: 'inf' is not a finite number"),
        ("line,x,rougeL\nA,5,nan\n", "row 1, rougeL: 'nan' is not a finite number"),
        (
            "line,x,rougeL\nA,5,30\nA,0,30\n",
            "row 2, x: 0 is not a valid share of the training pairs (%); it is above 0",
        ),
        ("line,x,rougeL\nA,-1,30\n", "row 1, x: -1 is not a valid share of the training pairs (%)"),
        ("name,x,rougeL\nA,5,30\n", "row 1: lacks line"),
        ("line,x\nA,5\n", "row 1: lacks scores"),
        ("line,x,scores\nA,5,none\n", "none: no scores.json here"),
        ("", "is not a list of runs"),
    ],
)
def test_a_bad_list_is_named_by_file_and_row(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        read_runs([file], BY_SHARE)
    assert message in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("x", [0, 0.5, -3])
def test_layers_are_counted_from_one(x: float, tmp_path: Path) -> None:
    file = write(tmp_path / "list.json", [{"line": "A", "x": x, "rougeL": 31.0}])
    with pytest.raises(UserError, match="the lowest layer is 1; leave x empty for a level"):
        read_runs([file], BY_LAYER)


def test_what_is_neither_a_run_nor_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such run folder"):
        read_runs([tmp_path / "none"], BY_LAYER)
    with pytest.raises(UserError, match="is not a run folder"):
        read_runs([tmp_path], BY_LAYER)
    with pytest.raises(UserError, match="is not a list of runs"):
        read_runs([write(tmp_path / "scores.json", {"rougeL": 3})], BY_LAYER)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad.json: is not valid JSON"):
        read_runs([tmp_path / "bad.json"], BY_LAYER)


def test_the_picture_comes_with_its_points_and_its_runs(tmp_path: Path) -> None:
    folders = [run(tmp_path / f"l{n}", layers=SingleLayer(index=n), mean=30.0 + n) for n in range(3)]
    folders.append(run(tmp_path / "again", layers=SingleLayer(index=2), mean=34.0))
    panels = draw_runs(read_runs(folders, BY_LAYER), BY_LAYER, tmp_path / "out")
    assert [panel[0].metric for panel in panels] == ["rouge1", "rougeL"]
    assert (tmp_path / "out" / "curves.png").stat().st_size > 1000
    with (tmp_path / "out" / "curves.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["metric"] == "rougeL"]
    assert [(row["x"], row["mean"], row["runs"]) for row in rows] == [
        ("1", "30.0", "1"),
        ("2", "31.0", "1"),
        ("3", "33.0", "2"),
    ]
    record = json.loads((tmp_path / "out" / "curves.json").read_text())
    assert len(record["runs"]) == 4
    assert record["runs"][0]["scores"]["rougeL"] == {"mean": 30.0, "low": 29.0, "high": 31.0}


def test_levels_alone_are_no_curve(tmp_path: Path) -> None:
    levels = read_runs([run(tmp_path / "a", layers=TopLayers(count=1))], BY_LAYER)
    with pytest.raises(UserError, match="no run has a position on the axis 'layer with the prefix'"):
        draw_runs(levels, BY_LAYER, tmp_path / "out")


def test_an_unknown_metric_is_refused(tmp_path: Path) -> None:
    runs = read_runs([run(tmp_path / "a", layers=SingleLayer(index=0))], BY_LAYER)
    with pytest.raises(UserError, match="lacks the score 'rougel'"):
        draw_runs(runs, BY_LAYER, tmp_path / "out", metrics=["rougel"])
