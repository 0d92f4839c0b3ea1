"""The simulated faults find what they should find, and the same seed finds it again."""

from collections.abc import Sequence

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
