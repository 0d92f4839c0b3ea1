"""The stages, each run in its own process with a limit, and started again after a contender that broke it.

A process whose device is lost ends itself, and one that crashes is found dead. In both cases the rows so far are on
disk, and the contender gets a row with the error. Another process resumes with the others (`notes`).
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu.notes import Notes, Row

DEVICE_LOST = 3  # a stage's exit status
_MOST_PROCESSES = 12  # for one stage
_LAST_LINES = 12
_GRACE = 6.0  # seconds that a stage gets to end by itself
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Args:
    make: "module:function", called with a `race.StageRun`.
    share: seconds of an eight-minute run; what the stages before did not use is added.
    """

    name: str
    make: str
    share: float


STAGES = (
    Stage(name="machine", make="benchmarks.gpu.machine:stage", share=20),
    Stage(name="tests", make="benchmarks.gpu.suite:stage", share=75),
    Stage(name="exactness", make="benchmarks.gpu.exactness:stage", share=95),
    Stage(name="attention", make="benchmarks.gpu.speed:attention", share=55),
    Stage(name="encoder", make="benchmarks.gpu.speed:encoder", share=45),
    Stage(name="decoding", make="benchmarks.gpu.decoding:stage", share=55),
    Stage(name="training", make="benchmarks.gpu.training:stage", share=115),
)


@dataclass(kw_only=True)
class Outcome:
    """The end of a stage.

    Args:
        status: "done", or "failed" with `error`: it ended before its rows did.
        processes: number of processes that it took.
    """

    status: str
    seconds: float
    processes: int
    rows: list[Row] = field(default_factory=list)
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return vars(self)

    def failures(self) -> list[str]:
        """List what went wrong, a line each: the stage, contenders that broke, figures that are wrong."""
        found = [] if self.status == "done" else [self.error]
        for row in self.rows:
            reason = row.get("failed") or row.get("wrong")
            if reason:
                found.append(f"{row['cell']}, {row['contender']}: {reason}")
        return found


def run(stage: Stage, folder: Path, *, deadline: float, dry: bool) -> Outcome:
    """Run a stage to its end or its deadline.

    Args:
        folder: for its log and its rows.
        deadline: the value of `time.monotonic` at which it must end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    notes, log = folder / f"{stage.name}.json", folder / f"{stage.name}.log"
    for old in (notes, log, notes.with_suffix(".doing")):
        old.unlink(missing_ok=True)
    began, processes, error = time.monotonic(), 0, ""
    while processes < _MOST_PROCESSES:
        left = deadline - time.monotonic() - _GRACE
        if left <= 0:
            error = error or "no time was left for it"
            break
        processes += 1
        status = _process(stage, notes, log, seconds=left, dry=dry)
        if status == 0:
            error = ""
            break
        error = f"{_ending(status)}: {_last_lines(log)}"
        blamed = Notes(notes).blame(f"{_ending(status)} while it was at work")
        if status is None or not (blamed or status == DEVICE_LOST):
            break
    return Outcome(
        status="failed" if error else "done",
        seconds=round(time.monotonic() - began, 1),
        processes=processes,
        rows=Notes(notes).rows,
        error=error,
    )


def _process(stage: Stage, notes: Path, log: Path, *, seconds: float, dry: bool) -> int | None:
    """Exit status of one process; None: it was stopped at the end of its time."""
    command = [sys.executable, "-m", "benchmarks.gpu.child", stage.make, str(notes), f"{seconds:.1f}"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, *(["--dry"] if dry else [])],
            cwd=_ROOT,
            env=_environment(dry=dry),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that what it started ends with it
        )
        try:
            return process.wait(seconds + _GRACE)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment(*, dry: bool) -> dict[str, str]:
    """Return the environment: without network, and without a card for a dry run."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
        **({"CUDA_VISIBLE_DEVICES": ""} if dry else {}),
    }


def _ending(status: int | None) -> str:
    if status is None:
        return "its process was stopped at the end of its time"
    if status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    if status == DEVICE_LOST:
        return "its process lost the device"
    return f"its process ended with status {status}"


def _last_lines(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])
