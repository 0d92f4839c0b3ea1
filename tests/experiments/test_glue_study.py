"""GLUE two ways: the steps, what a cell keeps, and the table of what is there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from precis.data.pairs.pair import Pair
from precis.evaluation.significance import Bootstrap
from precis.evaluation.task_scores import task_scorers
from precis.recipes.run_plan import PRECISION
from precis_experiments.experiment import Runner
from precis_experiments.glue_study import _scored, cell, glue
from precis_experiments.initial_model import begin_with
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import GLUE_SCALES
from tests.tiny_models import save

SCALE = replace(GLUE_SCALES["micro"], tasks=("rte", "stsb"), seeds=(0, 1))
PAIRS = [
    Pair(f"premise: {n} hypothesis: {n}", "entailment" if n % 4 else "not_entailment") for n in range(40)
]
SCORES = [Pair(f"sentence1: {n} sentence2: {n}", f"{n % 5}.0") for n in range(40)]


def result(test: str, texts: list[str], pairs: list[Pair]) -> dict:
    return {"sets": {test: _scored(test, texts, pairs)}}


def test_both_ways_stand_beside_the_majority_class_and_the_paper() -> None:
    right = [pair.summary for pair in PAIRS]
    half = [*right[:20], *(["nothing"] * 20)]
    results = {cell("given", "rte", "head", 0): result("rte", right, PAIRS)}
    results[cell("given", "rte", "text", 0)] = result("rte", half, PAIRS)
    (line,) = (line for line in glue.table(SCALE, results).splitlines() if line.startswith("| rte"))
    cells = [each.strip() for each in line.strip("|").split("|")]
    assert cells[:5] == ["rte", "40", "accuracy", "75.0", "given"]
    assert cells[5] == "100.0 [100.0, 100.0]"
    assert cells[6].startswith("25.0 [")
    assert cells[7].startswith("50.0 [")
    assert cells[8].startswith("-25.0 [")
    assert cells[9] == "92.4 / 92.1"


def test_a_row_without_results_is_left_out_and_a_missing_way_is_a_dash() -> None:
    numbers = [pair.summary for pair in SCORES]
    text = glue.table(SCALE, {cell("nothing", "stsb", "text", 1): result("stsb", numbers, SCORES)})
    lines = [line for line in text.splitlines() if line.startswith("| stsb")]
    assert [line.split(" | ")[2:] for line in lines] == [
        ["pearson", "-", "nothing", "-", "-", "100.0 [100.0, 100.0]", "-", "93.1 / 92.5 |"],
        ["spearman", "-", "nothing", "-", "-", "100.0 [100.0, 100.0]", "-", " |"],
    ]
    assert "| rte" not in text


def test_the_interval_of_one_run_is_the_bootstraps() -> None:
    texts = ["entailment"] * 30 + ["not_entailment"] * 10
    scorer = task_scorers(("accuracy",))["accuracy"](texts, [(pair.summary,) for pair in PAIRS])
    expected = Bootstrap().corpus_interval(scorer.resampled, len(PAIRS))
    text = glue.table(SCALE, {cell("given", "rte", "head", 1): result("rte", texts, PAIRS)})
    assert str(expected) in text


def test_every_task_is_trained_both_ways_from_both_starts_with_every_seed(tmp_path: Path) -> None:
    study = Study(tmp_path / "out", SCALE, name="glue", data=tmp_path)
    names = [step.name for step in glue.steps(SCALE, Runner(study, tmp_path, print))]
    assert len(names) == len(set(names)) == 2 * 2 * 2 * 2
    assert all(name.startswith("given-") for name in names[:4])  # they decide most


def test_text_may_have_more_steps_than_a_head_and_the_table_says_so() -> None:
    scale = replace(SCALE, steps=600, text_steps=(("rte", 1500),))
    assert [scale.steps_of("rte", "text"), scale.steps_of("rte", "head"), scale.steps_of("stsb", "text")] == [
        1500,
        600,
        600,
    ]
    assert "600 steps (rte as text: 1,500) of 1,024 tokens" in glue.table(scale, {})


def test_a_model_beside_has_a_head_alone_and_a_row_of_its_own(tmp_path: Path) -> None:
    scale = replace(SCALE, tasks=("rte",), seeds=(0,), beside=("models/deberta",))
    study = Study(tmp_path / "out", scale, name="glue", data=tmp_path)
    names = [step.name for step in glue.steps(scale, Runner(study, tmp_path, print))]
    assert names[4:] == ["models-deberta-rte-head-0"]
    results = {names[4]: result("rte", [pair.summary for pair in PAIRS], PAIRS)}
    (line,) = (line for line in glue.table(scale, results).splitlines() if line.startswith("| rte"))
    start, head, above, text = (each.strip() for each in line.split("|")[5:9])
    assert (start, head, text) == ("models/deberta", "100.0 [100.0, 100.0]", "-")
    assert above.startswith("25.0 [")


def test_a_model_beside_is_trained_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    rows = [{"sentence": f"scene {n} is {'fine' if n % 2 else 'dull'}", "label": n % 2} for n in range(24)]
    (tmp_path / "glue").mkdir()
    for split in ("train", "dev"):
        file = tmp_path / "glue" / f"SST-2.{split}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given, other = save("zcodepp", tmp_path / "given"), save("zcodepp", tmp_path / "other", seed=1)
    scale = replace(GLUE_SCALES["smoke"], tasks=("sst2",), batch_tokens=200, beside=(str(other),))
    (name,) = (cell(str(other), "sst2", "head", 0),)
    text = glue(
        begin_with(scale, str(given)), data=tmp_path, out=tmp_path / "out", notify=print, only=(name,)
    )
    assert f"| {other} |" in text
