"""Kill `precis batch` with SIGKILL repeatedly, and compare its summaries with those of `precis summarize`.

    python -m faults.batch_kills [--kills 50] [--documents 400] [--seed 0] [--workers 2] [--model MODEL]
        [--minutes N]
    python -m faults.batch_kills --standing [--kills 50]
    python -m faults.batch_kills --nodes
    python -m faults.batch_kills --deadly

Kills hit in turn the command, one of its workers, and all its processes. A batch without its command is started
again. A fifth of the kills of a new command come at a random time of its start. The others come at a random time of its
work, behind a part that it has begun to write. Otherwise most would hit the start, which takes longer. Whenever a batch
ends, each document must have exactly one summary, equal to that of `precis summarize`. Then the next batch starts.

`--standing` does this on a cluster of two nodes, each a process of this machine, which outlives the commands. 50 kills
then take a third of an hour on two cores; "all" is the command and every process of Ray that works for it. `--nodes`
kills one of two nodes. `--deadly` kills the worker whenever it is at work on one document: that one must have the
status "failed", and every other one its summary.

MODEL is by default a random Z-Code++ of 32 dimensions; `default` is the one that comes with precis, and the one for
`--deadly`. Texts are the project's own synthetic reports.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.report import Tally, header, verdict
from faults.small_models import save
from precis.data.synthetic.corpus import make_pairs

_LENGTH = ("--words", "25", "--min-words", "4")
_LONGEST = 900  # seconds of one start
_EARLY = 0.2  # of the kills of a new command: before its first part
_KINDS = ("command", "worker", "all")


class Shelf:
    """Documents in a file of rows and in a folder of texts, and their summaries by `precis summarize`."""

    def __init__(self, place: Path, documents: int, model: str | None, *, long: bool = False) -> None:
        """Write the documents and summarize each once; with `long`, the last row holds all the others."""
        texts = [pair.document for pair in make_pairs(documents, seed=5)]
        self.place, self.rows, self.folder = place, place / "rows.jsonl", place / "texts"
        self.folder.mkdir()
        half = documents // 2
        if long:
            texts[half - 1] = "\n\n".join(texts)
        self.rows.write_text("".join(json.dumps({"document": text}) + "\n" for text in texts[:half]))
        for number, text in enumerate(texts[half:]):
            (self.folder / f"{number}.txt").write_text(text)
        model = model or str(save("zcodepp", place / "model"))
        self.options = [*_LENGTH, *([] if model == "default" else ["--model", model])]
        alone = place / "alone.jsonl"
        command = ["summarize", str(self.rows), str(self.folder), "--out", str(alone), *self.options]
        subprocess.run([sys.executable, "-m", "precis", *command], check=True, stderr=subprocess.DEVNULL)
        self.wanted = _summaries(alone)

    def batch(self, out: Path, *options: str) -> subprocess.Popen[str]:
        """Start the command in a session of its own."""
        places = [str(self.rows), str(self.folder), "--out", str(out)]
        words = ["batch", *places, "--verify", *self.options, *options]
        return subprocess.Popen(
            [sys.executable, "-m", "precis", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def check(self, out: Path, told: str, tally: Tally, what: str) -> None:
        """Hold a finished batch against the summaries of `precis summarize`."""
        lines = (out / "summaries.jsonl").read_text().splitlines()
        tally.hold(
            len(lines) == len(self.wanted), f"{what}: {len(lines)} rows of {len(self.wanted)} documents"
        )
        tally.hold(_summaries(out / "summaries.jsonl") == self.wanted, f"{what}: other summaries")
        tally.hold("verified: " in told, f"{what}: {told[-300:]}")


def _summaries(file: Path) -> dict[str, str]:
    rows = map(json.loads, file.read_text().splitlines())
    return {row["name"]: row["summary"] for row in rows}


def _processes(session: int, name: str = "") -> list[int]:
    """List the living processes of a session whose command line contains `name`."""
    listed = subprocess.run(["ps", "-eo", "pid,sid,stat,args"], capture_output=True, text=True, check=True)
    rows = (line.split(None, 3) for line in listed.stdout.splitlines()[1:])
    return [int(row[0]) for row in rows if row[1] == str(session) and row[2][0] != "Z" and name in row[3]]


def _workers(session: int) -> list[int]:
    return _processes(session, "ray::MapWorker(MapBatches")


def _working(session: int) -> list[int]:
    """List the processes of Ray that work for commands, except its agents, without which a node ends."""
    return sorted({*_processes(session, "ray::")} - {*_processes(session, "Agent")})


def _kill(processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


@dataclass(frozen=True)
class Pace:
    """The duration of an undisturbed batch: seconds to its first part, and from there to its end."""

    start: float
    work: float

    def moment(self, rng: random.Random, *, is_new: bool) -> tuple[bool, float]:
        """Draw the time of the next kill: whether it counts from a new part on, and the seconds.

        A fifth of the kills of a new command come before its first part, at a time drawn from all of its start. The
        others come behind a part that the command has begun to write, at a time drawn from all of its work, verifying
        included. Otherwise most kills would hit the start, which takes longer than the work.
        """
        if is_new and rng.random() < _EARLY:
            return False, rng.uniform(0, self.start)
        return True, rng.uniform(0, self.work)


class Attempt:
    """One start of a batch, and the parts that were there before."""

    def __init__(self, shelf: Shelf, out: Path, more: Sequence[str]) -> None:
        self.out = out
        self.known = self.parts()
        self.command = shelf.batch(out, *more)
        self.is_new = True

    def parts(self) -> set[str]:
        """Return the names of the existing parts."""
        return {path.name for path in self.out.glob("parts/*.parquet")}

    def reaches(self, behind_a_part: bool, seconds: float) -> bool:
        """Wait for the moment; whether it came before the command's end."""
        until = time.monotonic() + _LONGEST
        while behind_a_part and self.command.poll() is None and self.parts() <= self.known:
            if time.monotonic() > until:
                raise TimeoutError(f"no part in {_LONGEST} s")
            time.sleep(0.05)
        try:
            self.command.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill(self, kind: str, address: str | None, *, all_of_ray: bool) -> str:
        """Kill what `kind` names, and return the kind of the kill: without a worker, the command is killed."""
        session = os.getsid(0) if address else self.command.pid
        workers = _workers(session)
        if kind == "worker" and workers:
            _kill(workers[:1])
            self.known, self.is_new = self.parts(), False
            return kind
        rest = _working(session) if address else _processes(session)
        _kill([self.command.pid, *(rest if kind == "all" else [])])
        self.command.communicate()
        if address is None and all_of_ray:  # else the next start meets those that are dying
            _kill(_processes(self.command.pid))
        return "all" if kind == "all" else "command"


