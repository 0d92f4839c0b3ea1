"""The simulated faults find what they should find, and the same seed finds it again."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from pathlib import Path

import pytest

from faults import forked, outcomes, simulate
from faults.faulty_disk import NONE
from faults.outcomes import Outcome
from faults.pictures import Pictures
from precis.server.engine import Engine, QueuedDocument
from precis.storage.journal import Journal
from precis.training.curves import draw_curves


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> simulate.World:
    forked.import_everything()
    return simulate.World(tmp_path_factory.mktemp("world"))


def first_that_fails(world: simulate.World, name: str, *, among: int) -> int | None:
    seeds = (seed for seed in range(among) if simulate.try_seed(world, seed, only=name)[1])
    return next(seeds, None)


@pytest.mark.slow
def test_a_journal_that_leaves_torn_lines_is_found_and_found_again(
    world: simulate.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The children see the change, since they are forked from this process."""
    begin = Journal._start

    def without_repair(journal: Journal) -> None:
        if journal._lines.end == 0:
            begin(journal)

    world.alone("summarize")
    with monkeypatch.context() as changed:
        changed.setattr(Journal, "_start", without_repair)
        seed = first_that_fails(world, "summarize", among=20)
        assert seed is not None
        assert simulate.try_seed(world, seed, only="summarize")[1]
    assert simulate.try_seed(world, seed, only="summarize")[1] == []


@pytest.mark.slow
def test_a_queue_that_counts_clients_who_left_is_found(
    world: simulate.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted_for_ever(engine: Engine, jobs: Sequence[QueuedDocument]) -> None:
        with engine._changed:
            for job in jobs:
                engine._give_up(job)
            engine._queue = [job for job in engine._queue if not job.given_up]

    assert first_that_fails(world, "serve", among=2) is None
    monkeypatch.setattr(Engine, "forget", counted_for_ever)
    assert first_that_fails(world, "serve", among=8) is not None


def test_a_failure_names_the_command_that_repeats_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "World", lambda _: None)
    monkeypatch.setattr(simulate, "try_seed", lambda *_, **__: ("evaluate", ["a line is lost"]))
    assert simulate._try(range(7, 8), None) == 1
    assert "evaluate: a line is lost (again: python -m faults.simulate --seed 7)" in capsys.readouterr().out


