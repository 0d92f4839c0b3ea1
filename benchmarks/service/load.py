"""A thousand clients at once, some of whom leave: `python -m benchmarks.service.load`.

Two servers of the same model get the same load, one after the other: `precis serve`, and a plain FastAPI application
that calls the model for each request by itself in its thread pool. Each answer is compared with the one made alone.

Exit code 1 if an answer is missing or differs, or a status other than 200 and 503 came.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

LONGEST = 900.0  # seconds that a client waits
PLAIN = "plain"


def texts(count: int, seed: int) -> list[str]:
    """Invented documents of mixed length."""
    from precis.data.synthetic.corpus import make_pairs

    rng = random.Random(seed)
    made = [pair.document for pair in make_pairs(count, seed=seed)]
    return [" ".join(text.split()[: rng.choice((40, 80, 160, 400))]) for text in made]


def plain_app(model: str) -> Any:
    """What a programmer writes first: the model called in the handler of each request."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    from precis.generation.extraction import Extractor
    from precis.generation.loading import model_use
    from precis.generation.summarizer import Summarizer

    kind = Extractor if model_use(model).mode_for(None) == "extract" else Summarizer
    maker: Any = kind.from_pretrained(model)
    app = FastAPI()

    class Ask(BaseModel):
        text: str
        words: int

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {}

    @app.post("/v1/summarize")
    def summarize(ask: Ask) -> dict[str, Any]:
        (made,) = maker.summarize([ask.text], words=ask.words)
        return {"summaries": [{"summary": made.text}]}

    return app


def start(model: str, kind: str, threads: int) -> tuple[subprocess.Popen[bytes], str]:
    """A server of that kind in a process of its own, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m"]
    if kind == PLAIN:
        command += ["benchmarks.service.load", "--model", model, "--serve-plain", str(port)]
    else:
        command += ["precis", "serve", "--model", model, "--port", str(port), "--max-seconds", "900"]
        command += ["--threads", str(threads)]
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


async def load(url: str, asked: list[str], leaving: set[int]) -> tuple[list[Any], float]:
    """Send all requests at once: for each its status, summary and seconds; and the seconds of all."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=LONGEST, limits=limits, trust_env=False) as client:

        async def one(number: int, text: str) -> Any:
            began = time.monotonic()
            work = client.post("/v1/summarize", json={"text": text, "words": 30})
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


def peak_mib(process: subprocess.Popen[bytes]) -> int:
    """The most memory that a process had."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def measure(kind: str, model: str, asked: list[str], expected: list[str], options: Any) -> tuple[float, bool]:
    """Load one server and print what came of it: answers a second, and whether all is well."""
    process, url = start(model, kind, options.threads)
    leaving = {n for n in range(len(asked)) if n % 10 == 3}
    try:
        asyncio.run(load(url, asked[:8], set()))  # warm
        results, seconds = asyncio.run(load(url, asked, leaving))
        memory = peak_mib(process)
    finally:
        process.terminate()
        process.wait(60)
    counts = Counter(str(status) for status, _, _ in results)
    took = sorted(time for status, _, time in results if status == 200)
    same = sum(said == expected[n] for n, (status, said, _) in enumerate(results) if status == 200)
    rate = len(took) / seconds
    p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
    print(
        f"{kind:6} {rate:6.1f} answers/s  p50 {p50:6.2f} s  p99 {p99:6.2f} s  peak {memory:,} MiB  "
        f"equal {same}/{len(took)}  "
        + " ".join(f"{status}: {count}" for status, count in sorted(counts.items())),
        flush=True,
    )
    return rate, same == len(took) and set(counts) <= {"200", "503", "left"}


def main() -> int:
    """Parse and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder; default: the model that comes with precis")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--serve-plain", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    from precis.generation.default_model import default_model, summarize

    model = options.model or str(default_model())
    if options.serve_plain:
        import uvicorn

        uvicorn.run(plain_app(model), port=options.serve_plain, log_level="error")
        return 0
    asked = texts(options.requests, options.seed)
    expected = [summarize(text, words=30, model=model) for text in asked]
    print(f"{options.requests:,} requests at once, seed {options.seed}, {options.threads} threads, {model}")
    ours, well = measure("precis", model, asked, expected, options)
    theirs, _ = measure(PLAIN, model, asked, expected, options)
    print(f"precis answers {ours / theirs:.2f} times as many requests a second")
    return 0 if well else 1


if __name__ == "__main__":
    raise SystemExit(main())
