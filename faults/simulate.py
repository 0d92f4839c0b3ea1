"""One seed drives everything that may go wrong: disk, kills, clock, other programs, clients. The same seed fails again.

    python -m faults.simulate [--quick | --seeds N] [--first 0] [--subject train] [--jobs 2] [--record FILE]
    python -m faults.simulate --seed N

Each seed draws a subject: `train`, `summarize`, `evaluate`, `batch` or `serve`, all with a tiny model. A command starts
up to four times, each time with another fault at a random event (`faults.faulty_disk`); then it starts undisturbed.
`serve` meets twelve clients (`faults.simulated_service`). These must hold:

    every start     ends well, is killed, or ends with one line and the exit code 1 or 2
    every start     keeps each whole line of a journal that was there before, byte for byte
    the last start  ends well, and every file equals that of an undisturbed run: nothing is lost, and nothing is twice
    every client    gets the summary that its document has by itself, or an answer to come back

`batch` runs without Ray: a loop in this process reads, summarizes and commits parts as Ray does, and may commit a part
twice, as a machine that dies while it writes. Threads of the service take turns as the machine decides; all else is
the same for the same seed.

A command is a process of its own: it is forked from one that has imported everything (`faults.forked`), writes to a
folder in memory (or below TMPDIR), and may be killed. `--jobs` seeds are tried at once. `--record FILE` gets a line for
each seed, and the same command resumes after them. A seed that failed, or took too long, is tried again, and so is
each one after a change of the code or with another --subject.
"""

import argparse
import json
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from faults import forked, outcomes
from faults.faulty_disk import NONE, Fault, drawn
from faults.kills import differences, tree
from faults.outcomes import Outcome
from faults.pictures import Pictures
from faults.report import Tally, header, verdict
from faults.writers import build_shelf, command_lines

_STARTS = 4
_TOLD_EVERY = 100  # seeds
_FINISHED = "already exists, so nothing was summarized"
_KEPT = ".kept-"


@dataclass(frozen=True)
class Subject:
    """A command that writes.

    Attributes:
        line: its command line, given where it writes.
        journal: a pattern of its unfinished file.
    """

    line: Callable[[Path], list[str]]
    journal: str = ""


def subjects(shelf: Path) -> dict[str, Subject]:
    """Return the commands that write; `serve` has clients instead."""
    lines = command_lines(shelf)
    rows, model = str(shelf / "pairs" / "test.jsonl"), str(shelf / "start")
    quick = ["--beams", "1"]  # 0.6 of the time; a fault of the disk meets no beam
    common = [rows, "--model", model, "--min-words", "4", "--short", "write", *quick]
    one_at_a_time = ["--batch-size", "1", "--threads", "1"]
    return {
        "train": Subject(lambda out: [word.replace("=2000", "=300") for word in lines["finetune"](out)]),
        "summarize": Subject(
            lambda out: ["summarize", *common, *one_at_a_time, "--out", str(out / "s.jsonl")], "*.part"
        ),
        "evaluate": Subject(lambda out: [*lines["evaluate"](out), *quick], "predictions/*.jsonl"),
        "batch": Subject(lambda out: ["batch", *common, "--workers", "1", "--out", str(out)]),
    }


class LateError(Exception):
    """The error of a start that took too long: it hangs, or the machine is busy with other work."""


class World:
    """A folder with data, a model and the results of undisturbed runs."""

    def __init__(self, place: Path) -> None:
        self.place, self._shelf = place, place / "shelf"
        build_shelf(self._shelf)
        self.subjects = subjects(self._shelf)
        self._alone: dict[str, dict[str, Any]] = {}
        self._events: dict[str, int] = {}
        self._pictures = Pictures(place / "pictures")

    def start(self, name: str, out: Path, fault: Fault) -> forked.Ended:
        """Start a subject once."""
        command = _batch_without_ray if name == "batch" else None
        out.parent.mkdir(parents=True, exist_ok=True)
        line = self.subjects[name].line(out)
        prepare = self._prepare(fault.prepare(out), is_alone=name not in self._alone)
        ended = forked.run(line, self.place / "log", prepare=prepare, command=command)
        if ended.is_late:
            raise LateError(f"{name}, {fault}: killed after {ended.seconds:.0f} s")
        return ended

    def _prepare(
        self, disk: Callable[[], Callable[[], int]], *, is_alone: bool
    ) -> Callable[[], Callable[[], int]]:
        def prepare() -> Callable[[], int]:
            (self._pictures.keep if is_alone else self._pictures.use)()
            return disk()

        return prepare

    def alone(self, name: str) -> tuple[dict[str, Any], int]:
        """Return the files of an undisturbed run, and its number of events."""
        if name not in self._alone:
            out = self.place / "alone" / name / "out"
            shutil.rmtree(out.parent, ignore_errors=True)  # of a run that was late
            ended = self.start(name, out, NONE)
            if ended.code:
                raise RuntimeError(f"{name}: {ended.said}")
            self._alone[name], self._events[name] = tree(out), ended.count
            self._pictures.take_up()
        return self._alone[name], self._events[name]

    def run_alone(self, only: str | None) -> None:
        """Run the subjects that seeds may draw, undisturbed, once for all processes; leave late ones to their seeds."""
        for name in self.subjects:
            if only in (None, name):
                with suppress(LateError):
                    self.alone(name)

    def own_place(self) -> None:
        """Write to a folder that no other process writes to."""
        self.place = Path(tempfile.mkdtemp(dir=self.place))

    def serve(self, rng: random.Random) -> list[str]:
        """Serve drawn clients in a child; return what was wrong."""
        from faults.simulated_service import clients, faults_of

        rows = (self._shelf / "pairs" / "test.jsonl").read_text().splitlines()
        texts = [json.loads(row)["document"] for row in rows]
        met = clients(rng, len(texts))

        def command(_: list[str]) -> int:
            wrong = faults_of(str(self._shelf / "start"), texts, met)
            print(*wrong, sep="\n")
            return int(bool(wrong))

        ended = forked.run([], self.place / "log", prepare=lambda: lambda: 0, command=command)
        return [f"exit {ended.code}: {ended.said.strip()}"] if ended.code else []


