"""Kill `precis batch` with SIGKILL again and again, and hold its summaries against those of `precis summarize`.

    python -m benchmarks.faults.batch_kills [--kills 50] [--documents 400] [--seed 0] [--workers 2] [--model MODEL]
        [--longest SECONDS] [--minutes N]
    python -m benchmarks.faults.batch_kills --standing [--kills 50]
    python -m benchmarks.faults.batch_kills --nodes
    python -m benchmarks.faults.batch_kills --deadly

In turn the command, one of its workers, and all its processes are killed; without its command a batch is started again.
Every other kill comes at a random time of a start's life, and the others within four seconds of the first part that it
has committed, so that not all of them meet a start that has done nothing yet. Whenever it comes to its end, each
document must have exactly one summary, the one that `precis summarize` gives, and the next batch begins. `--standing`
does this on a cluster of two nodes, each a process of this machine, which outlives the commands; there "all" is the
command and the workers. `--nodes` kills one of two nodes. `--deadly` kills the worker whenever it is at work on one
document: that one must have the status "failed", and every other one its summary. MODEL is by default a random Z-Code++
of 32 dimensions; `default` is the one that comes with precis, and the one for `--deadly`. Texts are the project's own
synthetic reports.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.faults.report import Tally, header, verdict
from benchmarks.faults.small_models import save
from precis.data.synthetic.corpus import make_pairs

_LENGTH = ("--words", "25", "--min-words", "4")
_LONGEST = 900  # seconds of one start


class Shelf:
    """Documents in a file of rows and in a folder of texts, and their summaries by `precis summarize`."""

    def __init__(self, place: Path, documents: int, model: str | None, *, long: bool = False) -> None:
        """`long`: the last row is all the others in one."""
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
    """The living processes of a session whose command line holds `name`."""
    listed = subprocess.run(["ps", "-eo", "pid,sid,stat,args"], capture_output=True, text=True, check=True)
    rows = (line.split(None, 3) for line in listed.stdout.splitlines()[1:])
    return [int(row[0]) for row in rows if row[1] == str(session) and row[2][0] != "Z" and name in row[3]]


def _workers(session: int) -> list[int]:
    return _processes(session, "ray::MapWorker(MapBatches")


def _kill(processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _parts(out: Path) -> int:
    """Committed parts of a batch."""
    return len(list((out / "parts").glob("*.parquet")))


def _moment(
    rng: random.Random, done: int, command: subprocess.Popen[str], out: Path, seconds: float
) -> float:
    """Seconds to wait for the next kill; every other time a further part is committed first, or the batch ends."""
    if done % 2 == 0:
        return rng.uniform(1, seconds)
    before, until = _parts(out), time.monotonic() + _LONGEST
    while command.poll() is None and _parts(out) <= before and time.monotonic() < until:
        time.sleep(0.05)
    return rng.uniform(0, 4)


def kills(options: argparse.Namespace, shelf: Shelf, tally: Tally, address: str | None = None) -> None:
    """Kill, start again, and check every batch that comes to its end."""
    rng = random.Random(options.seed)
    more = ["--workers", str(options.workers), *([] if address is None else ["--address", address])]
    started = time.perf_counter()
    seconds = options.longest
    if seconds is None:
        told = shelf.batch(shelf.place / "undisturbed", *more).communicate(timeout=_LONGEST)[1]
        seconds = time.perf_counter() - started
        print(f"undisturbed it takes {seconds:.0f} s", flush=True)
        shelf.check(shelf.place / "undisturbed", told, tally, "undisturbed")
    done = finished = 0
    out = shelf.place / "out-0"
    command = shelf.batch(out, *more)
    while True:
        if time.perf_counter() - started > 60 * options.minutes:
            options.kills = done
        wait = _LONGEST if done >= options.kills else _moment(rng, done, command, out, seconds)
        try:
            told = command.communicate(timeout=wait)[1]
        except subprocess.TimeoutExpired:
            kind = ("command", "worker", "all")[done % 3]
            done += 1
            workers = _workers(command.pid if address is None else os.getsid(0))
            every = _processes(command.pid) if address is None else [command.pid, *workers]
            _kill({"command": [command.pid], "worker": workers[:1], "all": every}[kind])
            print(f"kill {done}: {kind}, {_parts(out)} parts are there", flush=True)
            if kind != "worker":
                command.communicate()
                if address is None and done % 2:  # else the next start meets those that are dying
                    _kill(_processes(command.pid))
                command = shelf.batch(out, *more)
            continue
        tally.hold(command.returncode == 0, f"exit {command.returncode}: {told[-300:]}")
        if command.returncode:
            break
        shelf.check(out, told, tally, out.name)
        finished += 1
        shutil.rmtree(out)
        if done >= options.kills:
            break
        out = shelf.place / f"out-{finished}"
        command = shelf.batch(out, *more)
    print(f"{done} kills, {finished} batches of {len(shelf.wanted)} documents came to their end", flush=True)


@contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster of two nodes, each a process of this machine, and the second of them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 5, "include_dashboard": False})
    try:
        yield cluster, cluster.add_node(num_cpus=3)
    finally:
        cluster.shutdown()


def deadly(shelf: Shelf, tally: Tally) -> None:
    """Kill the worker whenever it is at work on the last row."""
    from precis.batch.source import documents_of
    from precis.phases.documents import Reading

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
    """Two nodes; one dies while the batch works."""
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
    """Make documents, summarize them alone, then in batches that are killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, help="seconds to the next kill; default: what a batch takes")
    parser.add_argument("--minutes", type=float, default=600, help="after so many no more kills")
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
    return verdict(f"batches after {what} with exactly one summary for each document", tally)


if __name__ == "__main__":
    sys.exit(main())
