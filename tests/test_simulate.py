"""The simulated faults find what they should find, and the same seed finds it again."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from faults import forked, simulate
from precis.server.engine import Engine, QueuedDocument
from precis.storage.journal import Journal


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
