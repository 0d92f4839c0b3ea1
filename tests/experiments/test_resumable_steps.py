"""Claims about experiments made of steps: what is done stays done, what was stopped goes on, work can be shared."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from precis.recipes.run_plan import PRECISION
from precis.storage.locks import locked
from precis_experiments.experiment import Experiment
from precis_experiments.resumable_steps import (
    Interrupted,
    Step,
    Study,
    chosen_steps,
    in_a_study,
    missing_steps,
)
from precis_text.config import Settings
from precis_text.errors import RunError, UserError


@dataclass(frozen=True, kw_only=True)
class Size(Settings):
    rows: int = 3


def test_done_steps_are_not_run_again_and_a_stopped_one_is(tmp_path: Path) -> None:
    ran: list[str] = []

    def work(name: str, *, stop: bool = False) -> Step:
        def run(place: Path) -> dict[str, int]:
            ran.append(name)
            assert place.is_dir()
            if stop:
                raise Interrupted
            return {"found": len(name)}

        return Step(name, run)

    study = Study(tmp_path / "s", Size(), name="test")
    with pytest.raises(Interrupted):
        study.work([work("a"), work("bb", stop=True), work("c")], lambda _: None)
    again = Study(tmp_path / "s", Size(), name="test")
    results = again.work([work("a"), work("bb"), work("c")], lambda _: None)
    assert ran == ["a", "bb", "bb", "c"]
    assert {name: result["found"] for name, result in results.items()} == {"a": 1, "bb": 2, "c": 1}


def test_chosen_steps_bring_those_that_they_need() -> None:
    def step(name: str, *needs: str) -> Step:
        return Step(name, lambda _: {}, needs=needs)

    steps = [
        step("pack"),
        step("base", "pack"),
        step("tuned-a-0", "base"),
        step("tuned-a-1", "base"),
        step("alone"),
    ]
    assert chosen_steps(steps, ()) == steps
    assert [each.name for each in chosen_steps(steps, ["tuned-a-1"])] == ["pack", "base", "tuned-a-1"]
    assert [each.name for each in chosen_steps(steps, ["tuned-*", "pack"])] == [
        "pack",
        "base",
        "tuned-a-0",
        "tuned-a-1",
    ]
    with pytest.raises(UserError, match=r"--only tuned-b: .* names are pack, base, tuned-a-\*, alone"):
        chosen_steps(steps, ["tuned-b"])


def test_the_table_of_chosen_steps_has_the_results_that_were_there(tmp_path: Path) -> None:
    study: Experiment[Size] = Experiment(
        name="test",
        scales={},
        steps=lambda _, __: [Step(name, lambda _: {}) for name in "abc"],
        table=lambda _, results: " ".join(results),
    )
    study(Size(), data=tmp_path, out=tmp_path / "s", notify=lambda _: None, only=["a"])
    text = study(Size(), data=tmp_path, out=tmp_path / "s", notify=lambda _: None, only=["c"])
    assert text == "Unfinished: 2 of 3 steps are done. Missing: b.\n\na c"


def test_a_table_names_twelve_unfinished_steps_and_counts_the_others() -> None:
    steps = [Step(f"s{number}", lambda _: {}) for number in range(20)]
    text = missing_steps(steps, {"s0": {}})
    assert text.startswith("Unfinished: 1 of 20 steps are done. Missing: s1, s2, ")
    assert text.endswith("s12 and 7 more.\n\n")
    assert missing_steps(steps[:1], {"s0": {}}) == ""


def test_time_spent_before_an_interruption_counts_and_tidying_waits_for_the_result(tmp_path: Path) -> None:
    tries: list[int] = []

    def run(place: Path) -> dict[str, int]:
        tries.append(1)
        (place / "needed").write_text("to go on")
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        if len(tries) == 1:
            raise Interrupted
        return {}

    step = Step("a", run, tidy=lambda place: (place / "needed").unlink(missing_ok=True))
    study = Study(tmp_path / "s", Size(), name="test")
    with pytest.raises(Interrupted):
        study.work([step], lambda _: None)
    assert (study.place("a") / "needed").exists()
    found = study.work([step], lambda _: None)["a"]
    assert found["cpu_seconds"] >= 0.1
    assert not (study.place("a") / "needed").exists()
    (study.place("a") / "needed").write_text("left by a kill")
    study.work([step], lambda _: None)
    assert not (study.place("a") / "needed").exists()
    assert len(tries) == 2


FORK = multiprocessing.get_context("fork")


def _work(folder: Path, who: int, start: Any) -> None:
    study = Study(folder, Settings(), name="test")

    def step(name: str, *needs: str) -> Step:
        def run(place: Path) -> dict[str, Any]:
            with (place / "tries").open("a") as file:
                file.write("x")
            time.sleep(0.1)
            return {"by": who, "found": all(study.result(need) is not None for need in needs)}

        return Step(name, run, needs=needs)

    steps = [step("a"), step("b"), step("c", "a", "b"), step("d"), step("e")]
    start.wait()
    assert len(study.work(steps, lambda _: None, poll_seconds=0.02)) == 5


def _hold(place: Path, holds: Any) -> None:
    with locked(place):
        holds.set()
        time.sleep(60)


@contextmanager
def holder_of(place: Path) -> Iterator[Any]:
    """Another process that has the lock of a folder."""
    place.mkdir(parents=True, exist_ok=True)
    holds = FORK.Event()
    other = FORK.Process(target=_hold, args=(place, holds))
    other.start()
    try:
        assert holds.wait(20)
        yield other
    finally:
        other.kill()
        other.join()


def noted(ran: list[str], name: str, *, needs: tuple[str, ...] = ()) -> Step:
    def run(_: Path) -> dict[str, int]:
        ran.append(name)
        return {}

    return Step(name, run, needs=needs)


def test_two_processes_share_the_steps_and_none_is_done_twice(tmp_path: Path) -> None:
    start = FORK.Barrier(2)
    both = [FORK.Process(target=_work, args=(tmp_path / "s", who, start)) for who in (1, 2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
        assert process.exitcode == 0
    study = Study(tmp_path / "s", Settings(), name="test")
    assert [(study.place(name) / "tries").read_text() for name in "abcde"] == ["x"] * 5
    results = [study.result(name) or {} for name in "abcde"]
    assert {result["by"] for result in results} == {1, 2}
    assert all(result["found"] for result in results)  # the steps that it needs were done


def test_what_another_process_is_at_is_left_to_it_until_it_dies(tmp_path: Path) -> None:
    study = Study(tmp_path / "s", Size(), name="test")
    ran: list[str] = []
    told: list[str] = []
    steps = [noted(ran, "a"), noted(ran, "b", needs=("a",)), noted(ran, "c")]
    with holder_of(study.place("a")) as other:

        def notify(line: str) -> None:
            told.append(line)
            if line.startswith("waiting"):
                other.kill()

        study.work(steps, notify, poll_seconds=0.05)
    assert ran == ["c", "a", "b"]
    assert told == ["[3/3] c", "waiting for other processes: 2 of 3 steps are left", "[1/3] a", "[2/3] b"]


def test_a_step_that_is_finished_between_the_look_and_the_lock_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, ran = Study(tmp_path / "s", Size(), name="test"), list[str]()

    @contextmanager
    def late(place: Path) -> Iterator[None]:
        (place / "result.json").write_text("{}")
        yield

    monkeypatch.setattr("precis_experiments.resumable_steps.locked", late)
    assert study.work([noted(ran, "a")], lambda _: None, poll_seconds=0.01) == {"a": {}}
    assert ran == []


def test_needs_name_earlier_steps_and_names_are_given_once(tmp_path: Path) -> None:
    study = Study(tmp_path / "s", Size(), name="test")
    with pytest.raises(ValueError, match=r"'a' needs \['b'\], but no earlier step"):
        study.work([noted([], "a", needs=("b",)), noted([], "b")], lambda _: None)
    with pytest.raises(ValueError, match="two steps have the name 'a'"):
        study.work([noted([], "a"), noted([], "a")], lambda _: None)


def test_a_study_is_not_run_by_torchrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="start the same command several times"):
        Study(tmp_path / "s", Size(), name="test").work([], lambda _: None)


def test_the_table_is_written_after_every_step_and_names_what_is_missing(tmp_path: Path) -> None:
    ran, seen = list[str](), list[str]()

    def stop(_: Path) -> dict[str, int]:
        seen.append((tmp_path / "s" / "table.md").read_text())
        raise Interrupted

    steps = [noted(ran, "a"), noted(ran, "b"), Step("c", stop)]
    study = Experiment(
        name="test",
        scales={"one": Size()},
        steps=lambda *_: steps,
        table=lambda _, results: f"of {', '.join(results)}\n",
    )
    again = partial(study, Size(), data=tmp_path, out=tmp_path / "s", notify=lambda _: None)
    with pytest.raises(Interrupted):
        again()
    assert seen == ["Unfinished: 2 of 3 steps are done. Missing: c.\n\nof a, b\n"]
    steps[2] = noted(ran, "c")
    assert again() == (tmp_path / "s" / "table.md").read_text() == "of a, b, c\n"


@dataclass(frozen=True, kw_only=True)
class Named(Settings):
    name: str = "smoke"
    rows: int = 3
    start: str = ""
    weights: str = ""
    beside: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)


@pytest.mark.parametrize(
    ("settings", "name", "told"),
    [
        (Named(), "two", "one, now two; resume with one,"),
        (Named(name="micro", rows=4), "one", "--scale smoke, now --scale micro; resume with --scale smoke,"),
        (Named(start="/m", weights="ab"), "one", "no --model, now --model /m; resume with no --model,"),
        (Named(weights="ab"), "one", "no --model of the weights, now --model of the weights ab; resume"),
        (
            Named(beside=("t5", "x/y")),
            "one",
            "no --beside, now --beside t5 --beside x/y; resume with no --beside,",
        ),
        (Named(rows=4), "one", "settings.rows=3, now 4; another version of precis started it: name another"),
    ],
)
def test_a_folder_of_other_options_is_refused_in_words_of_the_command_line(
    settings: Named, name: str, told: str, tmp_path: Path
) -> None:
    Study(tmp_path / "s", Named(), name="one", data=tmp_path)
    Study(tmp_path / "s", Named(seeds=(0, 1)), name="one", data=tmp_path)
    with pytest.raises(UserError) as refused:
        Study(tmp_path / "s", settings, name=name, data=tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / 's'} was started with {told}")
    assert "folder with --out" in str(refused.value)


def test_other_data_and_another_precision_are_told_in_words_of_the_command_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    Study(tmp_path / "s", Named(), name="one", data=tmp_path)
    with pytest.raises(
        UserError, match=f"--data {tmp_path}, now --data {tmp_path / 'b'}; resume with --data"
    ):
        Study(tmp_path / "s", Named(), name="one", data=tmp_path / "b")
    monkeypatch.setenv(PRECISION, "bf16")
    with pytest.raises(
        UserError, match="--precision fp32, now --precision bf16; resume with --precision fp32, or"
    ):
        Study(tmp_path / "s", Named(), name="one", data=tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        Study(tmp_path / "file", Size(), name="one")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("r/run holds no checkpoint; start again with --restart", "r/run holds no checkpoint"),
        ("d: no dev file; name one with --data", "d: no dev file; name one with --data"),
        ("3 of 9 texts are longer than 5 tokens: raise --max-target", "3 of 9 texts are longer than 5 tokens"),
        ("3 do not fit: the model reads passages (raise --max-source)", "3 do not fit: the model reads passages"),
        ("no pack; make one with `precis data pack X`", "no pack"),
        ("--max-source 900: too long", "--max-source 900: too long"),
    ],
)  # fmt: skip
def test_messages_of_steps_give_no_advice_for_options_that_a_study_decides(text: str, told: str) -> None:
    assert in_a_study(text) == told


@pytest.mark.parametrize("kind", [UserError, RunError])
def test_an_error_of_a_step_names_the_step_and_what_the_user_of_a_study_can_do(
    kind: type[Exception], tmp_path: Path
) -> None:
    def fail(_: Path) -> dict[str, int]:
        raise kind("the run has other settings; start again with --restart or another --out")

    study = Study(tmp_path / "s", Size(), name="one")
    with pytest.raises(kind) as told:
        study.work([Step("a", fail)], lambda _: None)
    assert str(told.value) == (
        "step a: the run has other settings; the study decides this: delete "
        f"{tmp_path / 's' / 'steps' / 'a'} and repeat the command, or use another --scale"
    )
