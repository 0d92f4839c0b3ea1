"""Stages that go wrong, for `test_gpu_run`: by themselves, so that their processes start quickly."""

import os
import signal

from benchmarks.gpu import race


def dies(run: race.StageRun) -> None:
    """A stage whose second contender ends the process."""
    run.attempt("here", "first", lambda: {"said": "good"})
    run.attempt("here", "second", lambda: {"never": os.kill(os.getpid(), signal.SIGKILL)})  # type: ignore[func-returns-value]
    run.attempt("here", "third", lambda: {"said": "good"})


def loses_the_device(run: race.StageRun) -> None:
    if not run.notes.rows:
        run.notes.add("here", "first", failed="misaligned address")
        raise race.DeviceLostError
    run.attempt("here", "second", lambda: {"said": "good"})


def raises(run: race.StageRun) -> None:
    run.attempt("here", "first", lambda: {"said": "good"})
    raise ValueError("nobody in particular")
