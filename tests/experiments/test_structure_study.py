"""Structure to text from a given model and from nothing: what is planned, trained and said."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from precis.recipes.run_plan import PRECISION
from precis_experiments.corpus_scores import corpus_cells, corpus_gains, score_texts
from precis_experiments.experiment import Runner
from precis_experiments.initial_model import GIVEN, NOTHING, STARTS
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import FACTS_SCALES, PREFIX_SCALES, SCALES, FactsScale, with_seeds
from precis_experiments.structure_study import METRICS, structure_to_text
from precis_text.errors import UserError
from tests.tiny_models import save

TEXTS = ["The Oak serves Thai food.", "The Elm is a pub.", "Oslo lies in Norway."]
REFERENCES = [[text] for text in TEXTS]


def write_facts(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    for split, count in (("train", 30), ("dev", 4), ("test", 4)):
        rows = [
            {"document": f"name[Inn {n}], food[Thai]", "summary": f"Inn {n} is Thai."} for n in range(count)
        ]
        (folder / name / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def runner(tmp_path: Path, scale: FactsScale) -> Runner:
    told: list[str] = []
    return Runner(Study(tmp_path / "out", scale, name="x", data=tmp_path), tmp_path, told.append)


def test_scores_of_runs_are_pooled_and_compared_row_by_row() -> None:
    worse = [TEXTS[0], "The Elm is.", "Oslo."]
    runs = {seed: score_texts(METRICS, TEXTS, REFERENCES) for seed in (0, 1)}
    others = {0: score_texts(METRICS, worse, REFERENCES)}
    assert corpus_cells(runs, ["bleu", "ter"]) == ["100.0 [100.0, 100.0]", "0.0 [0.0, 0.0]"]
    assert corpus_gains(runs, {}, METRICS) == []
    (gain,) = corpus_gains(runs, others, ["chrf"])
    assert float(gain.split()[0]) == pytest.approx(100 - others[0]["scores"]["chrf"], abs=0.05)
    assert json.loads(json.dumps(runs[0])) == runs[0]
    assert set(runs[0]["signatures"]) == {"bleu", "meteor", "ter", "chrf", "rougeL"}
    assert len(runs[0]["resampled"]["bleu"]) == 1000


def test_steps_are_of_the_sets_that_are_there_and_rates_are_tried_where_there_are_several(
    tmp_path: Path,
) -> None:
    write_facts(tmp_path, "webnlg")
    scale = replace(FACTS_SCALES["smoke"], seeds=(0, 1))
    several = [step.name for step in structure_to_text.steps(scale, runner(tmp_path, scale))]
    trials = [f"rate-{start}-{rate:g}" for start in STARTS for rate in scale.rates]
    runs = [f"webnlg-{start}-{seed}" for seed in (0, 1) for start in STARTS]
    assert several == [*trials, *runs]
    one = replace(scale, rates=(0.001,))
    assert [step.name for step in structure_to_text.steps(one, runner(tmp_path, scale))] == runs
    (tmp_path / "webnlg").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="lacks a folder e2e or webnlg or dart"):
        list(structure_to_text.steps(scale, runner(tmp_path, scale)))


def test_both_starts_are_trained_scored_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    write_facts(tmp_path, "e2e")
    given = save("zcodepp", tmp_path / "given")
    scale = replace(FACTS_SCALES["smoke"], start=str(given), rates=(0.001,), batch_tokens=200)
    text = structure_to_text(scale, data=tmp_path, out=tmp_path / "out", notify=lambda _: None)
    rows = [line for line in text.splitlines() if line.startswith(("| the ", "| difference"))]
    assert [row.split(" | ")[0] for row in rows] == [
        "| the given model",
        "| the same from nothing",
        "| difference",
    ]
    found = {
        start: json.loads((tmp_path / "out" / "steps" / f"e2e-{start}-0" / "result.json").read_text())
        for start in (GIVEN, NOTHING)
    }
    assert all(set(METRICS) == set(result["scores"]) for result in found.values())
    assert all(np.isfinite(result["loss"]) for result in found.values())
    assert r"\toprule" in (tmp_path / "out" / "table.tex").read_text()
    other = replace(scale, start=str(tmp_path / "elsewhere"))
    with pytest.raises(UserError, match=r"was started with --model .*, now --model "):
        structure_to_text(other, data=tmp_path, out=tmp_path / "out", notify=lambda _: None)


def test_more_seeds_go_on_in_the_same_folder_and_another_precision_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    scale = PREFIX_SCALES["smoke"]
    Study(tmp_path / "out", scale, name="x", data=tmp_path)
    Study(tmp_path / "out", with_seeds(scale, 3), name="x", data=tmp_path)
    monkeypatch.setenv(PRECISION, "bf16")
    with pytest.raises(UserError, match="precision"):
        Study(tmp_path / "out", scale, name="x", data=tmp_path)


def test_seeds_are_set_wherever_a_scale_has_some() -> None:
    scale = with_seeds(SCALES["micro"], 5)
    assert scale.sampling_seeds == scale.ablation_seeds == (0, 1, 2, 3, 4)
    assert replace(scale, sampling_seeds=(0, 1, 2), ablation_seeds=(0, 1, 2, 3)) == SCALES["micro"]
    with pytest.raises(UserError, match="--seeds 0: use 1 or more"):
        with_seeds(scale, 0)


def test_a_folder_from_before_a_scale_could_name_a_model_goes_on_and_with_one_does_not(
    tmp_path: Path,
) -> None:
    scale = SCALES["smoke"]
    Study(tmp_path / "out", scale, name="x", data=tmp_path)
    record = tmp_path / "out" / "study.json"
    old = json.loads(record.read_text())
    del old["settings"]["start"], old["settings"]["weights"]
    record.write_text(json.dumps(old))
    Study(tmp_path / "out", scale, name="x", data=tmp_path)
    with pytest.raises(UserError, match="was started with no --model, now --model M;"):
        Study(tmp_path / "out", replace(scale, start="M", weights="1"), name="x", data=tmp_path)