def try_seed(world: World, seed: int, *, only: str | None = None) -> tuple[str, list[str]]:
    """Let a seed happen; return its subject and what was wrong."""
    rng = random.Random(seed)
    name = rng.choice([*world.subjects, "serve"])
    name = only or name
    if name == "serve":
        return name, world.serve(rng)
    alone, events = world.alone(name)
    subject, out = world.subjects[name], world.place / "now" / "out"
    shutil.rmtree(out.parent, ignore_errors=True)
    for number in range(rng.randint(1, _STARTS)):
        fault = drawn(rng, events=events, journal=subject.journal)
        before = _whole_lines(out, subject)
        ended = world.start(name, out, fault)
        _take_up_what_was_kept(out)
        wrong = _problems(ended)
        # a complete file is closed, so its end goes unseen, and the next start makes it again
        if fault.kind != "deleted" or "was replaced or deleted" in ended.said:
            wrong += _lost(before, out, subject, ended)
        if not wrong and rng.random() < 0.2:
            wrong = _through_a_link(world, name, out)
        if name == "batch" and rng.random() < 0.3:
            _commit_twice(out)
        if wrong:
            return name, [f"start {number + 1}, {fault}: {each}" for each in wrong]
    last = world.start(name, out, NONE)
    _take_up_what_was_kept(out)
    if last.code and _FINISHED not in last.said:
        return name, [f"the last start: exit {last.code}: {last.said[-300:]}"]
    if last.code:  # a start that was killed, or met EIO, while it removed its lock had finished all else
        for lock in out.glob("*.lock"):
            lock.unlink()
    return name, differences(alone, out)


def _problems(ended: forked.Ended) -> list[str]:
    """List what is wrong with how a start ended.

    A start may end well, be killed, or end with one error line; a traceback or an error without a line is wrong.
    """
    if ended.code in (0, -signal.SIGKILL):
        return []
    told = [line for line in ended.said.splitlines() if line.startswith("error: ")]
    if ended.code in (1, 2) and len(told) == 1 and not {"Traceback", "unexpected"} & {*ended.said.split()}:
        return []
    return [f"exit {ended.code}, said {ended.said[-300:]!r}"]


def _whole_lines(out: Path, subject: Subject) -> dict[Path, bytes]:
    """Return the acknowledged lines of each journal."""
    files = sorted(out.glob(subject.journal)) if subject.journal else []
    return {file: file.read_bytes().rpartition(b"\n")[0] for file in files if not file.is_symlink()}


def _lost(before: dict[Path, bytes], out: Path, subject: Subject, ended: forked.Ended) -> list[str]:
    """Return the journals that lack lines which were there before; a finished command may have removed its own."""
    now = _whole_lines(out, subject)
    gone = [file for file in before if file not in now and not (out / file.stem).exists()]
    cut = [file for file, lines in before.items() if file in now and not now[file].startswith(lines)]
    return [f"{file.name} lost acknowledged lines (exit {ended.code})" for file in (*gone, *cut)]


def _take_up_what_was_kept(out: Path) -> None:
    """Do what the message of a replaced or deleted journal says: rename the kept file."""
    for kept in sorted(out.rglob(f"*{_KEPT}*")):
        kept.replace(kept.with_name(kept.name.partition(_KEPT)[0]))


def _through_a_link(world: World, name: str, out: Path) -> list[str]:
    """Put a link in the place of the journal: the command must refuse it and change nothing behind it."""
    journals = sorted(_whole_lines(out, world.subjects[name]))
    if not journals or (out / journals[0].stem).exists():
        return []
    elsewhere = out.parent / "elsewhere"
    content = journals[0].read_bytes()
    journals[0].rename(elsewhere)
    journals[0].symlink_to(elsewhere)
    ended = world.start(name, out, NONE)
    unharmed = elsewhere.read_bytes() == content
    journals[0].unlink()
    elsewhere.rename(journals[0])
    if ended.code == 2 and "is a link" in ended.said and unharmed:
        return []
    return [
        f"a link in the place of {journals[0].name}: exit {ended.code}, unharmed: {unharmed}, {ended.said[-200:]!r}"
    ]