def test_a_start_that_takes_too_long_was_not_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a busy machine a start may be slow: that is neither held nor failed, and the exit code is not 0."""

    def late(world: simulate.World, seed: int, *, only: str | None) -> tuple[str, list[str]]:
        if seed == 8:
            raise simulate.LateError("evaluate: killed after 300 s")
        return "evaluate", []

    monkeypatch.setattr(simulate, "World", lambda _: None)
    monkeypatch.setattr(simulate, "try_seed", late)
    assert simulate._try(range(7, 10), None) == 1
    told = capsys.readouterr().out
    assert "not tried: evaluate: killed after 300 s (again: python -m faults.simulate --seed 8)" in told
    assert told.endswith("2 tried, 0 failed\n")


def test_a_child_that_outlasts_the_patience_is_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def slow(_: list[str]) -> int:
        time.sleep(30)
        return 0

    monkeypatch.setattr(forked, "PATIENCE", 0.2)
    ended = forked.run([], tmp_path / "log", prepare=lambda: lambda: 0, command=slow)
    assert ended.is_late
    assert not forked.run([], tmp_path / "log", prepare=lambda: lambda: 0, command=lambda _: 0).is_late


def held(seed: int) -> Outcome:
    return Outcome(seed=seed, subject="train")


def test_several_processes_give_the_outcomes_in_the_order_of_the_seeds() -> None:
    """Each process begins once; the pid of the process stands for what it found."""

    def begin() -> Callable[[int], Outcome]:
        place = os.getpid()
        return lambda seed: Outcome(
            seed=seed, subject=str(place), wrong=[] if place == os.getpid() else ["moved"]
        )

    found = list(outcomes.in_turn(range(40), begin, jobs=2))
    assert [outcome.seed for outcome in found] == [*range(40)]
    assert all(outcome.held for outcome in found)
    assert str(os.getpid()) not in {outcome.subject for outcome in found}
    assert {outcome.subject for outcome in outcomes.in_turn(range(3), begin, jobs=1)} == {str(os.getpid())}


def test_a_process_that_dies_ends_the_seeds_with_an_error() -> None:
    def begin() -> Callable[[int], Outcome]:
        return lambda seed: held(seed) if seed < 3 else os._exit(1)

    with pytest.raises(BrokenProcessPool):
        list(outcomes.in_turn(range(10), begin, jobs=2))


def test_a_record_leaves_out_what_held_and_tries_again_what_failed_or_was_late(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[int] = []
    answers = {8: ("evaluate", ["a line is lost"])}

    def try_seed(world: simulate.World, seed: int, *, only: str | None) -> tuple[str, list[str]]:
        written = record.read_text().count("late") if record.exists() else 0
        assert len(tried) == written  # at once, since a kill may come
        tried.append(seed)
        if seed == 9 and len(tried) < 4:
            raise simulate.LateError("killed after 300 s")
        return answers.get(seed, ("train", []))

    monkeypatch.setattr(simulate, "World", lambda _: None)
    monkeypatch.setattr(simulate, "try_seed", try_seed)
    record = tmp_path / "record.jsonl"
    assert simulate._try(range(7, 10), None, record=record) == 1
    record.write_bytes(record.read_bytes() + b'{"seed": 1')  # a kill tore the line
    answers.clear()
    assert simulate._try(range(7, 11), None, record=record) == 0
    assert tried == [7, 8, 9, 8, 9, 10]
    assert capsys.readouterr().out.endswith("train 4\nseeds 7 to 10: 4 tried, 0 failed\n")
    assert simulate._try(range(7, 11), None, record=record) == 0
    assert len(tried) == 6


def test_a_record_counts_for_its_subject_and_its_code_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[tuple[int, str | None]] = []

    def try_seed(world: simulate.World, seed: int, *, only: str | None) -> tuple[str, list[str]]:
        tried.append((seed, only))
        return only or "train", []

    monkeypatch.setattr(simulate, "World", lambda _: None)
    monkeypatch.setattr(simulate, "try_seed", try_seed)
    record = tmp_path / "record.jsonl"
    for only in ("train", "train", None, "batch", None):
        assert simulate._try(range(2), only, record=record) == 0
    assert tried == [(0, "train"), (1, "train"), (0, None), (1, None), (0, "batch"), (1, "batch")]
    told = capsys.readouterr().out
    assert f"{record}: 2 seeds of another --subject or of other code do not count" in told
    monkeypatch.setattr(outcomes, "code_version", lambda: "other")
    assert simulate._try(range(2), None, record=record) == 0
    assert tried[6:] == [(0, None), (1, None)]
    assert f"{record}: 6 seeds of another" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["5", "[]", "null", '{"seed": []}', '{"seed": 1, "more": 2}', '{"wrong": 3}']
)
def test_a_line_of_a_record_that_is_no_outcome_is_passed_over(line: str, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    record.write_text(f"{line}\n")
    outcomes.remember(held(3), record, of="train at 1")
    assert outcomes.read(record, of="train at 1") == {3: held(3)}


def test_the_version_of_the_code_changes_with_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "_ROOT", tmp_path)
    for name in ("faults/a.py", "packages/b/src/b/c.py"):
        before = outcomes.code_version()
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1")
        assert outcomes.code_version() != before
        assert outcomes.code_version() == outcomes.code_version()


def test_subjects_run_alone_in_order_and_one_that_is_late_is_left_to_its_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = simulate.World.__new__(simulate.World)
    world.subjects = dict.fromkeys(
        ["train", "summarize", "evaluate", "batch"], simulate.Subject(lambda _: [])
    )
    run: list[str] = []

    def alone(name: str) -> None:
        run.append(name)
        if name == "summarize":
            raise simulate.LateError("summarize: killed after 300 s")

    monkeypatch.setattr(world, "alone", alone)
    world.run_alone(None)
    world.run_alone("batch")
    world.run_alone("serve")
    assert run == ["train", "summarize", "evaluate", "batch", "batch"]


def test_a_late_run_alone_leaves_no_files_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = simulate.World.__new__(simulate.World)
    world.place, world._alone, world._events = tmp_path, {}, {}
    world._pictures = Pictures(tmp_path / "pictures")

    def start(name: str, out: Path, fault: object) -> forked.Ended:
        late = not out.parent.parent.exists()
        out.mkdir(parents=True)
        (out / ("half" if late else "whole")).write_text("1")
        if late:
            raise simulate.LateError("train: killed after 300 s")
        return forked.run([], tmp_path / "log", prepare=lambda: lambda: 0, command=lambda _: 0)

    monkeypatch.setattr(world, "start", start)
    with pytest.raises(simulate.LateError):
        world.alone("train")
    assert list(world.alone("train")[0]) == ["whole"]


def test_a_known_picture_is_written_in_the_same_pieces_and_another_one_is_drawn(tmp_path: Path) -> None:
    def draw(folder: Path, *, loss: float) -> Callable[[list[str]], int]:
        def command(_: list[str]) -> int:
            folder.mkdir(parents=True, exist_ok=True)
            draw_curves([{"kind": "train", "step": 1, "loss": loss}], folder / "curves.png")
            return 0

        return command

    def events(kept: str, folder: str, *, loss: float) -> tuple[int, bytes]:
        def prepare() -> Callable[[], int]:
            getattr(pictures, kept)()
            return NONE.prepare(tmp_path / "disk")()

        ended = forked.run([], tmp_path / "log", prepare=prepare, command=draw(tmp_path / folder, loss=loss))
        assert ended.code == 0, ended.said
        pictures.take_up()
        return ended.count, (tmp_path / folder / "curves.png").read_bytes()

    import_module("matplotlib.backends.backend_agg")  # makes a folder when it is imported
    pictures = Pictures(tmp_path / "pictures")
    without = forked.run(
        [],
        tmp_path / "log",
        prepare=NONE.prepare(tmp_path / "disk"),
        command=draw(tmp_path / "disk", loss=2.0),
    ).count
    first = events("keep", "disk", loss=2.0)
    assert first[0] == without
    (tmp_path / "disk" / "curves.png").unlink()
    assert events("use", "disk", loss=2.0) == first
    pictures._pieces = {name: [b"known"] for name in pictures._pieces}
    assert events("use", "disk", loss=2.0)[1] == b"known"
    assert events("use", "disk", loss=2.5)[1] not in (b"known", first[1])


def test_a_command_meets_an_interrupt_as_usual_though_its_parent_ignores_it(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = forked.run(
            [],
            tmp_path / "log",
            prepare=lambda: lambda: 0,
            command=lambda _: int(signal.getsignal(signal.SIGINT) is not signal.default_int_handler),
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.code == 0
