"""Commands in forked children: killed at a moment, or on a disk that fills up at an offset.

The parent imports everything once, so that a child starts in milliseconds. It never computes anything itself, since
PyTorch's threads do not survive a fork.
"""

import builtins
import errno
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DISK_OPERATIONS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir")
_MODULES = (
    "torch._dynamo matplotlib.figure matplotlib.backends.backend_agg accelerate tensorboard "
    "precis.phases.train.finetuning precis.phases.train.grounding precis.phases.train.pretraining "
    "precis.phases.train.prefix_tuning precis.phases.train.tokenizer_training precis.phases.data.corpus_packing "
    "precis.phases.measure.model_scores precis.phases.data.pair_checks precis.phases.use.summarization "
    "precis.phases.use.model_conversion precis.cli.application precis.training.curves scipy.stats "
    "precis.batch.batch_run precis.server.asgi_app precis.cli.framework.library_logging pyarrow.dataset pydantic.v1 "
    "precis.phases.plans.finetuning_plan precis.phases.use.summaries_file torch.utils.tensorboard "
    "torch._subclasses.schema_check_mode typer._adapters typer._click.decorators anyio._backends._asyncio "
    "PIL.BmpImagePlugin PIL.GifImagePlugin PIL.JpegImagePlugin PIL.PpmImagePlugin"
)
PATIENCE = 300.0


def import_everything() -> None:
    """Import what the commands need, and build what depends on no input; what is not installed is left out.

    Nothing here may start a thread, draw a random number or read a file that a command writes.
    """
    import gc
    import importlib
    from contextlib import suppress

    import torch

    torch.set_num_threads(1)
    for name in _MODULES.split():
        with suppress(ImportError):
            importlib.import_module(name)
    from precis.cli.application import parser

    parser()
    with suppress(ImportError):  # the names of other libraries' weights: 40 ms, and the same for every model
        from transformers.conversion_mapping import get_checkpoint_conversion_mapping

        get_checkpoint_conversion_mapping("")
    gc.collect()
    gc.freeze()  # a child's collector would write to, and so copy, every page of the parent


@dataclass(frozen=True)
class Ended:
    """The end of a child: exit code (negative: the signal), output, number of disk operations or bytes, seconds."""

    code: int
    said: str
    count: int
    seconds: float

    @property
    def is_late(self) -> bool:
        """True if the child had to be killed because it took longer than `PATIENCE`."""
        return self.code == -signal.SIGKILL and self.seconds >= PATIENCE


def run(
    line: Sequence[str],
    log: Path,
    *,
    prepare: Callable[[], Callable[[], int]],
    kill_after: float | None = None,
    command: Callable[[list[str]], int] | None = None,
) -> Ended:
    """Run a command line in a forked child.

    Args:
        prepare: called in the child before the command; returns a function that gives the count at the end.
        kill_after: seconds until SIGKILL.
        command: takes the line and returns the exit code; by default `precis` itself.
    """
    reader, writer = os.pipe()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        _in_child(line, log, writer, prepare, command)
    os.close(writer)
    code = _wait(child, PATIENCE if kill_after is None else kill_after)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    return Ended(code, log.read_text(errors="replace"), int(told or 0), time.perf_counter() - began)


def _wait(child: int, seconds: float) -> int:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _in_child(
    line: Sequence[str],
    log: Path,
    writer: int,
    prepare: Callable[[], Callable[[], int]],
    command: Callable[[list[str]], int] | None,
) -> None:
    code = 70
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent among several ignores it
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        from precis.cli import main

        count = prepare()
        code = (command or main)(list(line))
        os.write(writer, str(count()).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # even if the log is full: the frames above are the parent's code, which removes its folders
            os._exit(code)


def dying_before(number: int | None) -> Callable[[], Callable[[], int]]:
    """Count the disk operations of the process, and die before the given one."""

    def prepare() -> Callable[[], int]:
        done = 0

        def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
            def perform(*arguments: Any, **options: Any) -> Any:
                nonlocal done
                done += 1
                if done == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return operation(*arguments, **options)

            return perform

        for name in DISK_OPERATIONS:
            setattr(os, name, counted(getattr(os, name)))
        return lambda: done

    return prepare


def full_after(limit: int | None, folder: Path) -> Callable[[], Callable[[], int]]:
    """Let everything that Python writes below `folder` count, and fail with ENOSPC beyond `limit` bytes in all.

    Libraries that write by themselves (safetensors, tokenizers) meet a limit on the size of a file instead.
    """

    def prepare() -> Callable[[], int]:
        written = 0

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                nonlocal written
                size = memoryview(data).nbytes
                if not str(self.name).startswith(str(folder)) and not isinstance(self.name, int):
                    return int(super().write(data) or 0)
                if limit is not None and written + size > limit:
                    part = max(0, limit - written)
                    written = limit
                    if part:
                        return int(super().write(memoryview(data).cast("B")[:part]) or 0)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written += size
                return int(super().write(data) or 0)

        open_through(Raw, folder)
        return lambda: written

    return prepare


def open_through(raw: type[io.FileIO], folder: Path) -> None:
    """Let everything that is opened for writing below `folder` go through `raw`."""
    usual = builtins.open

    def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **options: Any) -> Any:
        ours = isinstance(file, int) or str(file).startswith(str(folder))
        if not ours or not set(mode) & set("wax+") or (isinstance(file, int) and file < 3):
            return usual(file, mode, buffering, *rest, **options)
        binary = raw(file, mode.replace("b", "").replace("t", ""))
        if "b" in mode and buffering == 0:
            return binary
        buffered: Any = io.BufferedRandom(binary) if "+" in mode else io.BufferedWriter(binary)
        if "b" in mode:
            return buffered
        names = ("encoding", "errors", "newline")
        given = dict(zip(names, rest, strict=False)) | {k: v for k, v in options.items() if k in names}
        return io.TextIOWrapper(buffered, **({"encoding": "utf-8"} | given))

    builtins.open = opened
    io.open = opened
    Path.open = lambda self, mode="r", buffering=-1, *r, **o: opened(str(self), mode, buffering, *r, **o)  # type: ignore[method-assign]
    os.fdopen = opened  # type: ignore[assignment]
