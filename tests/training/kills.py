"""Kill a training run at random moments, start it again each time, and compare it with one left alone.

Half of the kills come at a random time, the other half just before a random disk operation (a flush, a
rename, a removal), since that is where a save can be hurt. All are SIGKILL. The children are forked from a
server process that has imported everything once (multiprocessing's "forkserver"), so that a start costs
milliseconds instead of seconds.
"""

import dataclasses
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from precis.training import JsonLines, train
from precis.training.callbacks import METRICS_FILE, read_metrics
from precis.training.checkpoint import MODEL_FILE, OPTIMIZER_FILE, Checkpoints

#: Gives the arguments of `train` besides the folder, or what trains in a folder by itself; a module-level function (or
#: a `partial` of one), since it travels by name.
Make = Callable[[], Mapping[str, Any] | Callable[[Path], object]]

_DISK_OPERATIONS = ("fsync", "rename", "replace", "unlink", "rmdir")
_TIMES = {"seconds", "tokens_per_second"}
_PATIENCE = 300.0  # seconds until a child that does not get on is an error


@dataclass(frozen=True)
class Kill:
    """One SIGKILL.

    Attributes:
        step: of the newest checkpoint then.
        before: the disk operation that it came just before; None for a random time.
        unfinished: the kill left a half-written or half-removed checkpoint behind.
    """

    step: int
    before: str | None
    unfinished: bool


@dataclass(frozen=True)
class Report:
    """What became of one run: its kills in order, and what is not bit-identical to the run left alone."""

    kills: tuple[Kill, ...]
    differences: tuple[str, ...]


class Harness:
    """Runs of what `make` describes, below `folder`."""

    def __init__(self, make: Make, folder: Path, *, threads: int = 1, preload: Sequence[str] = ()) -> None:
        """`preload` names modules that `make` needs and that take long to import."""
        self._make = make
        self._folder = folder
        self._threads = threads
        self._context = multiprocessing.get_context("forkserver")
        # The optimizer imports the second one.
        self._context.set_forkserver_preload(["precis.training", "torch._dynamo", *preload])
        self._alone = folder / "alone"
        self._finish(self._alone)  # also warms the server up
        self._operations, self._seconds = self._finish(folder / "timed")

    def kill_and_resume(self, name: str, *, kills: int, rng: random.Random) -> Report:
        """Kill a new run `kills` times, let it finish, and compare."""
        folder = self._folder / name
        done: list[Kill] = []
        while len(done) < kills:
            share = 0.8 / kills  # of the whole run, until the next kill
            if len(done) % 2:
                kill = self._kill_at_operation(folder, rng.randint(1, int(share * self._operations)))
            else:
                kill = self._kill_after(folder, rng.uniform(0.0, share * self._seconds))
            if kill is None:  # it was faster than the timed run and came to its end
                shutil.rmtree(folder)
                done.clear()
            else:
                done.append(kill)
        self._finish(folder)
        return Report(kills=tuple(done), differences=tuple(differences(self._alone, folder)))

    def _start(self, folder: Path, *, die_before: int | None = None) -> tuple[Any, Connection]:
        parent, child = self._context.Pipe()
        process = self._context.Process(
            target=_train, args=(self._make, folder, self._threads, die_before, child)
        )
        process.start()
        child.close()
        _receive(parent)  # it has imported what it needs
        return process, parent

    def _finish(self, folder: Path) -> tuple[int, float]:
        """Train to the end; how many disk operations and seconds it took."""
        process, pipe = self._start(folder)
        began = time.perf_counter()
        operations = _receive(pipe)
        seconds = time.perf_counter() - began
        process.join(_PATIENCE)
        assert process.exitcode == 0
        return int(operations), seconds

    def _kill_after(self, folder: Path, seconds: float) -> Kill | None:
        process, _ = self._start(folder)
        time.sleep(seconds)
        process.kill()
        process.join()
        return _kill_of(folder, before=None) if process.exitcode == -signal.SIGKILL else None

    def _kill_at_operation(self, folder: Path, number: int) -> Kill | None:
        process, pipe = self._start(folder, die_before=number)
        told = _receive(pipe)
        process.join(_PATIENCE)
        return _kill_of(folder, before=str(told)) if process.exitcode == -signal.SIGKILL else None


def _receive(pipe: Connection) -> Any:
    assert pipe.poll(_PATIENCE), "the run hangs"
    return pipe.recv()


def _kill_of(folder: Path, *, before: str | None) -> Kill:
    steps = Checkpoints(folder / "checkpoints", keep=1).steps()
    unfinished = any((folder / "checkpoints").glob("*.tmp-*"))
    return Kill(step=steps[-1] if steps else 0, before=before, unfinished=unfinished)


def differences(first: Path, second: Path) -> list[str]:
    """What is not the same in two finished run folders, times aside."""
    found: list[str] = []
    checkpoints = [Checkpoints(folder / "checkpoints", keep=1) for folder in (first, second)]
    if checkpoints[0].steps() != checkpoints[1].steps():
        return [f"checkpoints {checkpoints[0].steps()} and {checkpoints[1].steps()}"]
    last = checkpoints[0].steps()[-1]
    for name in (MODEL_FILE, OPTIMIZER_FILE):
        if len({(c.path(last) / name).read_bytes() for c in checkpoints}) > 1:
            found.append(name)
    states = [dataclasses.asdict(_state(c)) | {"seconds": 0, "window": 0} for c in checkpoints]
    if states[0] != states[1]:
        found.append("state.json")
    if len({_best(c.folder) for c in checkpoints}) > 1:
        found.append("the best weights")
    if _curve(first) != _curve(second):
        found.append(METRICS_FILE)
    leftovers = [path.name for c in checkpoints for path in c.folder.iterdir() if ".tmp-" in path.name]
    return found + leftovers


def _best(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """Names and contents of the folders that hold best weights alone."""
    files = sorted(file for file in folder.glob("best-*/*"))
    return tuple((f"{file.parent.name}/{file.name}", file.read_bytes()) for file in files)


def _state(checkpoints: Checkpoints) -> Any:
    said: list[str] = []
    saved = checkpoints.newest_valid(said.append)
    assert saved is not None
    assert not said
    return saved.state


def _curve(folder: Path) -> list[dict[str, Any]]:
    records = read_metrics(folder / METRICS_FILE)
    return [{name: value for name, value in r.items() if name not in _TIMES} for r in records]


def _train(make: Make, folder: Path, threads: int, die_before: int | None, pipe: Connection) -> None:
    """In the child: train; tell how many disk operations it took, or die before one of them."""
    torch.set_num_threads(threads)
    count = 0

    def counted(name: str) -> Callable[..., Any]:
        operation = getattr(os, name)

        def perform(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == die_before:
                pipe.send(name)
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **options)

        return perform

    for name in _DISK_OPERATIONS:
        setattr(os, name, counted(name))
    work = make()
    pipe.send("started")
    if callable(work):
        work(folder)
    else:
        train(folder=folder, callbacks=[JsonLines()], **work)
    pipe.send(count)
