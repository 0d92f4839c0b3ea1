"""Claims about Z-Code++'s studies: their tables show what is there, and the ablation changes one thing at a time."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from precis.objectives.pretraining_objectives import SpansAlone
from precis.recipes.run_plan import PRECISION
from precis_experiments.experiment import Runner
from precis_experiments.initial_model import begin_with
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import SCALES
from precis_experiments.zcodepp_steps import head_on, is_by_head, tune_on
from precis_experiments.zcodepp_studies import (
    STARTS,
    VARIANTS,
    WHOLE,
    ablation,
    fewshot,
    ordered_cells,
    variant,
)
from tests.tiny_models import save


def result(value: float) -> dict[str, object]:
    examples = {name: [value, value + 10.0] for name in ("rouge1", "rouge2", "rougeL")}
    return {
        "examples": examples,
        "loss": value / 10,
        "span_loss": value,
        "span_losses": [value, value],
        "cpu_seconds": 60 * value,
        "tokens": 5,
    }


def test_the_few_shot_table_averages_sampling_seeds_and_compares_each_start_with_the_one_above() -> None:
    scale = SCALES["micro"]
    results: dict[str, dict[str, object]] = {"pack": result(1), "phase1": result(1)}
    for start, base in zip(STARTS, (10.0, 20.0, 30.0), strict=True):
        results |= {
            f"{start}-{size}-{seed}": result(base + seed) for size in (10, 100, 1000) for seed in range(3)
        }
        results |= {f"{start}-all": result(base), f"{start}-0": result(base)}
    del results["scratch-0"]
    rows = [line for line in fewshot.table(scale, results).splitlines() if line.startswith("| 10 ")]
    assert rows[0].startswith("| 10 | scratch | 16.0 [")  # mean of 10, 11, 12 and of these plus 10
    assert "| 15.0, 16.0, 17.0 |" in rows[0]
    # paired by draw: the spread of the draws drops out; then the loss of each draw
    assert "| 10.0 [10.0, 10.0] | 2.00, 2.10, 2.20 | 13.6/2.6/11.0 |" in rows[1]
    assert json.dumps(scale.to_dict())


def test_tables_show_what_is_there_and_compare_on_the_draws_that_both_have() -> None:
    scale = SCALES["micro"]
    assert "| 10 |" not in fewshot.table(scale, {})
    results = {"phase1-10-0": result(10), "phase1+2-10-0": result(13), "phase1+2-10-2": result(90)}
    rows = [line for line in fewshot.table(scale, results).splitlines() if line.startswith("| 10 ")]
    assert [row.split(" | ")[1] for row in rows] == ["phase1", "phase1+2"]
    assert "| 18.0, 95.0 | 3.0 [3.0, 3.0] |" in rows[1]

    steps = {
        "pretrained-RTD-and-spans-0": result(1),
        "pretrained-without-RTD-1": result(2),
        "tuned-without-RTD-1": result(20),
    }
    lines = ablation.table(scale, steps).splitlines()
    assert "| RTD and spans | 1.000 | 1 | - | - | - |  | - |" in lines
    (row,) = (line for line in lines if line.startswith("| without RTD"))
    assert row.startswith("| without RTD | 2.000 | 2 | 25.0 [")
    assert row.endswith("| - | 2.00 |")
    assert not any(line.startswith("| gap sentences") for line in lines)


def test_the_cells_that_decide_come_first() -> None:
    cells = [(start, size) for start, size, _ in ordered_cells(SCALES["micro"])]
    order = list(dict.fromkeys(cells))
    assert order == [
        *((start, size) for size in (10, 100) for start in ("phase1", "phase1+2")),
        ("scratch", 100),
        *((start, size) for size in (1000, None) for start in STARTS),
        ("scratch", 10),
    ]
    assert len(cells) == 3 * 3 * 3 + 3
    assert ordered_cells(SCALES["smoke"]) == [
        ("phase1", 10, 0),
        ("phase1+2", 10, 0),
        *((start, None, None) for start in STARTS),
        ("scratch", 10, 0),
    ]


def test_the_ablation_changes_one_thing_at_a_time() -> None:
    scale = SCALES["micro"]
    whole = variant(scale, WHOLE, seed=1)
    spans = variant(scale, "without RTD", seed=1)
    plain = variant(scale, "without disentangled attention", seed=1)
    gaps = variant(scale, "gap sentences instead of spans", seed=1)
    assert isinstance(spans.objective, SpansAlone)
    assert (spans.model, spans.corruption, spans.train) == (whole.model, whole.corruption, whole.train)
    assert plain.model.encoder_positions == "bucketed"  # type: ignore[union-attr]
    assert (plain.objective, plain.corruption, plain.train) == (
        whole.objective,
        whole.corruption,
        whole.train,
    )
    assert gaps.corruption.unit == "sentences"
    assert (gaps.objective, gaps.model, gaps.train) == (whole.objective, whole.model, whole.train)
    results = {
        f"{stage}-{name.replace(' ', '-')}-{seed}": result(float(seed + 1))
        for stage in ("pretrained", "tuned")
        for name in VARIANTS
        for seed in (0, 1)
    }
    rows = [line for line in ablation.table(scale, results).splitlines() if line.startswith("| without RTD")]
    assert rows[0].startswith("| without RTD | 1.000, 2.000 | 2 |")


def test_each_task_of_table_11_has_rows_beside_the_papers() -> None:
    scale = SCALES["mini"]
    assert scale.tasks == ("samsum", "cnndm", "xsum")
    results = {f"{name}phase1+2-0": result(20) for name in ("", "cnndm-", "xsum-")}
    text = fewshot.table(scale, results)
    for name, paper in (("samsum", "26.5/7.9/20.5"), ("cnndm", "40.0/17.3/25.3"), ("xsum", "36.6/13.7/28.6")):
        _, _, rest = text.partition(f"| {name}, examples")
        assert rest.splitlines()[2].endswith(f"| {paper} |")
    assert "cnndm" not in fewshot.table(SCALES["micro"], results).split("Phase 2")[0]


def test_other_models_have_rows_of_their_own_beside_the_papers(tmp_path: Path) -> None:
    scale = replace(SCALES["micro"], beside=("google/pegasus-large",))
    runner = Runner(Study(tmp_path / "out", scale, name="x", data=tmp_path), tmp_path, lambda _: None)
    for split in ("train", "dev", "test"):
        (tmp_path / "samsum").mkdir(exist_ok=True)
        (tmp_path / "samsum" / f"{split}.jsonl").write_text('{"document": "Ann sings.", "summary": "Ann."}\n')
    steps = {step.name: step for step in fewshot.steps(scale, runner)}
    assert steps["google-pegasus-large-10-0"].needs == ()
    assert steps["google-pegasus-large-0"].needs == ()
    assert len(steps) == 3 + 3 + 4 * (3 * 3 + 1)
    results = {"google-pegasus-large-100-0": result(20), "phase1+2-100-0": result(15)}
    row = next(line for line in fewshot.table(scale, results).splitlines() if "pegasus-large |" in line)
    assert row.startswith("| 100 | google/pegasus-large |")
    assert row.endswith("| 45.0/19.8/36.1 |")


def test_another_model_is_tuned_with_the_settings_for_pre_trained_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    other = str(save("bart", tmp_path / "bart", positions=512))
    scale = replace(SCALES["smoke"], beside=(other,), few_shot_steps=1, test_rows=2, dev_rows=2)
    rows = [{"document": f"Ann sings song {n}.", "summary": f"Song {n}."} for n in range(12)]
    for split in ("train", "dev", "test"):
        (tmp_path / "samsum").mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "samsum" / f"{split}.jsonl").write_text(lines)
    runner = Runner(Study(tmp_path / "out", scale, name="x", data=tmp_path), tmp_path, lambda _: None)
    (tmp_path / "tuned").mkdir()
    found = tune_on(scale, runner, "samsum", tmp_path / "tuned", start=other, examples=10)
    assert set(found["rouge"]) == {"rouge1", "rouge2", "rougeL"}
    run = json.loads((tmp_path / "tuned" / "run" / "settings.json").read_text())["run"]
    assert (run["name"], run["train"]["learning_rate"]) == ("pretrained", 3e-5)


def test_the_ablation_is_judged_on_answers_and_labels_too() -> None:
    scale = SCALES["micro"]
    assert scale.judged_on == ("samsum", "squad-qa", "mnli")

    def judged(accuracy: float) -> dict[str, object]:
        return {"scores": {"accuracy": accuracy}, "resampled": {"accuracy": [accuracy] * 50}}

    results = {
        f"mnli-head-{name}-{seed}": judged(value)
        for name, value in (("RTD-and-spans", 40.0), ("without-RTD", 36.0))
        for seed in (0, 1)
    }
    lines = ablation.table(scale, results).splitlines()
    assert "| mnli | accuracy | against the first: accuracy |" in lines
    assert "| RTD and spans | 40.0 [40.0, 40.0] |  |" in lines
    assert "| without RTD | 36.0 [36.0, 36.0] | -4.0 [-4.0, -4.0] |" in lines


def test_the_ablation_is_judged_on_both_test_sets_of_mnli() -> None:
    scale = SCALES["micro"]

    def judged(accuracy: float) -> dict[str, object]:
        return {"scores": {"accuracy": accuracy}, "resampled": {"accuracy": [accuracy] * 50}}

    results = {"mnli-head-RTD-and-spans-0": {**judged(40.0), "further": {"mnli-mm": judged(39.0)}}}
    results["mnli-head-RTD-and-spans-1"] = judged(42.0)  # of a run whose data had no mismatched genres
    _, matched, mismatched = ablation.table(scale, results).split("| mnli")
    assert "| RTD and spans | 41.0 [" in matched
    assert mismatched.startswith("-mm | accuracy |")
    assert "| RTD and spans | 39.0 [39.0, 39.0] |" in mismatched


def test_a_variant_is_judged_by_heads_on_answers_and_on_labels_which_have_no_dev_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """They are scored on the public dev rows, so that validation rows are held out of train."""
    monkeypatch.setenv(PRECISION, "fp32")
    data = tmp_path / "data"
    labelled = [
        {"premise": f"Ann has {n}.", "hypothesis": f"Bob has {n}.", "label": n % 3} for n in range(30)
    ]
    asked = [{"question": "Who sings?", "answers": ["Ann"]}]
    paragraphs = [{"document": f"Ann sings {n} songs.", "qas": asked, "title": "Ann"} for n in range(30)]
    for folder, names, rows in (
        ("glue", ("MNLI.train", "MNLI.dev", "MNLI.dev_mismatched"), labelled),
        ("squad_v1.1", ("train", "dev"), paragraphs),
    ):
        (data / folder).mkdir(parents=True)
        for name in names:
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (data / folder / f"{name}.jsonl").write_text(lines)
    start = save("zcodepp", tmp_path / "start")
    scale = replace(SCALES["smoke"], batch_tokens=300, test_rows=4)
    told: list[str] = []
    runner = Runner(Study(tmp_path / "out", scale, name="x", data=data), data, told.append)
    found = {}
    for name in ("mnli", "squad-qa"):
        told.clear()
        found[name] = head_on(scale, runner, name, tmp_path / name, start=start)
        assert any(line.startswith("train: ") for line in told), name
        assert "step 2/2" in capfd.readouterr().err, name
        assert (tmp_path / name / "run" / "metrics.jsonl").is_file()
    assert "29 of 29 answers are in the tokens that are read" in told
    assert {name: set(result["scores"]) for name, result in found.items()} == {
        "mnli": {"accuracy"},
        "squad-qa": {"exact_match", "answer_f1"},
    }
    assert set(found["mnli"]["further"]["mnli-mm"]["scores"]) == {"accuracy"}
    assert {result["steps"] for result in found.values()} == {scale.head_steps}
    assert not is_by_head("samsum")
    config = json.loads((tmp_path / "mnli" / "run" / "model" / "config.json").read_text())
    assert config["architectures"] == ["ZCodePPForSequenceClassification"]


def test_few_shot_starts_from_a_given_model_its_second_phase_and_its_shape_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    given = save("zcodepp", tmp_path / "given")
    rows = [{"document": f"Ann sings song {n}.", "summary": f"Song {n}."} for n in range(40)]
    for name in ("samsum", "dialogsum", "aeslc"):
        for split in ("train", "dev", "test"):
            (tmp_path / name).mkdir(exist_ok=True)
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / name / f"{split}.jsonl").write_text(lines)
    scale = begin_with(replace(SCALES["smoke"], grounding_steps=1, dev_rows=2, test_rows=2), str(given))
    text = fewshot(scale, data=tmp_path, out=tmp_path / "out", notify=lambda _: None, only=("*-0", "*-10-0"))
    done = sorted(place.parent.name for place in (tmp_path / "out" / "steps").glob("*/result.json"))
    assert done == ["given+2", "given+2-0", "given+2-10-0", "given-0", "given-10-0", "nothing-10-0"]
    table = [line for line in text.splitlines() if line.startswith("| 10 |")]
    assert [line.split(" | ")[1] for line in table] == ["nothing", "given", "given+2"]
    assert table[-1].endswith("| 40.27/17.4/33.7 |")
    assert f"the given model's weights have the digest {scale.weights}." in text
    assert "phase 2 helps on samsum with 10 examples" in text
    assert not [*(tmp_path / "out").glob("steps/nothing-10-0/start/*.safetensors")]
