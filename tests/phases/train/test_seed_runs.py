"""One training with several seeds: each seed is the run that it would be alone, and evaluation pools them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForSeq2SeqLM

import precis
from precis.data.pairs.pair import Pair
from precis.evaluation.significance import OVER_RUNS
from precis.generation.model_location import runs_with_seeds
from precis.phases.measure.attention_probe import read_for_probing
from precis.phases.train.seed_runs import SeedRuns, train_seeds
from precis.phases.use.model_push import plan_push
from precis.training import Trained, TrainResult
from precis.tuning import read_adapter
from precis_text.errors import UserError
from tests.tiny_models import save

SHAPE = ["hidden_size=16", "intermediate_size=32", "encoder_layers=1", "decoder_layers=1", "vocab_size=420"]
BRIEF: dict[str, Any] = {
    "recipe": "zcodepp-micro",
    "steps": 2,
    "batch_size": 2,
    "max_source": 32,
    "max_target": 8,
    "select": "loss",
    "settings": [*(f"model.{each}" for each in SHAPE), "generated_rows=0", "train.warmup_steps=1"],
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    precis.write_synthetic(folder, {"train": 12, "dev": 3, "test": 4}, seed=0)
    return folder


@pytest.fixture(scope="module")
def two(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> SeedRuns:
    return train_seeds(precis.finetune, pairs, seeds=2, out=tmp_path_factory.mktemp("out") / "two", **BRIEF)


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def test_each_seed_is_the_run_that_it_would_be_alone(pairs: Path, two: SeedRuns, tmp_path: Path) -> None:
    alone = precis.finetune(pairs, out=tmp_path / "alone", seed=1, **BRIEF)
    assert list(two.runs) == [0, 1]
    assert weights(two.folder / "seed-1") == weights(alone.folder)
    assert weights(two.folder / "seed-0") != weights(two.folder / "seed-1")


def test_the_table_has_every_score_and_the_mean_over_seeds(two: SeedRuns) -> None:
    table = two.table()
    best = [run.result.best_metric for run in two.runs.values()]
    assert None not in best
    scores = [score for score in best if score is not None]
    assert [row[:2] for row in table.rows[:2]] == [[str(s), f"{scores[s]:.3f}"] for s in (0, 1)]
    low, high = sorted(scores)
    assert table.rows[2][:2] == ["mean", f"{np.mean(scores):.3f} [{low:.3f}, {high:.3f}]"]
    assert table.caption == "validation scores; in brackets: the range of the runs"
    assert two.interval == OVER_RUNS.runs_interval(np.array(scores, dtype=np.float64)[:, None])
    three = replace(two, runs={**two.runs, 2: two.runs[1]})
    assert three.table().caption == "validation scores; in brackets: 95% interval, Student's t over seeds"


def test_more_seeds_are_added_to_those_that_are_there(pairs: Path, two: SeedRuns) -> None:
    before = (two.folder / "seed-0" / "metrics.jsonl").read_bytes()
    more = train_seeds(precis.finetune, pairs, seeds=3, out=two.folder, **BRIEF)
    assert list(more.runs) == [0, 1, 2]
    assert (two.folder / "seed-0" / "metrics.jsonl").read_bytes() == before
    assert [run.name for run in runs_with_seeds(two.folder) or ()] == ["seed-0", "seed-1", "seed-2"]
    back = train_seeds(precis.finetune, pairs, seeds=2, out=two.folder, **BRIEF)
    assert list(back.runs) == [0, 1]
    assert [run.name for run in runs_with_seeds(two.folder) or ()] == ["seed-0", "seed-1"]


def test_an_interrupted_run_is_the_last_and_evaluation_asks_to_finish_it(tmp_path: Path) -> None:
    def stopped(*, out: Path, seed: int, **_: object) -> Trained:
        result = TrainResult(
            step=1, total_steps=2, best_step=None, best_metric=None, best_checkpoint=out,
            stopped_early=False, interrupted=seed == 1,
        )  # fmt: skip
        if seed == 0:
            (out / "model").mkdir(parents=True)
        return Trained(folder=out, result=result)

    done = train_seeds(stopped, seeds=3, out=tmp_path / "out")
    assert done.interrupted
    assert list(done.runs) == [0, 1]
    with pytest.raises(
        UserError, match=r"seed-1: this run is not finished; repeat the command that trains in"
    ):
        runs_with_seeds(tmp_path / "out")
    assert done.interval is None


@pytest.mark.long
def test_evaluation_pools_the_runs_and_compares_them_with_another_model(
    pairs: Path, two: SeedRuns, tmp_path: Path
) -> None:
    other = save("zcodepp", tmp_path / "other")
    asked: Any = {"out": tmp_path / "scores", "baselines": False, "long": "truncate"}
    report = precis.evaluate([two.folder, other], pairs, split="test", **asked)
    pooled, single = report.systems
    assert (pooled.name, single.name) == ("two beam 4", "other greedy")
    assert sorted(file.stem for file in (tmp_path / "scores" / "predictions").glob("*.jsonl")) == [
        "other-greedy", "two-seed-0-beam-4", "two-seed-1-beam-4",
    ]  # fmt: skip
    assert [run.name for run in pooled.runs] == ["two/seed-0 beam 4", "two/seed-1 beam 4"]
    rows = np.array([run.examples["rouge1"] for run in pooled.runs])
    assert pooled.metrics["rouge1"] == OVER_RUNS.runs_interval(rows)
    assert np.array_equal(pooled.examples["rouge1"], rows.mean(axis=0))
    difference = report.differences["other greedy"]["rouge1"].difference
    assert difference == OVER_RUNS.runs_interval(single.examples["rouge1"] - rows)
    assert any("two beam 4: 2 runs give their range, as an interval takes three" in n for n in report.notes)
    scores = json.loads((tmp_path / "scores" / "scores.json").read_text())
    assert list(scores["systems"]["two beam 4"]["runs"]) == ["two/seed-0 beam 4", "two/seed-1 beam 4"]
    first = json.loads((tmp_path / "scores" / "examples.jsonl").read_text().splitlines()[0])
    assert list(first["systems"]) == ["two/seed-0 beam 4", "two/seed-1 beam 4", "other greedy"]


def test_seeds_beside_a_model_change_no_name_of_a_row(pairs: Path, two: SeedRuns, tmp_path: Path) -> None:
    other = save("zcodepp", tmp_path / "other")
    shutil.copytree(two.folder, tmp_path / "again")
    asked: Any = {"out": tmp_path / "scores", "baselines": False, "long": "truncate", "limit": 1}
    report = precis.evaluate([other, two.folder, tmp_path / "again"], pairs, split="test", **asked)
    assert [row.name for row in report.systems] == ["other greedy", "two beam 4", "again beam 4"]
    assert [run.name for run in report.systems[2].runs] == ["again/seed-0 beam 4", "again/seed-1 beam 4"]
    with pytest.raises(UserError, match=r"model .*seed-1 is given twice"):
        precis.evaluate([two.folder, two.folder / "seed-1"], pairs, **asked)


TUNED: Any = {**BRIEF, "settings": ["prefix.length=2", "generated_rows=0"], "learning_rate": 0.001}
TUNED.pop("recipe")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("bart", tmp_path_factory.mktemp("base"), positions=256)


@pytest.fixture(scope="module")
def tuned(base: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> SeedRuns:
    return train_seeds(precis.tune, base, pairs, seeds=2, seed=3, out=tmp_path_factory.mktemp("out"), **TUNED)


@pytest.mark.long
def test_everything_that_takes_an_adapter_takes_a_run_and_refuses_a_folder_of_seeds_alike(
    base: Path, pairs: Path, tuned: SeedRuns, tmp_path: Path
) -> None:
    model = AutoModelForSeq2SeqLM.from_pretrained(base)
    folder = tuned.folder
    scored: Any = {"out": tmp_path / "scores", "baselines": False, "long": "truncate"}
    ways: list[Callable[[Path], object]] = [
        lambda place: precis.Summarizer.from_pretrained(place),
        lambda place: precis.Summarizer.from_pretrained(base, adapter=place),
        lambda place: precis.load_adapter(model, place).detach(),
        lambda place: read_adapter(place),
        lambda place: precis.evaluate(base, pairs, adapter=str(place), **scored),
        lambda place: precis.evaluate(place, pairs, adapter=str(folder / "seed-3"), **scored),
        lambda place: read_for_probing(base, [Pair(document="Ann sings.", summary="Ann")], adapters=[place]),
        lambda place: plan_push(place, "ann/first"),
    ]
    for way in ways:
        way(folder / "seed-3")
        with pytest.raises(UserError) as refused:
            way(folder)
        assert str(refused.value) == (
            f"{folder}: holds runs with several seeds, which `precis evaluate --model {folder}` scores together; "
            f"name one run, such as {folder / 'seed-3'}"
        )


def test_a_prefix_and_a_grounded_model_have_seeds_too(
    base: Path, pairs: Path, tuned: SeedRuns, tmp_path: Path
) -> None:
    assert all((run.folder / "adapter").is_dir() for run in tuned.runs.values())
    brief: Any = {**TUNED, "settings": ["generated_rows=0"]}
    grounded = train_seeds(precis.ground, base, str(pairs), seeds=2, out=tmp_path / "grounded", **brief)
    assert all(run.model is not None for run in grounded.runs.values())
    assert len(runs_with_seeds(tuned.folder)) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [({"seeds": 0}, "seeds 0: use 1 or more"), ({"seeds": 2, "seed": 2**32 - 1}, "seed 4294967296: use")],
)
def test_seeds_that_do_not_exist_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        train_seeds(precis.finetune, "nowhere", out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_folder_holds_one_run_or_runs_with_several_seeds(
    pairs: Path, two: SeedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"contains runs with several seeds; add seeds, or use another out"):
        precis.finetune(pairs, out=two.folder, **BRIEF)
    with pytest.raises(UserError, match="contains a run or a search; use another --out"):
        train_seeds(precis.finetune, pairs, seeds=2, out=two.folder / "seed-0", **BRIEF)
    with pytest.raises(UserError, match=r"holds runs with several seeds, .* name one run, such as .*seed-0"):
        precis.Summarizer.from_pretrained(two.folder)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="seeds runs in one process"):
        train_seeds(precis.finetune, pairs, seeds=2, out=tmp_path / "out", **BRIEF)


@pytest.mark.parametrize("content", ['{"seeds": []}', '{"seeds": ["../x"]}', '{"seed": 3}'])
def test_a_damaged_record_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "seeds.json").write_text(content)
    with pytest.raises(UserError, match=r"seeds\.json: lists no seeds; repeat the command that trained them"):
        runs_with_seeds(tmp_path)
