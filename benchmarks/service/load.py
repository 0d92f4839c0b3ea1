"""A thousand clients at once, some of whom leave: `python -m benchmarks.service.load`.

Two servers of the same model get the same load in turn: `precis serve`, and a plain FastAPI application that calls the
model for each request by itself in its thread pool. For a model that chooses sentences the call is precis's
`Extractor`; for one that writes it is transformers' `generate`. Each answer of `precis serve` is compared with the
summary of its document by itself.

Exit code 1 if an answer is missing or differs, a status other than 200 and 503 came, or memory grew by more than a GiB.
Then `precis serve` gets the requests again, eight at a time, several times over. Exit code 1 too if it keeps more than
50 KiB a request in the end: the peak of a thousand clients at once would hide that.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel

LONGEST = 900.0  # seconds that a client waits
MOST_GROWTH = 1024  # MiB under load
MOST_KEPT = 50.0  # KiB a request, once memory has settled
TOGETHER = 8  # clients at once while memory is watched
PASSES = 4  # over the requests; what a pass keeps is compared with the one before it
PLAIN = "plain"


def texts(count: int, seed: int) -> list[str]:
    """Return invented documents of mixed length."""
    from precis.data.synthetic.corpus import make_pairs

    rng = random.Random(seed)
    made = [pair.document for pair in make_pairs(count, seed=seed)]
    return [" ".join(text.split()[: rng.choice((40, 80, 160, 400))]) for text in made]


class Ask(BaseModel):
    """A request to the plain application."""

    text: str
    words: int | None = None
    tokens: int | None = None


def chooses(model: str) -> bool:
    """Test whether a model chooses sentences by default."""
    from precis.generation.model_location import locate

    return locate(model).use.mode_for(None) == "extract"


def plain_app(model: str) -> Any:
    """Build the application that a programmer writes first: it calls the model in the handler of each request."""
    from fastapi import FastAPI

    app = FastAPI()
    summary_of = plain_extract(model) if chooses(model) else plain_generate(model)

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {}

    @app.post("/v1/summarize")
    def summarize(ask: Ask) -> dict[str, Any]:
        return {"summaries": [{"summary": summary_of(ask)}]}

    return app


def plain_extract(model: str) -> Callable[[Ask], str]:
    """Return a function that extracts from one document."""
    from precis.extract.extractor_opening import open_extractor

    extractor = open_extractor(model)
    return lambda ask: extractor.summarize([ask.text], words=ask.words)[0].text


def plain_generate(model: str) -> Callable[[Ask], str]:
    """Return a function that summarizes one document with transformers."""
    import torch

    from precis.generation.model_loader import load_model

    loaded = load_model(model)

    def summary_of(ask: Ask) -> str:
        inputs = loaded.tokenizer(ask.text, return_tensors="pt")
        with torch.inference_mode():
            rows = loaded.model.generate(**inputs, max_new_tokens=ask.tokens)
        return str(loaded.tokenizer.decode(rows[0], skip_special_tokens=True))

    return summary_of


def made_alone(model: str, asked: list[str], length: dict[str, int]) -> list[str]:
    """Summarize each document by itself."""
    from precis.extract.extractor_opening import open_extractor
    from precis.generation.summarizer import Summarizer

    maker: Any = (open_extractor if chooses(model) else Summarizer.from_pretrained)(model)
    return [maker.summarize([text], **length)[0].text for text in asked]


def start(model: str, kind: str, threads: int, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server of that kind in its own process, with options of `precis serve`; return process and address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m"]
    if kind == PLAIN:
        command += ["benchmarks.service.load", "--model", model, "--serve-plain", str(port)]
    else:
        command += ["precis", "serve", "--model", model, "--port", str(port), "--max-seconds", "900"]
        command += ["--threads", str(threads), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            if httpx.get(f"{url}/ready", trust_env=False).status_code == 200:
                return process, url
        except httpx.HTTPError:
            time.sleep(0.2)
    process.kill()
    raise SystemExit(f"{kind}: did not start")


async def load(
    url: str, asked: list[str], leaving: set[int], length: dict[str, int], *, together: int | None = None
) -> tuple[list[Any], float]:
    """Send all requests at once, or `together` at a time: for each its status, summary and seconds; and all seconds."""
    limits = httpx.Limits(max_connections=together, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=LONGEST, limits=limits, trust_env=False) as client:

        async def one(number: int, text: str) -> Any:
            began = time.monotonic()
            work = client.post("/v1/summarize", json={"text": text, **length})
            try:
                if number in leaving:
                    await asyncio.wait_for(work, 0.2 + number % 7 / 10)
                    return "left", None, 0.0
                answer = await work
            except TimeoutError:
                return "left", None, 0.0
            except httpx.HTTPError as error:
                return type(error).__name__, None, 0.0
            said = answer.json()["summaries"][0]["summary"] if answer.status_code == 200 else None
            return answer.status_code, said, time.monotonic() - began

        began = time.monotonic()
        results = await asyncio.gather(*(one(*pair) for pair in enumerate(asked)))
        return results, time.monotonic() - began


def mib(process: subprocess.Popen[bytes], what: str) -> int:
    """Read a process's memory in MiB: "VmRSS" is its current memory, "VmHWM" its peak."""
    return kib(process, what) // 1024


