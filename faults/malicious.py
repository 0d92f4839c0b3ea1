"""Folders made to harm the users who summarize with them.

    python -m faults.malicious [--only NAME]

Each is opened by `precis summarize` in its own process, with 20 seconds and 2 GiB of memory beyond that of Python and
the libraries. A case holds if the command ends with one line and exit code 2, or if it ignores the bad part and
summarizes. No code of the folder may run, no file outside may be opened, nothing may be written, and no network may be
used.

Python's audit hooks record the files that Python opens. For the libraries in Rust only the effect is visible: a file
outside is a whole model that must not be loaded. Lines that such libraries print when they panic are not counted as
ours.
"""

import argparse
import io
import os
import resource
import signal
import sys
import sysconfig
import tempfile
import time
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.malicious_folders import CASES, Case, Ground
from faults.report import Tally, header, verdict

_MEMORY, _SECONDS = 2 << 30, 20
_WATCHED = {
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen",
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto",
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "shutil.rmtree", "shutil.move", "shutil.copyfile",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The result of one command."""

    code: int
    lines: tuple[str, ...]
    trespasses: tuple[str, ...]
    seconds: float
    memory: int


def main() -> int:
    """Try all of them; 1 if one did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="the cases whose name contains this")
    only = parser.parse_args().only
    header("malicious folders, opened by precis summarize")
    _import_everything()
    tally, refused, slowest, largest = Tally(), 0, 0.0, 0
    with tempfile.TemporaryDirectory() as scratch:
        ground = Ground.make(Path(scratch))
        tally.hold(_is_watched(ground), "the control: an opened file outside was not noticed")
        for number, case in enumerate(case for case in CASES if only is None or only in case.name):
            folder = case.make(ground, number)
            found = _try(folder, ground)
            refused += found.code == 2
            slowest, largest = max(slowest, found.seconds), max(largest, found.memory)
            fault = _fault(case, found, ground)
            tally.hold(not fault, f"{case.name}: {fault}")
            if only:
                print(case.name, found)
    print(
        f"{refused} refused, {tally.tried - 1 - refused} harmless; "
        f"slowest {slowest:.1f} s, most memory {largest >> 20} MiB"
    )
    return verdict("malicious folders: 0 executions, 0 writes or reads outside", tally)


def _fault(case: Case, found: Outcome, ground: Ground) -> str:
    if ground.canary.exists():
        ground.canary.unlink()
        return "its code was run"
    if ground.changed():
        return "a file outside was changed"
    if found.trespasses:
        return f"trespassed: {found.trespasses[:3]}"
    if any(unicodedata.category(sign) == "Cc" and sign != "\t" for line in found.lines for sign in line):
        return f"control characters reached the terminal: {found.lines!r:.300}"
    if found.code < 0:
        return f"killed by signal {-found.code} after {found.seconds:.0f} s"
    if found.code == 0 and case.may_be_harmless:
        return ""
    errors = [line for line in found.lines if not line.startswith(("note: ", "thread ", "Onig"))]
    if found.code != 2:
        return f"exit code {found.code}: {found.lines[-1:]}"
    if len([line for line in errors if line.startswith("error: ")]) != 1 or any(
        "Traceback" in e for e in errors
    ):
        return f"not one line: {found.lines[:4]}"
    if "unexpected" in errors[-1]:
        return f"unexpected: {errors[-1]}"
    return ""


def _try(folder: Path, ground: Ground) -> Outcome:
    report, output = ground.scratch / "report", ground.scratch / "output"
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        _command(folder, ground, report, output)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    text = output.read_text(errors="replace") if output.exists() else ""
    seen = report.read_text().splitlines() if report.exists() else []
    return Outcome(
        code,
        tuple(line for line in text.split("\n") if line.strip()),
        tuple(seen),
        time.perf_counter() - began,
        usage.ru_maxrss << 10,
    )


def _is_watched(ground: Ground) -> bool:
    """Check the watch itself: a process that opens a file outside must be detected."""
    report = ground.scratch / "report"
    child = os.fork()
    if child == 0:
        _watch(ground.bart, ground, os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        (ground.outside / "config.json").read_text()
        os._exit(0)
    os.waitpid(child, 0)
    return "outside/config.json" in report.read_text()


def _command(folder: Path, ground: Ground, report: Path, output: Path) -> None:
    signal.alarm(_SECONDS)  # its usual action ends the process, in a library's code too
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, size + _MEMORY))
    said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    seen = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), write_through=True)
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), write_through=True)
    _watch(folder, ground, seen)
    _watch_trust(seen)
    from precis.cli import main as precis

    asked = [str(folder / ground.model_of(folder)), *ground.adapter_options(folder)]
    code = 70
    with redirect_stdout(sys.stdout), redirect_stderr(sys.stderr):
        code = precis(["summarize", str(ground.document), "--threads", "1", "--model", *asked])
    sys.stderr.flush()
    sys.stdout.flush()
    os._exit(code)


def _watch(folder: Path, ground: Ground, seen: int) -> None:
    homes = [sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")]
    allowed = [
        str(folder),
        str(ground.document),
        str(Path(__file__).resolve().parents[1]),
        sys.prefix,
        sys.base_prefix,
    ]
    allowed = [os.path.realpath(place) for place in [*allowed, *homes, str(ground.harmless_base)]]
    system = (
        "/proc/",
        "/sys/",
        "/dev/null",
        "/dev/urandom",
        "/dev/tty",
        "/usr/share/zoneinfo",
        "/etc/mime.types",
    )

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _WATCHED:
            os.write(seen, f"{event} {arguments[:2]}\n".encode(errors="replace"))
        elif event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            flags = arguments[2] if isinstance(arguments[2], int) else 0
            writes = flags & (os.O_WRONLY | os.O_RDWR) and not path.endswith((".pyc", "/dev/null"))
            inside = any(path == place or path.startswith(place.rstrip("/") + "/") for place in allowed)
            if (writes and ".pyc." not in path) or not (inside or path.startswith(system)):
                os.write(seen, f"open {path} {arguments[1]}\n".encode(errors="replace"))

    sys.addaudithook(note)


def _watch_trust(seen: int) -> None:
    """Note if a name of code reaches transformers, which refuses it too: precis takes it out of a model before.

    transformers itself reads a tokenizer's settings, so precis must pass it `trust_remote_code=False`.
    """
    from transformers import dynamic_module_utils
    from transformers.models.auto import auto_factory, configuration_auto, tokenization_auto

    resolve = dynamic_module_utils.resolve_trust_remote_code

    def noted(trusts: Any, name: Any, has_local: Any, has_remote: Any, *more: Any, **options: Any) -> Any:
        caller = sys._getframe(1)
        while caller is not None and caller.f_globals["__name__"] != tokenization_auto.__name__:
            caller = caller.f_back  # type: ignore[assignment]
        if has_remote and (caller is None or trusts is not False):
            os.write(seen, b"transformers was given the name of code\n")
        return resolve(trusts, name, has_local, has_remote, *more, **options)

    for module in (auto_factory, configuration_auto, tokenization_auto):
        setattr(module, resolve.__name__, noted)


def _import_everything() -> None:
    """Import everything, so that the children are quick, and open little but the folder."""
    import transformers.models.bart.modeling_bart
    import transformers.models.t5.modeling_t5  # noqa: F401

    import precis.cli.application
    import precis.phases.use.summarization  # noqa: F401


if __name__ == "__main__":
    sys.exit(main())
