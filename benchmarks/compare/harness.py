"""Contenders in processes of their own, timed in turn, so that a ratio means something.

    table = [Cell(name="512 tokens", arguments={"tokens": 512, "batch": 2}), ...]
    contenders = [
        Contender(name="precis", make="benchmarks.compare.attention:ours"),
        Contender(name="transformers", make="benchmarks.compare.attention:deberta"),
    ]
    results = measure(contenders, table, BenchSettings(rounds=5))

A contender is an importable function `module:function`. In its process it is called with the contender's and the
cell's arguments (keywords, JSON values) and gives a function without arguments: one pass, the thing that is timed.
Building weights and inputs belongs before the return, and is not timed; the first pass warms up and is not either.

How it is measured:
- Every contender lives in one process for the whole run; its threads go to sleep a few milliseconds after its turn,
  as OpenMP's do unless the user says otherwise, which is not heard here. Within a cell the contenders take turns, in
  another order each round.
- A sample is the median of the passes in `seconds`; with it go the CPU seconds of a pass and the CPUs that other
  processes kept busy. A sample with more than `quiet` of them is kept, but counted as loaded.
- Memory comes from other processes, where glibc returns every large block (MALLOC_MMAP_THRESHOLD_): one pass, the
  peak of the process above what it held before, and the peak of the tensors only.
- A contender that cannot be run here is left out, and the results say so: its `requires` or `program` is not
  installed, `missing` says why, or it says so itself (`UserError`).
- A contender that breaks in a cell has failed there. Its process is ended, the others continue, and at the next cell it
  gets a new process.
- What is measured so far is handed on after every cell: a run that is killed keeps it.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from benchmarks.compare.neighbours import Neighbours
from benchmarks.compare.process import ContenderError, Worker
from benchmarks.compare.results import Failure, Measured, Memory, Results, Sample

# glibc gives pages of big blocks back at once, so that VmHWM follows the tensors
_MEMORY_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536"}

Item = TypeVar("Item")
Notify = Callable[[str], None]
Keep = Callable[[Results], None]


def measure(
    contenders: Sequence[Contender],
    cells: Sequence[Cell],
    settings: BenchSettings,
    *,
    notify: Notify = print,
    keep: Keep = lambda _: None,
) -> Results:
    """Run the table.

    Args:
        tell: gets a line when a cell is done, and when a contender fails.
        keep: gets what is measured so far, after every cell.
    """
    record = _Record(contenders, settings)
    with _Crew(record, environment={}, notify=notify) as crew:
        for cell in cells:
            record.samples |= _samples(cell, contenders, crew, settings)
            notify(f"{cell.name}: timed")
            keep(record.results())
    if settings.memory:
        for contender in contenders:
            with _Crew(record, environment=_MEMORY_ENVIRONMENT, notify=notify) as crew:
                for cell in cells:
                    record.memories |= _memory(cell, contender, crew)
                    keep(record.results())
            notify(f"{contender.name}: memory measured")
    return record.results()


def rotated(items: Sequence[Item], number: int) -> list[Item]:
    """Rotate the items so that each round starts with another one."""
    first = number % len(items) if items else 0
    return [*items[first:], *items[:first]]


def _samples(
    cell: Cell, contenders: Sequence[Contender], crew: _Crew, settings: BenchSettings
) -> dict[tuple[str, str], list[Sample]]:
    """Sample every contender once a round.

    A contender that fails on the way gets no sample, because rounds are compared in pairs.
    """
    for contender in contenders:
        if crew.record.plays(contender, cell):
            with crew.working(contender, cell) as worker:
                worker.prepare(cell)
    samples: dict[tuple[str, str], list[Sample]] = {}
    for number in range(settings.rounds):
        for count in cell.neighbours:
            playing = [c for c in contenders if crew.record.plays(c, cell)]
            with Neighbours(count) as neighbours:
                for contender in rotated(playing, number):
                    with crew.working(contender, cell) as worker:
                        found = _beside(neighbours, worker, settings.seconds)
                        samples.setdefault((cell.beside(count), contender.name), []).append(found)
    for contender in contenders:
        if crew.record.plays(contender, cell):
            with crew.working(contender, cell) as worker:
                worker.release()
    playing = [c for c in contenders if crew.record.plays(c, cell)]
    return {(row, c.name): samples[row, c.name] for row in cell.rows for c in playing}


def _beside(neighbours: Neighbours, worker: Worker, seconds: float) -> Sample:
    """Time one turn, and subtract the CPUs of the neighbours from those of other processes."""
    begin, used = time.perf_counter(), neighbours.cpu_seconds()
    sample = worker.time(seconds)
    theirs = (neighbours.cpu_seconds() - used) / (time.perf_counter() - begin)
    foreign = None if sample.foreign is None else max(0.0, sample.foreign - theirs)
    return replace(sample, foreign=foreign)


def _memory(cell: Cell, contender: Contender, crew: _Crew) -> dict[tuple[str, str], Memory]:
    found = {}
    if crew.record.plays(contender, cell):
        with crew.working(contender, cell) as worker:
            worker.prepare(cell)
            found[cell.name, contender.name] = worker.memory()
            worker.release()
    return found


class _Record:
    """The results so far, and which contender runs in which cell."""

    def __init__(self, contenders: Sequence[Contender], settings: BenchSettings) -> None:
        self.settings = settings
        self.samples: dict[tuple[str, str], list[Sample]] = {}
        self.memories: dict[tuple[str, str], Memory] = {}
        self._failed: list[Failure] = []
        reasons = {c.name: _reason(c) for c in contenders}
        self._left_out = [(name, "", reason) for name, reason in reasons.items() if reason is not None]
        self._absent = {name for name, _, _ in self._left_out}
        present = (c for c in contenders if c.name not in self._absent)
        self._left_out += [(c.name, cell, reason) for c in present for cell, reason in c.skip.items()]

    def plays(self, contender: Contender, cell: Cell) -> bool:
        """Test whether the contender takes part, and has not failed there."""
        failed = any((f.contender, f.cell) == (contender.name, cell.name) for f in self._failed)
        return contender.name not in self._absent and cell.name not in contender.skip and not failed

    def note(self, contender: Contender, cell: Cell, error: ContenderError) -> str:
        """Put an error down; gives a line that says so."""
        if error.unable:
            self._absent.add(contender.name)
            self._left_out.append((contender.name, cell.name, str(error)))
            return f"{contender.name}: left out from {cell.name} on: {error}"
        failure = Failure(contender=contender.name, cell=cell.name, error=str(error), log=error.log)
        self._failed.append(failure)
        return f"failed: {failure}"

    def results(self) -> Results:
        measured = tuple(
            Measured(cell=cell, contender=name, samples=tuple(found), memory=self.memories.get((cell, name)))
            for (cell, name), found in self.samples.items()
        )
        return Results(
            settings=self.settings,
            measured=measured,
            left_out=tuple(self._left_out),
            failed=tuple(self._failed),
        )


class _Crew:
    """The contenders' processes: each is started for its first cell, and again after a cell that it broke in."""

    def __init__(self, record: _Record, *, environment: Mapping[str, str], notify: Notify) -> None:
        self.record = record
        self._environment, self._tell = environment, notify
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers.values():
            worker.end(at_once=kind is not None)

    @contextmanager
    def working(self, contender: Contender, cell: Cell) -> Iterator[Worker]:
        """Give the contender's process; an error ends the process and the block, and is recorded."""
        if contender.name not in self._workers:
            self._workers[contender.name] = Worker(
                contender, threads=self.record.settings.threads, environment=self._environment
            )
        try:
            yield self._workers[contender.name]
        except ContenderError as error:
            self._workers.pop(contender.name).end(at_once=True)
            self._tell(self.record.note(contender, cell, error))


def _reason(contender: Contender) -> str | None:
    """Return why a contender cannot run here, as far as its requirements show."""
    if contender.missing is not None:
        return contender.missing
    if contender.requires is not None and importlib.util.find_spec(contender.requires) is None:
        return f"{contender.requires} is not installed"
    if contender.program is not None and shutil.which(contender.program) is None:
        return f"{contender.program} is not installed"
    return None
