"""The harness: contenders in processes of their own, in turn; what goes wrong is named, and the rest goes on."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.compare import harness
from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from benchmarks.compare.harness import measure, rotated
from benchmarks.compare.neighbours import Neighbours
from benchmarks.compare.process import ContenderError, Worker
from benchmarks.compare.results import Memory, Results, Sample
from precis.nn.disentangled.cpp_loader import COMPILE

CONTENDERS = """
import os
import signal
import sys

from precis_text.errors import UserError

def make(*, name, cell, log):
    def one_pass():
        with open(log, "a") as file:
            waiting = os.environ.get("OMP_WAIT_POLICY")
            print(name, cell, os.getpid(), os.environ.get("PRECIS_COMPILE"), waiting, file=file)
    return one_pass

def fail(*, name, cell, log):
    print("about to fail", file=sys.stderr)
    raise ValueError("no such size")

def refuse(*, name, cell, log):
    raise UserError("no compiler here; install one")

def die(*, name, cell, log):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def contender(tmp_path: Path) -> Callable[..., Contender]:
    (tmp_path / "contenders_of_a_test.py").write_text(CONTENDERS)

    def build(name: str, *, function: str = "make", **options: Any) -> Contender:
        return Contender(
            name=name,
            make=f"contenders_of_a_test:{function}",
            arguments={"name": name, "log": str(tmp_path / "log")},
            environment={"PYTHONPATH": str(tmp_path)},
            **options,
        )

    return build


CELLS = [Cell(name="small", arguments={"cell": "small"}), Cell(name="large", arguments={"cell": "large"})]
SETTINGS = BenchSettings(rounds=3, seconds=0.0, threads=1, memory=False)


def test_contenders_take_turns_in_processes_of_their_own(
    contender: Callable[..., Contender], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPILE, "1")  # the user's, which must not change what is compared
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    contenders = [
        contender("one"),
        contender("two", skip={"large": "too slow"}),
        contender("three", requires="no_such_package"),
        contender("four", program="no-such-program"),
        contender("five", missing="this CPU lacks bf16"),
    ]
    told: list[Any] = []
    results = measure(contenders, CELLS, SETTINGS, notify=told.append)
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    small = [name for name, cell, *_ in lines if cell == "small"]
    assert small == ["one", "two", *("one", "two"), *("two", "one"), *("one", "two")]  # warm-up, three rounds
    assert len({pid for _, _, pid, _, _ in lines}) == 2
    assert {(compiled, waiting) for *_, compiled, waiting in lines} == {("None", "None")}
    measured = [results.of(size, "one") for size in ("small", "large")]
    assert [len(one.samples) for one in measured if one is not None] == [3, 3]
    assert results.of("large", "two") is None
    assert set(results.left_out) == {
        ("two", "large", "too slow"),
        ("three", "", "no_such_package is not installed"),
        ("four", "", "no-such-program is not installed"),
        ("five", "", "this CPU lacks bf16"),
    }
    assert told == ["small: timed", "large: timed"]
    assert results.failed == ()


def test_a_process_says_why_it_failed_and_how_it_ended(contender: Callable[..., Contender]) -> None:
    cell = CELLS[0]
    with Worker(contender("one"), threads=1, environment={}) as worker:
        said, logs = [], []
        for function in ("fail", "refuse", "die", "die"):
            worker._contender = contender("one", function=function)
            with pytest.raises(ContenderError) as caught:
                worker.prepare(cell)
            said.append((str(caught.value), caught.value.unable))
            logs.append(caught.value.log)
    assert logs[0][0] == "about to fail"
    assert logs[0][-1] == "ValueError: no such size"
    ended = ("the process was ended by SIGKILL (out of memory?)", False)
    assert said == [
        ("ValueError: no such size", False),
        ("no compiler here; install one", True),
        ended,
        ended,
    ]


