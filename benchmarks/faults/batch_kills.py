"""Kill `precis batch` with SIGKILL again and again, and hold its summaries against those of `precis summarize`.

    python -m benchmarks.faults.batch_kills [--kills 50] [--documents 400] [--seed 0] [--workers 2]
    python -m benchmarks.faults.batch_kills --nodes

In turn the command, one of its workers, and all its processes are killed at a random time, and the command is started
again. Whenever it comes to its end, each document must have exactly one summary, the one that `precis summarize` gives,
and the next batch begins. `--nodes` starts a cluster of two nodes, each a process of this machine, kills one of them
while it works, and holds the summaries against the same ones. Texts are the project's own synthetic reports.
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
from pathlib import Path

from benchmarks.faults.report import Tally, header, verdict
from precis.data.synthetic.corpus import make_pairs

_LENGTH = ("--words", "25")
_LONGEST = 900  # seconds of one start


class Shelf:
    """Documents in a file of rows and in a folder of texts, and their summaries by `precis summarize`."""

    def __init__(self, place: Path, documents: int) -> None:
        texts = [pair.document for pair in make_pairs(documents, seed=5)]
        self.place, self.rows, self.folder = place, place / "rows.jsonl", place / "texts"
        self.folder.mkdir()
        half = documents // 2
        self.rows.write_text("".join(json.dumps({"document": text}) + "\n" for text in texts[:half]))
        for number, text in enumerate(texts[half:]):
            (self.folder / f"{number}.txt").write_text(text)
        alone = place / "alone.jsonl"
        command = ["summarize", str(self.rows), str(self.folder), "--out", str(alone), *_LENGTH]
        subprocess.run([sys.executable, "-m", "precis", *command], check=True, stderr=subprocess.DEVNULL)
        self.wanted = _summaries(alone)

    def batch(self, out: Path, *options: str) -> subprocess.Popen[str]:
        """Start the command in a session of its own."""
        words = ["batch", str(self.rows), str(self.folder), "--out", str(out), "--verify", *_LENGTH, *options]
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


def _kill(processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def kills(options: argparse.Namespace, shelf: Shelf, tally: Tally) -> None:
    """Kill, start again, and check every batch that comes to its end."""
    rng = random.Random(options.seed)
    started = time.perf_counter()
    command = shelf.batch(shelf.place / "alone", "--workers", str(options.workers))
    told = command.communicate(timeout=_LONGEST)[1]
    seconds = time.perf_counter() - started
    print(f"left alone it takes {seconds:.0f} s", flush=True)
    shelf.check(shelf.place / "alone", told, tally, "left alone")
    done = finished = 0
    out = shelf.place / "out-0"
    while done < options.kills or out.exists():
        command = shelf.batch(out, "--workers", str(options.workers))
        kind = ("command", "worker", "all")[done % 3]
        wait = rng.uniform(1, seconds) if done < options.kills else _LONGEST
        try:
            told = command.communicate(timeout=wait)[1]
        except subprocess.TimeoutExpired:
            done += 1
            every = _processes(command.pid)
            workers = _processes(command.pid, "ray::MapWorker(MapBatches")
            _kill({"command": [command.pid], "worker": workers[:1], "all": every}[kind])
            parts = len(list((out / "parts").glob("*.parquet"))) if (out / "parts").is_dir() else 0
            print(f"kill {done}: {kind}, after {wait:.0f} s, {parts} parts are there", flush=True)
            if kind != "worker":
                command.communicate()
                continue
            told = command.communicate(timeout=_LONGEST)[1]
        finally:
            if command.poll() is not None and done % 2:  # else the next start meets those that are dying
                _kill(_processes(command.pid))
        tally.hold(command.returncode == 0, f"exit {command.returncode}: {told[-300:]}")
        if command.returncode:
            break
        shelf.check(out, told, tally, out.name)
        finished += 1
        shutil.rmtree(out)
        out = shelf.place / f"out-{finished}"
        if done < options.kills:
            out.mkdir()
    print(f"{done} kills, {finished} batches of {len(shelf.wanted)} documents came to their end", flush=True)


def nodes(shelf: Shelf, tally: Tally) -> None:
    """Two nodes; one dies while the batch works."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 5, "include_dashboard": False})
    other = cluster.add_node(num_cpus=3)
    try:
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
    finally:
        cluster.shutdown()


def main() -> int:
    """Make documents, summarize them alone, then in batches that are killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--nodes", action="store_true", help="two nodes, one of which dies, and no other kills"
    )
    options = parser.parse_args()
    what = "two nodes" if options.nodes else f"{options.kills} kills"
    header(f"precis batch: {what}, {options.documents} documents", seed=options.seed)
    tally = Tally()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        shelf = Shelf(Path(place), options.documents)
        if options.nodes:
            nodes(shelf, tally)
        else:
            kills(options, shelf, tally)
    return verdict(f"batches after {what} with exactly one summary for each document", tally)


if __name__ == "__main__":
    sys.exit(main())
