"""The outcomes of seeds: several processes try seeds at once, and a file records those that held."""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")
_ROOM = 2**30
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a seed: its subject and what was wrong, or why it could not be tried."""

    seed: int
    subject: str = ""
    wrong: list[str] = field(default_factory=list)
    late: str = ""

    @property
    def held(self) -> bool:
        """True if it was tried and nothing was wrong."""
        return not self.wrong and not self.late


def in_turn(
    seeds: Sequence[int], begin: Callable[[], Callable[[int], Outcome]], *, jobs: int
) -> Iterator[Outcome]:
    """Yield what comes of each seed, in their order; `begin` gives each process what tries one.

    With one job it is this process. Otherwise processes are forked at once, while this one has a single thread.
    """
    if jobs == 1:
        yield from map(begin(), seeds)
        return
    with ProcessPoolExecutor(
        jobs, mp_context=get_context("fork"), initializer=_begin, initargs=(begin,)
    ) as processes:
        try:
            yield from processes.map(_try, seeds)
        finally:
            processes.shutdown(cancel_futures=True)


_AT_WORK: list[Callable[[int], Outcome]] = []  # of this process


def _begin(begin: Callable[[], Callable[[int], Outcome]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    _AT_WORK[:] = [begin()]


def _try(seed: int) -> Outcome:
    return _AT_WORK[0](seed)


def code_version() -> str:
    """Return a digest of the code of the packages and of the faults."""
    digest = hashlib.sha256()
    for folder in (_ROOT / "faults", *sorted(_ROOT.glob("packages/*/src"))):
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{file.relative_to(_ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def read(record: Path | None, *, of: str) -> dict[int, Outcome]:
    """Return the seeds of a record that held; all others are tried again, such as that of a line which a kill tore.

    Args:
        of: the subject asked for and the version of the code; other lines do not count.
    """
    held, others = {}, 0
    for line in record.read_text(encoding="utf-8").split("\n") if record and record.exists() else ():
        with suppress(ValueError, TypeError, AttributeError):
            fields = json.loads(line)
            written = fields.pop("of", "")
            outcome = Outcome(**fields)
            if outcome.held and written == of:
                held[outcome.seed] = outcome
            others += written != of
    if others:
        print(f"{record}: {others} seeds of another --subject or of other code do not count")
    return held


def remember(outcome: Outcome, record: Path | None, *, of: str) -> None:
    """Append an outcome to a record, on a line of its own even after half a line."""
    if record is not None:
        with record.open("a+b") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            torn = file.read(1) not in (b"", b"\n")
            file.write(b"\n" * torn + json.dumps({**asdict(outcome), "of": of}).encode() + b"\n")


def fast_folder() -> Path | None:
    """Return a folder in memory with room; None stands for the usual one, and so does TMPDIR.

    A sync of a disk takes 5 ms. The machine keeps running, so a kill loses nothing that was written.
    """
    if "TMPDIR" in os.environ or not os.access(_IN_MEMORY, os.W_OK):
        return None
    return _IN_MEMORY if shutil.disk_usage(_IN_MEMORY).free > _ROOM else None
