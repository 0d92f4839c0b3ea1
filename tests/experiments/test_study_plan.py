"""The plan of a study tells what is there and what is left, and writes nothing."""

from pathlib import Path

import pytest

from precis.cli import main
from precis_experiments.resumable_steps import Step
from precis_experiments.scales import SCALES
from precis_experiments.small_model import RELEASE_FOLDER, WRITING, default_model_plan
from precis_experiments.study_plan import Reads, StudyPlan
from precis_experiments.zcodepp_studies import fewshot
from precis_text.errors import UserError
from tests.experiments.test_experiment import jsonl


def plan(results: dict[str, float], *, scale: str = "micro", usual: float | None = 1.0) -> StudyPlan:
    """A plan of one packing and three trainings; `results` are the seconds of those that are done."""
    steps = [Step("pack", lambda _: {}), *(Step(f"tuned-{n}", lambda _: {}, updates=600) for n in range(3))]
    found = {name: {"seconds": seconds} for name, seconds in results.items()}
    return StudyPlan(name="x", scale=scale, out=Path("o"), steps=steps, results=found, update_seconds=usual)


def test_a_plan_has_a_row_for_each_kind_of_step_and_the_usual_time() -> None:
    fresh = plan({})
    assert fresh.table().rows == [["pack", "1", "1", "", "0"], ["tuned", "3", "3", "600", "30"]]
    assert fresh.summary() == "x, scale micro: 4 steps, 0 done in o, 4 left (about 31 minutes)"
    assert plan({}, usual=10.0).summary().endswith("(about 5 hours)")


def test_finished_steps_tell_the_time_of_the_others() -> None:
    some = plan({"pack": 60.0, "tuned-1": 1200.0})
    assert some.table().rows == [["pack", "1", "0", "", ""], ["tuned", "3", "2", "600", "40"]]
    assert some.summary().endswith("2 done in o, 2 left (about 40 minutes)")
    done = plan({"pack": 60.0, **{f"tuned-{n}": 1.0 for n in range(3)}})
    assert (
        done.summary() == "x, scale micro: 4 steps, 4 done in o, 0 left (the same command prints the table)"
    )


@pytest.mark.parametrize(("scale", "usual"), [("mini", 1.0), ("micro", None)])
def test_without_a_usual_time_a_plan_guesses_none(scale: str, usual: float | None) -> None:
    assert plan({}, scale=scale, usual=usual).table().rows[1][-1] == "?"
    assert (
        plan({}, scale=scale, usual=usual)
        .summary()
        .endswith("(no rough time before the first training is done)")
    )
    assert plan({"pack": 5.0, "tuned-0": 600.0}, scale=scale, usual=usual).table().rows[1][-1] == "20"


def test_data_sets_are_there_left_out_or_needed(tmp_path: Path) -> None:
    for place in ("samsum", "squad_v1.1"):
        jsonl(tmp_path / place / "train.jsonl", [{"document": "d", "summary": "s"}])
    (tmp_path / "texts").mkdir()
    tasks = ("samsum", "e2e", "xsum")
    reads = Reads(texts=("texts", "more"), grounding=("aeslc",), tasks=tasks, needed=("samsum", "e2e"))
    assert reads.missing(tmp_path) == ["aeslc", "e2e"]
    assert [row[1:] for row in reads.table(tmp_path).rows] == [
        ["texts", "in texts"],
        ["more", "missing: left out"],
        ["aeslc", "missing: the study stops without it"],
        ["samsum", "in samsum"],
        ["e2e", "missing: the study stops without it"],
        ["xsum", "missing: left out"],
    ]


def test_a_study_stops_before_its_first_step_without_the_data_that_it_needs(tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "dialogsum" / "train.jsonl", [{"document": "d", "summary": "s"}])
    with pytest.raises(
        UserError, match=r"data lacks aeslc, which zcodepp-fewshot needs at --scale smoke; add"
    ):
        fewshot(SCALES["smoke"], data=tmp_path / "data", out=tmp_path / "out", notify=print)
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_plan_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jsonl(tmp_path / "data" / "samsum" / "test.jsonl", [{"document": "d", "summary": "s"}])
    before = sorted(tmp_path.rglob("*"))
    line = ["reproduce", "zcodepp-fewshot", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    assert main([*line, "--scale", "smoke", "--plan"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        f"zcodepp-fewshot, scale smoke: 11 steps, 0 done in {tmp_path / 'out'}, 11 left (about "
    )
    assert "phase1+2-10" in printed
    assert "pretrain_wikinews   missing: the study stops without it" in printed
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plan_refuses_the_folder_of_another_scale(tmp_path: Path) -> None:
    notes: list[str] = []
    fewshot.plan(SCALES["micro"], data=tmp_path, out=tmp_path / "out", notify=notes.append)
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "study.json").write_text('{"study": "prophetnet", "settings": {"name": "micro"}}')
    with pytest.raises(UserError, match="was started with prophetnet, now zcodepp-fewshot"):
        fewshot.plan(SCALES["micro"], data=tmp_path, out=tmp_path / "out", notify=notes.append)


def test_the_plan_of_the_default_model_has_its_stages_and_those_that_are_done(tmp_path: Path) -> None:
    chosen = default_model_plan("micro", data=tmp_path, out=tmp_path / "out", writing=None)
    assert [row[:3] for row in chosen.table().rows] == [
        [name, "1", "1"] for name in ("pairs", "extract", "release")
    ]
    (tmp_path / "out" / "extract" / "model").mkdir(parents=True)
    written = default_model_plan("mini", data=tmp_path, out=tmp_path / "out", writing=WRITING["mini"])
    assert [(row[0], row[2], row[3]) for row in written.table().rows] == [
        ("pairs", "1", ""), ("pretrain", "1", "3,000"), ("write", "1", "2,000"), ("extract", "0", ""),
        (RELEASE_FOLDER, "1", ""),
    ]  # fmt: skip