def undisturbed(shelf: Shelf, more: Sequence[str], tally: Tally) -> Pace:
    """Run a batch to its end, check it, and return how long its parts took."""
    started = time.monotonic()
    attempt = Attempt(shelf, shelf.place / "undisturbed", more)
    attempt.reaches(True, 0)
    first = time.monotonic()
    told = attempt.command.communicate(timeout=_LONGEST)[1]
    shelf.check(attempt.out, told, tally, "undisturbed")
    pace = Pace(first - started, time.monotonic() - first)
    print(
        f"undisturbed: {pace.start:.0f} s to the first part, {pace.work:.0f} s from there to the end",
        flush=True,
    )
    return pace


def kills(options: argparse.Namespace, shelf: Shelf, tally: Tally, address: str | None = None) -> None:
    """Kill, start again, and check every batch that reaches its end."""
    rng = random.Random(options.seed)
    more = ["--workers", str(options.workers), *([] if address is None else ["--address", address])]
    pace = undisturbed(shelf, more, tally)
    began = time.monotonic()
    counts: Counter[str] = Counter()
    finished = 0
    attempt = Attempt(shelf, shelf.place / "out-0", more)
    while True:
        done = sum(counts[kind] for kind in _KINDS)
        if time.monotonic() - began > 60 * options.minutes:
            options.kills = done
        behind, seconds = (
            pace.moment(rng, is_new=attempt.is_new) if done < options.kills else (False, _LONGEST)
        )
        if attempt.reaches(behind, seconds):
            kind = attempt.kill(_KINDS[done % 3], address, all_of_ray=done % 2 == 0)
            counts.update([kind, "behind a part" if behind else "before the first part"])
            when = "behind a part" if behind else "from the start"
            print(
                f"kill {done + 1}: {kind}, {seconds:.1f} s {when}, {len(attempt.parts())} parts there",
                flush=True,
            )
            if kind != "worker":
                attempt = Attempt(shelf, attempt.out, more)
            continue
        told = attempt.command.communicate()[1]
        tally.hold(attempt.command.returncode == 0, f"exit {attempt.command.returncode}: {told[-300:]}")
        if attempt.command.returncode:
            break
        shelf.check(attempt.out, told, tally, attempt.out.name)
        finished += 1
        shutil.rmtree(attempt.out)
        if done >= options.kills:
            break
        attempt = Attempt(shelf, shelf.place / f"out-{finished}", more)
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    minutes = (time.monotonic() - began) / 60
    print(
        f"{told}; {finished} batches of {len(shelf.wanted)} documents came to their end in {minutes:.0f} minutes"
    )


@contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """Start a cluster of two nodes, each a process of this machine, and yield it with the second node."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 5, "include_dashboard": False})
    try:
        yield cluster, cluster.add_node(num_cpus=3)
    finally:
        cluster.shutdown()


def deadly(shelf: Shelf, tally: Tally) -> None:
    """Kill the worker whenever it is at work on the last row."""
    from precis.batch.document_source import documents_of
    from precis.phases.use.input_documents import Reading

    *_, (last, document) = documents_of(str(shelf.rows), Reading(keep_going=True))
    out = shelf.place / "deadly"
    command = shelf.batch(out, "--workers", "1")
    deaths, until = 0, time.monotonic() + _LONGEST
    known: set[str] = set()
    while command.poll() is None and time.monotonic() < until:
        for file in set(out.glob("attempts/*.json")):
            with suppress(FileNotFoundError):  # done just now
                if file.name in known or last not in (ids := json.loads(file.read_text())):
                    continue
                known.add(file.name)
                _kill(_workers(command.pid))
                deaths += 1
                print(f"death {deaths}: at work on {len(ids)} documents", flush=True)
        time.sleep(0.002)
    told = command.communicate(timeout=60)[1]
    tally.hold(command.returncode == 0, f"exit {command.returncode}: {told[-300:]}")
    rows = {row["name"]: row for row in map(json.loads, (out / "summaries.jsonl").read_text().splitlines())}
    failed = {name: row["error"] for name, row in rows.items() if row["status"] == "failed"}
    print(failed)
    tally.hold(set(failed) == {document.name}, f"failed: {failed}")
    others = {name: row["summary"] for name, row in rows.items() if name not in failed}
    wanted = {name: text for name, text in shelf.wanted.items() if name != document.name}
    tally.hold(others == wanted, "other summaries of the others")
    tally.hold("verified: " in told, told[-300:])


def nodes(shelf: Shelf, tally: Tally) -> None:
    """Run batches on two nodes, with and without the death of one node during the work."""
    with two_nodes() as (cluster, other):
        for out, dies in ((shelf.place / "two", False), (shelf.place / "one-dies", True)):
            command = shelf.batch(out, "--address", cluster.address, "--workers", "3")
            while dies and command.poll() is None and not list((out / "parts").glob("*.parquet")):
                time.sleep(0.2)
            if dies:
                cluster.remove_node(other, allow_graceful=False)
                print("a node is gone", flush=True)
            told = command.communicate(timeout=_LONGEST)[1]
            tally.hold(command.returncode == 0, f"{out.name}: exit {command.returncode}: {told[-500:]}")
            if not command.returncode:
                shelf.check(out, told, tally, out.name)


def main() -> int:
    """Make documents, summarize them without kills, then in batches that are killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600, help="stop killing after this many minutes")
    parser.add_argument("--model", help="a folder, or default; see above")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--standing", action="store_true", help="a cluster of two nodes that outlives the commands"
    )
    kind.add_argument("--nodes", action="store_true", help="two nodes, one of which dies, and no other kills")
    kind.add_argument("--deadly", action="store_true", help="one document, whose worker always dies")
    options = parser.parse_args()
    what = (
        "two nodes" if options.nodes else "a deadly document" if options.deadly else f"{options.kills} kills"
    )
    header(f"precis batch: {what}, {options.documents} documents", seed=options.seed)
    tally = Tally()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        model = options.model or ("default" if options.deadly else None)
        shelf = Shelf(Path(place), options.documents, model, long=options.deadly)
        if options.nodes:
            nodes(shelf, tally)
        elif options.deadly:
            deadly(shelf, tally)
        elif options.standing:
            with two_nodes() as (cluster, _):
                kills(options, shelf, tally, cluster.address)
        else:
            kills(options, shelf, tally)
    if not (options.nodes or options.deadly):
        what = f"{options.kills} kills"  # as many as there was time for
    return verdict(f"checks after {what}: exactly one summary for each document", tally)


if __name__ == "__main__":
    sys.exit(main())
