"""A learning curve trains on nested parts, resumes, scores all on the same test pairs, and advises by the intervals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precis.data.pairs.pair_reader import read_pairs
from precis.data.synthetic.corpus import make_pairs
from precis.evaluation.significance import OVER_RUNS, Interval, PairedTest
from precis.phases.plans import learning_curve as module
from precis.phases.plans.learning_curve import CurvePoint, LearningCurve, learning_curve
from precis_text.errors import UserError

SHAPE = ["hidden_size=32", "intermediate_size=64", "encoder_layers=1", "decoder_layers=1", "vocab_size=600"]
SMALL: dict[str, Any] = {
    "recipe": "zcodepp-micro",
    "steps": 2,
    "batch_tokens": 1000,
    "max_source": 64,
    "settings": [
        *(f"model.{each}" for each in SHAPE),
        "generated_rows=2",
        "generation.max_tokens=8",
        "generation.beams=1",
    ],
}


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "has_default_model", lambda: False)
    rows = [
        {"document": pair.document, "summary": pair.summary, "id": str(n)}
        for n, pair in enumerate(make_pairs(40, seed=1))
    ]
    place = tmp_path / "pairs.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def ids(file: Path) -> set[str]:
    return {pair.id for pair in read_pairs(file)}


@pytest.mark.long
def test_parts_of_a_seed_contain_each_other_and_no_test_or_dev_pair(pairs: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "out", list[str]()
    curve = learning_curve(pairs, sizes=[12, 6], seeds=2, out=out, notify=told.append, **SMALL)
    parts = {(n, seed): ids(out / "pairs" / f"{seed}-{n}.jsonl") for n in (6, 12) for seed in (0, 1)}
    assert [len(part) for part in parts.values()] == [6, 6, 12, 12]
    assert parts[6, 0] < parts[12, 0]
    assert parts[6, 1] < parts[12, 1]
    assert parts[12, 0] != parts[12, 1]
    test, dev = ids(out / "pairs" / "test.jsonl"), ids(out / "pairs" / "dev.jsonl")
    assert len(test) == 8
    assert not (test | dev) & {name for part in parts.values() for name in part}
    assert not test & dev
    assert told[0] == "no test split: 8 pairs of the training pairs are held out for testing"
    assert "run 4 of 4: 12 pairs, seed 1" in told[-1]

    assert [(point.pairs, point.seeds) for point in curve.points] == [(6, (0, 1)), (12, (0, 1))]
    assert list(curve.levels) == ["LEAD-2"]
    record = json.loads((out / "scores" / "scores.json").read_text())
    means = [record["systems"][f"6-{seed} greedy"]["metrics"]["rougeL"]["mean"] for seed in (0, 1)]
    assert curve.points[0].scores["rougeL"].mean == pytest.approx(sum(means) / 2, abs=1e-3)
    assert curve.advice in (out / "curve.md").read_text()
    assert (out / "curve.png").stat().st_size > 1000
    record = json.loads((out / "runs" / "12-1" / "settings.json").read_text())
    assert record["run"]["train"]["seed"] == 1


@pytest.mark.long
def test_a_repeated_call_trains_what_is_missing_and_other_settings_are_refused(
    pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    learning_curve(pairs, sizes=[6], seeds=1, out=out, **SMALL)
    before = (out / "runs" / "6-0" / "model" / "model.safetensors").stat().st_mtime_ns
    curve = learning_curve(pairs, sizes=[6, 9], seeds=1, out=out, **SMALL)
    assert (out / "runs" / "6-0" / "model" / "model.safetensors").stat().st_mtime_ns == before
    assert [point.pairs for point in curve.points] == [6, 9]
    with pytest.raises(UserError, match=r"started with steps=2, now 3; add --restart"):
        learning_curve(pairs, sizes=[6], seeds=1, out=out, **{**SMALL, "steps": 3})
    again = learning_curve(pairs, sizes=[6], seeds=1, out=out, restart=True, **{**SMALL, "steps": 3})
    assert (again.points[0].pairs, (out / "runs" / "9-0").exists()) == (6, False)


def test_an_interrupted_run_ends_the_curve_without_scores(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_train", lambda *_, **__: False)
    curve = learning_curve(pairs, sizes=[6], seeds=1, out=tmp_path / "out", **SMALL)
    assert (curve.points, (tmp_path / "out" / "curve.md").exists()) == ((), False)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"sizes": []}, "give different numbers of pairs"),
        ({"sizes": [6, 6]}, "give different numbers of pairs"),
        ({"sizes": [400]}, "--curve 400: 31 pairs are left to train on; use up to that number"),
        ({"seeds": 0}, "--seeds 0: use 1 or more"),
        ({"answer": "head"}, "omit --curve or --answer head"),
        ({"examples": 5}, "--examples and --curve both draw the pairs"),
    ],
)
def test_what_a_curve_cannot_do_is_refused_before_training(
    asked: dict[str, Any], says: str, pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=says):
        learning_curve(pairs, **{"sizes": [6], "seeds": 1, "out": tmp_path / "out", **SMALL, **asked})
    assert not (tmp_path / "out" / "runs").exists()


def curve_of(*differences: tuple[float, float] | PairedTest) -> LearningCurve:
    """A curve whose points have these tests, or bounds, of the difference to chosen sentences."""

    def interval(low: float, high: float) -> Interval:
        return Interval(mean=(low + high) / 2, low=low, high=high, samples=10)

    def tested(low: float, high: float) -> PairedTest:
        return PairedTest(difference=interval(low, high), p_value=0.2 if low <= 0 <= high else 0.01)

    tests = [each if isinstance(each, PairedTest) else tested(*each) for each in differences]
    points = [
        CurvePoint(pairs=10 * (n + 1), seeds=(0,), scores={"rougeL": interval(20, 22)}, over_choice=test)
        for n, test in enumerate(tests)
    ]
    levels = {"default extract": {"rougeL": interval(23, 25)}}
    return LearningCurve(folder=Path("out"), points=points, levels=levels, choose="precis extractor ...")


def test_advice_is_to_choose_where_the_most_pairs_do_not_reach_chosen_sentences() -> None:
    assert curve_of((-9, -8), (-4, -2)).advice == (
        "advice: choose, do not write: after 20 pairs models reach ROUGE-L 21.0 [20.0, 22.0], "
        "chosen sentences 24.0 [23.0, 25.0]; to choose: precis extractor ..."
    )


def test_advice_is_to_write_from_where_all_further_points_are_above_chosen_sentences() -> None:
    found = curve_of((1, 2), (-1, 2), (1, 2), (3, 4))
    assert found.advice.startswith(
        "advice: write from 30 pairs on: models reach ROUGE-L 21.0 [20.0, 22.0] there"
    )


def test_advice_says_that_the_pairs_do_not_decide() -> None:
    assert "20 pairs do not decide" in curve_of((-9, -8), (-1, 2)).advice
    assert "20 pairs do not decide" in curve_of((-9, -8), (0, 2)).advice


def test_two_runs_decide_only_what_students_test_decides() -> None:
    apart = OVER_RUNS.runs_paired(np.array([[1.0, 2.0], [5.0, 6.0]]))  # a range above 0
    assert (
        "10 pairs do not decide: ROUGE-L over that of chosen sentences is 3.5 [1.5, 5.5]"
        in curve_of(apart).advice
    )
    alike = OVER_RUNS.runs_paired(np.array([[1.0, 1.1], [1.0, 1.1]]))
    assert "write from 10 pairs on" in curve_of(alike).advice
