"""Contenders in processes of their own, timed in turn, so that a ratio means something.

    table = [Cell(name="512 tokens", arguments={"tokens": 512, "batch": 2}), ...]
    contenders = [
        Contender(name="precis", make="precis.bench.attention:ours"),
        Contender(name="transformers", make="precis.bench.attention:deberta"),
    ]
    results = measure(contenders, table, BenchSettings(rounds=5))

A contender is an importable function `module:function`. In its process it is called with the contender's and the
cell's arguments (keywords, JSON values) and gives a function without arguments: one pass, the thing that is timed.
Building weights and inputs belongs before the return, and is not timed; the first pass warms up and is not either.

How it is measured:
- Every contender lives in one process for the whole run; its threads sleep (OMP_WAIT_POLICY=PASSIVE) while others
  are measured. Within a cell the contenders take turns, in another order each round.
- A sample is the median of the passes in `seconds`; with it go the CPU seconds of a pass and the CPUs that other
  processes kept busy. A sample with more than `quiet` of them is kept, but counted as loaded.
- Memory comes from other processes, where glibc returns every large block (MALLOC_MMAP_THRESHOLD_): one pass, the
  peak of the process above what it held before, and the peak of the tensors alone.
- A contender whose `requires` or `program` is not installed is left out, and the results say so.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Self

from precis.config import Settings
from precis.errors import RunError

# glibc gives pages of big blocks back at once, so that VmHWM follows the tensors
_MEMORY_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536"}
# glibc keeps big blocks instead of returning them to the system after every operation
KEEP_BLOCKS = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way of doing a cell's work.

    Args:
        make: "module:function", called in the contender's process with `arguments` and the cell's.
        environment: variables of its process, such as `KEEP_BLOCKS`.
        requires: a package without which it is left out.
        program: a program without which it is left out.
        skip: cells that it sits out, by name, with the reason (too slow, not supported).
    """

    name: str
    make: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    requires: str | None = None
    program: str | None = None
    skip: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table: the arguments that all contenders get, under a name that is unique.

    Args:
        tokens: what a pass works through, padding left out, where tokens a second say something.
    """

    name: str
    arguments: Mapping[str, Any]
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class BenchSettings(Settings):
    """How long to look.

    Args:
        rounds: turns of each contender in each cell.
        seconds: of passes within a turn; a pass that takes longer is run once.
        threads: CPU threads of every contender.
        quiet: CPUs busy with other things above which a sample counts as loaded.
        memory: whether memory is measured too.
    """

    rounds: int = 7
    seconds: float = 0.5
    threads: int = 2
    quiet: float = 0.2
    memory: bool = True


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One turn: seconds of a pass on the wall and of CPU, passes, and CPUs that others used (None: unknown)."""

    wall: float
    cpu: float
    passes: int
    foreign: float | None


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Peaks of one pass in MB (None: the system does not say)."""

    process_mb: float | None
    added_mb: float | None
    tensors_mb: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A contender in a cell: a sample for each round, in order, so that rounds can be paired across contenders."""

    cell: str
    contender: str
    samples: tuple[Sample, ...]
    memory: Memory | None


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that was measured, and what was not: (contender, cell or "", reason)."""

    settings: BenchSettings
    measured: tuple[Measured, ...]
    left_out: tuple[tuple[str, str, str], ...]

    def of(self, cell: str, contender: str) -> Measured | None:
        """A contender's measurements in a cell; None where it was left out."""
        found = (m for m in self.measured if m.cell == cell and m.contender == contender)
        return next(found, None)