def _commit_twice(out: Path) -> None:
    for part in sorted(out.glob("parts/*.parquet"))[:1]:
        shutil.copyfile(part, part.with_name(f"again-{part.name}"))


def _batch_without_ray(line: list[str]) -> int:
    """Run `precis batch` with a loop in the place of Ray's."""
    from precis.batch import batch_run
    from precis.cli import main

    batch_run._cluster = lambda _: nullcontext()  # type: ignore[assignment, return-value]
    batch_run._summarize = _summarize_here
    return main(line)


def _summarize_here(batch: Any, out: Path) -> None:
    """Read, summarize and commit the documents without a committed summary, a few at a time."""
    import pyarrow.parquet as parquet

    from precis.batch.batch_worker import Worker
    from precis.batch.document_source import DocumentSource

    parts = out / "parts"
    parts.mkdir(exist_ok=True)
    for half in parts.glob("*.half"):
        half.unlink()
    done = {name for part in parts.glob("*.parquet") for name in parquet.read_table(part)["id"].to_pylist()}
    worker = Worker(batch.job, out / "attempts", "simulated")
    for task in DocumentSource(batch.files, batch.how).get_read_tasks(1):
        for block in task():
            left = [number for number, name in enumerate(block["id"].to_pylist()) if name not in done]
            for begin in range(0, len(left), 3):
                rows = block.take(left[begin : begin + 3])
                place = parts / f"{rows['id'][0].as_py()}.parquet"
                with (half := place.with_suffix(".half")).open("wb") as file:
                    parquet.write_table(worker(rows), file)
                half.rename(place)


def main() -> int:
    """Try the seeds and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="try this seed only, as a failure prints it")
    parser.add_argument("--quick", action="store_true", help="200 seeds")
    parser.add_argument("--seeds", type=int, default=10_000, help="their number")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument(
        "--subject", help="train, summarize, evaluate, batch or serve; default: drawn by the seed"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="seeds at once; default: one a core"
    )
    parser.add_argument(
        "--record", type=Path, help="a file with a line for each seed; those that held are not tried"
    )
    given = parser.parse_args()
    if given.seed is not None:
        seeds = range(given.seed, given.seed + 1)
    else:
        seeds = range(given.first, given.first + (200 if given.quick else given.seeds))
    header("Faults of disk, clock, other programs and clients, drawn by seeds", seed=seeds[0])
    forked.import_everything()
    return _try(seeds, given.subject, jobs=min(given.jobs, len(seeds)), record=given.record)


def _trier(world: World, only: str | None, jobs: int) -> Callable[[int], Outcome]:
    """Return what tries a seed in this process, which has a place of its own if there are others."""
    if jobs > 1:
        world.own_place()

    def try_one(seed: int) -> Outcome:
        try:
            subject, wrong = try_seed(world, seed, only=only)
        except LateError as late:
            return Outcome(seed=seed, late=str(late))
        return Outcome(seed=seed, subject=subject, wrong=wrong)

    return try_one


def _try(seeds: Sequence[int], only: str | None, *, jobs: int = 1, record: Path | None = None) -> int:
    of = f"{only or 'any subject'} at {outcomes.code_version()}"
    tally, met, before = Tally(), Counter[str](), outcomes.read(record, of=of)
    held = [before[seed] for seed in seeds if seed in before]
    left = [seed for seed in seeds if seed not in before]
    with tempfile.TemporaryDirectory(dir=outcomes.fast_folder()) as temporary:
        world = World(Path(temporary))
        if jobs > 1:
            world.run_alone(only)
        found = outcomes.in_turn(left, lambda: _trier(world, only, jobs), jobs=jobs)
        with suppress(KeyboardInterrupt):  # ends with the figure so far
            for number, outcome in enumerate(chain(held, found)):
                if number and number % _TOLD_EVERY == 0:
                    print(f"  {number} of {len(seeds)} seeds", flush=True)
                again = (
                    f"python -m faults.simulate --seed {outcome.seed}{f' --subject {only}' if only else ''}"
                )
                if number >= len(held):
                    outcomes.remember(outcome, record, of=of)
                if outcome.late:
                    print(f"  not tried: {outcome.late} (again: {again})", flush=True)
                    continue
                met[outcome.subject] += 1
                tally.hold(outcome.held, f"{outcome.subject}: {'; '.join(outcome.wrong)} (again: {again})")
    print(", ".join(f"{name} {count}" for name, count in sorted(met.items())), flush=True)
    whole = verdict(f"seeds {seeds[0]} to {seeds[-1]}", tally)
    return whole or int(tally.tried < len(seeds))


if __name__ == "__main__":
    raise SystemExit(main())