class Played:
    """In the place of a process: what the contender's `environment` says happens in a cell."""

    started: ClassVar[list[str]] = []

    def __init__(self, contender: Contender, *, threads: int, environment: object) -> None:
        self.contender, self.cell = contender, ""
        self.started.append(contender.name)

    def prepare(self, cell: Cell) -> None:
        self.cell = cell.name
        self.fail_in("prepare")

    def time(self, seconds: float) -> Sample:
        self.fail_in("time")
        return Sample(wall=1.0, cpu=1.0, passes=1, foreign=0.0)

    def memory(self) -> Memory:
        self.fail_in("memory")
        return Memory(process_mb=2.0, added_mb=1.0, tensors_mb=1.0)

    def release(self) -> None:
        pass

    def end(self, *, at_once: bool = False) -> None:
        pass

    def fail_in(self, step: str) -> None:
        if self.contender.environment.get(self.cell) in (step, f"unable to {step}"):
            unable = self.contender.environment[self.cell].startswith("unable")
            raise ContenderError(f"no {step}", log=("line",), unable=unable)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Results, list[Any]]]:
    monkeypatch.setattr(harness, "Worker", Played)
    monkeypatch.setattr(Played, "started", [])

    def run(behaviour: dict[str, dict[str, str]], *, memory: bool = False) -> tuple[Results, list[Any]]:
        contenders = [Contender(name=n, make="", environment=cells) for n, cells in behaviour.items()]
        kept: list[Any] = []
        settings = BenchSettings(rounds=2, memory=memory)
        results = measure(contenders, CELLS, settings, notify=lambda _: None, keep=kept.append)
        return results, kept

    return run


def test_a_contender_that_breaks_in_a_cell_is_named_there_and_plays_in_the_next_with_a_new_process(
    played: Callable[..., tuple[Results, list[Any]]],
) -> None:
    results, kept = played({"whole": {}, "early": {"small": "prepare"}, "late": {"small": "time"}})
    assert [str(failure) for failure in results.failed] == [
        "early, small: no prepare",
        "late, small: no time",
    ]
    assert [(m.cell, m.contender) for m in results.measured] == [
        ("small", "whole"),
        *(("large", name) for name in ("whole", "early", "late")),
    ]
    assert {len(m.samples) for m in results.measured} == {2}
    assert Played.started == ["whole", "early", "late", "early", "late"]
    assert [len(each.measured) for each in kept] == [1, 4]


def test_a_contender_that_cannot_be_run_here_is_left_out_of_all_cells_from_there_on(
    played: Callable[..., tuple[Results, list[Any]]],
) -> None:
    results, _ = played({"whole": {}, "kernel": {"small": "unable to prepare"}}, memory=True)
    assert results.left_out == (("kernel", "small", "no prepare"),)
    assert {m.contender for m in results.measured} == {"whole"}
    assert results.failed == ()


def test_memory_is_kept_cell_by_cell_and_its_failure_spares_the_times(
    played: Callable[..., tuple[Results, list[Any]]],
) -> None:
    results, kept = played({"whole": {}, "large": {"large": "memory"}}, memory=True)
    assert [sum(m.memory is not None for m in each.measured) for each in kept] == [0, 0, 1, 2, 3, 3]
    assert [str(failure) for failure in results.failed] == ["large, large: no memory"]
    large = results.of("large", "large")
    assert large is not None
    assert len(large.samples) == 2


def test_each_round_times_a_cell_alone_and_beside_its_neighbours(
    contender: Callable[..., Contender], tmp_path: Path
) -> None:
    cell = Cell(name="small", arguments={"cell": "small"}, neighbours=(0, 1))
    settings = BenchSettings(rounds=2, seconds=0.1, threads=1, memory=False)
    results = measure([contender("one"), contender("two")], [cell], settings, notify=lambda _: None)
    assert [(m.cell, m.contender, len(m.samples)) for m in results.measured] == [
        (row, name, 2) for row in ("small", "small, with 1 spinning") for name in ("one", "two")
    ]


def test_neighbours_use_processor_time_and_are_gone_afterwards() -> None:
    with Neighbours(2) as neighbours:
        pids = [process.pid for process in neighbours._processes]
        end = time.monotonic() + 60
        while neighbours.cpu_seconds() < 0.1 and time.monotonic() < end:
            time.sleep(0.01)
        assert neighbours.cpu_seconds() >= 0.1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_every_round_begins_with_another_contender() -> None:
    assert [rotated("abc", number) for number in (0, 1, 4)] == [list("abc"), list("bca"), list("bca")]
    assert rotated("", 3) == []