class Worker:
    """A contender's process.

    Raises:
        RunError: from `ask`, when the contender failed or its process ended.
    """

    def __init__(self, contender: Contender, *, threads: int, environment: Mapping[str, str]) -> None:
        self.contender = contender
        self._threads = threads
        self._process = subprocess.Popen(
            [sys.executable, "-m", "precis.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(threads),
                "OMP_WAIT_POLICY": "PASSIVE",
                "TRANSFORMERS_VERBOSITY": "error",
                "HF_HUB_OFFLINE": "1",
                **contender.environment,
                **environment,
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()

    def prepare(self, cell: Cell) -> None:
        """Build the cell's work and run it once."""
        arguments = {**self.contender.arguments, **cell.arguments}
        self._ask(
            {"do": "prepare", "make": self.contender.make, "arguments": arguments, "threads": self._threads},
            cell,
        )

    def time(self, cell: Cell, seconds: float) -> Sample:
        """One turn."""
        return Sample(**self._ask({"do": "time", "seconds": seconds}, cell))

    def memory(self, cell: Cell) -> Memory:
        """Peaks of one pass."""
        return Memory(**self._ask({"do": "memory"}, cell))

    def release(self, cell: Cell) -> None:
        """Forget the cell's work."""
        self._ask({"do": "release"}, cell)

    def _ask(self, request: dict[str, Any], cell: Cell) -> dict[str, Any]:
        where = f"{self.contender.name}, {cell.name}"
        try:
            print(json.dumps(request), file=_pipe(self._process.stdin), flush=True)
        except BrokenPipeError:
            raise RunError(f"{where}: the process ended (killed, or out of memory?)") from None
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise RunError(f"{where}: the process ended (killed, or out of memory?)")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RunError(f"{where}: {answer['error']}")
        return answer


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None  # both are opened as pipes
    return stream


Tell = Callable[[str], None]


def measure(
    contenders: Sequence[Contender], cells: Sequence[Cell], settings: BenchSettings, *, tell: Tell = print
) -> Results:
    """Run the table.

    Args:
        tell: gets a line when a cell is done.

    Raises:
        RunError: a contender failed; the message names it, the cell and the error.
    """
    present, left_out = _installed(contenders)
    left_out += [(c.name, cell, reason) for c in present for cell, reason in c.skip.items()]
    samples = _timings(present, cells, settings, tell)
    memories = _memories(present, cells, settings, tell) if settings.memory else {}
    measured = tuple(
        Measured(cell=cell, contender=name, samples=tuple(found), memory=memories.get((cell, name)))
        for (cell, name), found in samples.items()
    )
    return Results(settings=settings, measured=measured, left_out=tuple(left_out))


def _installed(contenders: Sequence[Contender]) -> tuple[list[Contender], list[tuple[str, str, str]]]:
    present, missing = [], []
    for contender in contenders:
        package, program = contender.requires, contender.program
        if package is not None and importlib.util.find_spec(package) is None:
            missing.append((contender.name, "", f"{package} is not installed"))
        elif program is not None and shutil.which(program) is None:
            missing.append((contender.name, "", f"{program} is not installed"))
        else:
            present.append(contender)
    return present, missing


def _timings(
    contenders: Sequence[Contender], cells: Sequence[Cell], settings: BenchSettings, tell: Tell
) -> dict[tuple[str, str], list[Sample]]:
    samples: dict[tuple[str, str], list[Sample]] = {}
    workers: dict[str, Worker] = {}
    try:
        for contender in contenders:
            workers[contender.name] = Worker(contender, threads=settings.threads, environment={})
        for cell in cells:
            playing = [workers[c.name] for c in contenders if cell.name not in c.skip]
            for worker in playing:
                worker.prepare(cell)
            for number in range(settings.rounds):
                first = number % len(playing) if playing else 0
                for worker in playing[first:] + playing[:first]:
                    sample = worker.time(cell, settings.seconds)
                    samples.setdefault((cell.name, worker.contender.name), []).append(sample)
            for worker in playing:
                worker.release(cell)
            tell(f"{cell.name}: timed")
    finally:
        error = sys.exc_info()
        for worker in workers.values():
            worker.__exit__(*error)
    return samples


def _memories(
    contenders: Sequence[Contender], cells: Sequence[Cell], settings: BenchSettings, tell: Tell
) -> dict[tuple[str, str], Memory]:
    found = {}
    for contender in contenders:
        with Worker(contender, threads=settings.threads, environment=_MEMORY_ENVIRONMENT) as worker:
            for cell in cells:
                if cell.name not in contender.skip:
                    worker.prepare(cell)
                    found[cell.name, contender.name] = worker.memory(cell)
                    worker.release(cell)
        tell(f"{contender.name}: memory measured")
    return found
