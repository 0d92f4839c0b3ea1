"""A contender's process, seen from outside: it is started, asked and ended here. `worker` is its inside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from benchmarks.compare.contenders import Cell, Contender
from benchmarks.compare.results import Memory, Sample
from precis.nn.disentangled.cpp_loader import COMPILE
from precis_text.errors import RunError

_LOG_LINES, _LOG_BYTES = 20, 8192
_REPOSITORY = Path(__file__).resolve().parents[2]
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # how OpenMP's threads wait for work
_PATIENCE = 30.0  # seconds that a process gets to end by itself


class ContenderError(RunError):
    """A contender's failure to carry out a request.

    Args:
        error: the message of the contender, or how its process ended.
        log: the last lines that the process wrote.
        unable: the contender raised `UserError`: it cannot run here at all, so another try would fail too.
    """

    def __init__(self, error: str, *, log: tuple[str, ...], unable: bool = False) -> None:
        super().__init__(error)
        self.log, self.unable = log, unable


class Worker:
    """A contender's process.

    Raises:
        ContenderError: from whatever it is asked, when the contender failed or its process ended.
    """

    def __init__(self, contender: Contender, *, threads: int, environment: Mapping[str, str]) -> None:
        self._contender, self._threads = contender, threads
        # a file, because there is no reader while it is written: a full pipe would stop the process
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.compare.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**_environment(threads), **contender.environment, **environment},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(at_once=kind is not None)

    def end(self, *, at_once: bool = False) -> None:
        """Let the process end by itself, or kill it."""
        if at_once:
            self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # it ended before, with a question unread
            _pipe(self._process.stdin).close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()
        self._log.close()

    def prepare(self, cell: Cell) -> None:
        """Build the cell's work and run it once."""
        arguments = {**self._contender.arguments, **cell.arguments}
        self._ask(
            {"do": "prepare", "make": self._contender.make, "arguments": arguments, "threads": self._threads}
        )

    def time(self, seconds: float) -> Sample:
        """Time one turn."""
        return Sample(**self._ask({"do": "time", "seconds": seconds}))

    def memory(self) -> Memory:
        """Measure the peaks of one pass."""
        return Memory(**self._ask({"do": "memory", "tensors": self._contender.in_torch}))

    def release(self) -> None:
        """Forget the cell's work."""
        self._ask({"do": "release"})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        line = ""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=_pipe(self._process.stdin), flush=True)
            line = _pipe(self._process.stdout).readline()
        if not line.endswith("\n"):  # nothing, or a part of an answer
            raise ContenderError(self._ending(), log=self._last_lines())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ContenderError(answer["error"], log=self._last_lines(), unable=answer["unable"])
        return answer

    def _ending(self) -> str:
        try:
            status = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "the process answers no more"
        if status < 0:
            return f"the process was ended by {signal.Signals(-status).name} (out of memory?)"
        return f"the process ended with status {status}"

    def _last_lines(self) -> tuple[str, ...]:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_BYTES))
        lines = self._log.read().decode(errors="replace").splitlines()
        return tuple(line.rstrip() for line in lines if line.strip())[-_LOG_LINES:]


def _environment(threads: int) -> dict[str, str]:
    """Return the user's environment, except for the variables that change the measurement.

    The kernel is used if available, unless the contender disables it. Threads wait for their next work as they do by
    default. Threads that sleep at once would be late for every small product of a decoding step.
    """
    return {
        **{name: value for name, value in os.environ.items() if name not in (*_WAITING, COMPILE)},
        "OMP_NUM_THREADS": str(threads),
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_OFFLINE": "1",
        # the worker is a module of this repository, wherever the command was typed
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_REPOSITORY), os.environ.get("PYTHONPATH")))),
    }


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None  # both are opened as pipes
    return stream
