"""Documents a second of the three ways to many summaries: `python -m benchmarks.service.rate [--documents N]`.

The documents are stories of the synthetic corpus. `precis summarize` and `precis batch` read them from one file, and
clients ask `precis serve` for them, each over its own connection. Every way is a process of its own, and its time
includes its start, which a run with one document shows. Processor seconds include child processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from benchmarks.pages import timed
from faults.service.payload import secret_of
from faults.service.silence import start
from precis.data.synthetic.corpus import make_pair

WORDS = 40


def written(folder: Path, count: int) -> Path:
    """Write a file of documents."""
    file = folder / f"{count}.jsonl"
    rows = (
        json.dumps({"id": str(number), "document": make_pair(number, seed=0).document})
        for number in range(count)
    )
    file.write_text("".join(f"{row}\n" for row in rows))
    return file


def run(*words: str) -> None:
    """Run a command of precis; raise `SystemExit` if it fails."""
    code = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", "precis", *words])
    if code:
        raise SystemExit(f"precis {words[0]} ended with {code}")


def served(file: Path, folder: Path, together: int) -> None:
    """Start a server, ask for a summary of each document, and stop it."""
    secret = secret_of(1)
    (folder / "keys").write_text(f"ann {secret}\n")
    process, url = start(folder / "keys", folder / "log")
    documents = [json.loads(line)["document"] for line in file.open()]
    try:
        key = {"Authorization": f"Bearer {secret}"}
        with (
            httpx.Client(headers=key, timeout=600, trust_env=False) as client,
            ThreadPoolExecutor(together) as pool,
        ):

            def ask(text: str) -> int:
                return client.post(f"{url}/v1/summarize", json={"text": text, "words": WORDS}).status_code

            statuses = {*pool.map(ask, documents)}
        if statuses != {200}:
            raise SystemExit(f"precis serve answered with {sorted(statuses)}")
    finally:
        process.terminate()
        process.wait(60)


def ways(folder: Path, file: Path, *, together: int, workers: int) -> dict[str, Callable[[], None]]:
    """Return what summarizes the documents of a file, by name."""
    out, words = folder / f"out-{file.stem}", ["--words", str(WORDS)]
    return {
        "summarize": lambda: run("summarize", str(file), *words, "--out", f"{out}.jsonl"),
        "batch": lambda: run("batch", str(file), *words, "--out", f"{out}-batch", "--workers", str(workers)),
        "serve": lambda: served(file, folder, together),
    }


def main() -> int:
    """Parse, run each way with one document and with all, and print documents a second without the start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--together", type=int, default=8, help="clients of the server at once")
    parser.add_argument("--workers", type=int, default=2, help="of precis batch")
    parser.add_argument("--ways", nargs="+", default=["summarize", "batch", "serve"])
    options = parser.parse_args()
    print("| way | start: wall s | CPU s | all: wall s | CPU s | documents a second | CPU ms a document |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = {count: written(folder, count) for count in (1, options.documents)}
        for way in options.ways:
            found = {
                count: timed(ways(folder, file, together=options.together, workers=options.workers)[way])
                for count, file in sizes.items()
            }
            (one, one_cpu), (wall, cpu) = found[1], found[options.documents]
            more = options.documents - 1
            rate, each = more / max(wall - one, 1e-9), 1000 * (cpu - one_cpu) / more
            print(
                f"| {way} | {one:.2f} | {one_cpu:.2f} | {wall:.2f} | {cpu:.2f} | {rate:.1f} | {each:.1f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