def kib(process: subprocess.Popen[bytes], what: str) -> int:
    """Read a process's memory in KiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Read the processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kept_by_each(
    process: subprocess.Popen[bytes], url: str, asked: list[str], length: dict[str, int]
) -> float:
    """Measure the KiB that a server keeps of each request: the least of several passes, since a leak is in all."""
    grown, before = [], 0
    for _ in range(PASSES):
        asyncio.run(load(url, asked, set(), length, together=TOGETHER))
        after = kib(process, "VmRSS")
        grown.append((after - before) / len(asked))
        before = after
    return min(grown[1:])  # the first pass reaches sizes of documents for the first time


class Contender:
    """A server under load.

    Attributes:
        rates: answers a second of each round.
        costs: processor seconds of each answer, by round; more reliable than the clock under other load.
        well: all answers of all rounds were as expected.
    """

    def __init__(self, kind: str, model: str, threads: int) -> None:
        self.kind, self.well = kind, True
        self.rates: list[float] = []
        self.costs: list[float] = []
        self.process, self.url = start(model, kind, threads)

    def warm(self, asked: list[str], length: dict[str, int]) -> None:
        """Let it answer a few requests."""
        asyncio.run(load(self.url, asked[:8], set(), length))
        self._idle = mib(self.process, "VmRSS")

    def round(self, asked: list[str], expected: list[str], length: dict[str, int]) -> None:
        """Send all requests once and print their results."""
        leaving = {n for n in range(len(asked)) if n % 10 == 3}
        used = cpu_seconds(self.process)
        results, seconds = asyncio.run(load(self.url, asked, leaving, length))
        used = cpu_seconds(self.process) - used
        counts = Counter(str(status) for status, _, _ in results)
        took = sorted(time for status, _, time in results if status == 200)
        if not took:
            raise SystemExit(f"{self.kind}: no answer: {dict(counts)}")
        self.rates.append(len(took) / seconds)
        self.costs.append(used / len(took))
        same = sum(said == expected[n] for n, (status, said, _) in enumerate(results) if status == 200)
        grown = mib(self.process, "VmHWM") - self._idle
        self.well &= same == len(took) and set(counts) <= {"200", "503", "left"} and grown <= MOST_GROWTH
        p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
        said = [
            f"{self.kind:6} {self.rates[-1]:6.1f} answers/s  {1000 * self.costs[-1]:5.0f} CPU ms each",
            f"p50 {p50:6.2f} s  p99 {p99:6.2f} s  memory {self._idle:,} MiB, +{grown:,} at most",
            f"equal {same}/{len(took)}",
            *(f"{status}: {count}" for status, count in sorted(counts.items())),
        ]
        print("  ".join(said), flush=True)

    def watch(self, asked: list[str], length: dict[str, int]) -> None:
        """Send all requests several times, a few at once, and print the memory kept of each."""
        kept = kept_by_each(self.process, self.url, asked, length)
        self.well &= kept <= MOST_KEPT
        print(f"{self.kind:6} keeps {kept:.1f} KiB a request (at most {MOST_KEPT:.0f})", flush=True)

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(60)


def main() -> int:
    """Parse and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder; default: the model that comes with precis")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1, help="each server gets the load so often, in turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--serve-plain", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    from precis.generation.model_location import default_model

    model = options.model or str(default_model())
    if options.serve_plain:
        import uvicorn

        uvicorn.run(plain_app(model), port=options.serve_plain, log_level="error")
        return 0
    asked = texts(options.requests, options.seed)
    length = {"words": 30} if chooses(model) else {"tokens": 48}
    expected = made_alone(model, asked, length)
    print(f"{options.requests:,} requests at once, seed {options.seed}, {options.threads} threads, {length}")
    ours, plain = (Contender(kind, model, options.threads) for kind in ("precis", PLAIN))
    try:
        for one in (ours, plain):
            one.warm(asked, length)
        for number in range(options.rounds):
            for one in (ours, plain) if number % 2 == 0 else (plain, ours):
                one.round(asked, expected, length)
        ours.watch(asked, length)
    finally:
        ours.stop()
        plain.stop()
    rates = [mine / theirs for mine, theirs in zip(ours.rates, plain.rates, strict=True)]
    costs = [theirs / mine for mine, theirs in zip(ours.costs, plain.costs, strict=True)]
    for what, found in (("answers a second", rates), ("answers for a second of processor time", costs)):
        rounds = ", ".join(f"{ratio:.2f}" for ratio in found)
        print(f"{what}: {statistics.median(found):.2f} times the plain application's (rounds: {rounds})")
    return 0 if ours.well else 1


if __name__ == "__main__":
    raise SystemExit(main())
