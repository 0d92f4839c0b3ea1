"""Summaries through a server of llama.cpp: what is cut, over the cap or unsupported, and what faults of the server do.

    python -m benchmarks.writers.endpoint --gguf FILE --data DIR [--documents 50] [--context 1024] [--words 60]

DIR holds sets of pairs, a folder each with a dev file; the documents are drawn from SETS in equal parts with `--seed`.
`precis summarize --out` summarizes them. After a third of them the server is killed: the command must end with one line
and exit code 1. A new server gets the same port, and the repeated command finishes the file. Then one document is
summarized through a proxy that answers 429 twice, breaks the first stream, breaks all streams, or sends a byte at a
time.

A cut is silent if the server reports a truncated prompt, or if precis claims to have read a whole document of which it
sent a part.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.faithfulness.planted import read_pairs
from benchmarks.writers.faulty_proxy import FAULTS, FaultyProxy
from benchmarks.writers.llama_server import LlamaServer
from benchmarks.writers.promises import counted

SETS = ("usgov_posts_cc0", "ccby_docs", "openstax", "proposals", "optech_talk")


def drawn(data: Path, count: int, seed: int) -> list[dict[str, str]]:
    """Return rows with documents of all sets."""
    rows = []
    for name in SETS:
        pairs = read_pairs(data / "open_pairs" / name, seed=seed, split="dev")
        chosen = random.Random(seed).sample(pairs, min(len(pairs), -(-count // len(SETS))))
        rows += [{"id": f"{name} {n}", "document": pair.document} for n, pair in enumerate(chosen, start=1)]
    return rows[:count]


def precis(*words: object) -> subprocess.Popen[str]:
    """Start precis."""
    command = [sys.executable, "-m", "precis", *map(str, words)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Return the exit code and the lines of standard error."""
    _, said = process.communicate()
    return process.returncode, said.strip().splitlines()


def checked(rows: list[dict[str, str]], records: list[dict[str, Any]], *, words: int) -> dict[str, str]:
    """Return the figures of all summaries."""
    whole = [record for record in records if record["read"] == "whole"]
    silent = sum(record["tokens_read"] < 0.5 * record["document_tokens"] for record in whole)
    origins = [each["origin"] for record in records for each in record.get("sentences", ())]
    broken = counted(rows, [record["summary"] for record in records], words=words)
    return {
        "documents": str(len(records)),
        "read whole": str(len(whole)),
        "read in passages, and said so": str(len(records) - len(whole)),
        "silent cuts by precis": str(silent),
        **{what: str(count) for what, count in broken.items()},
        "sentences": f"{origins.count('written')} written, {origins.count('quoted')} quoted",
    }


def run_with_a_kill(
    file: Path, out: Path, asked: argparse.Namespace, port: int
) -> tuple[list[str], LlamaServer]:
    """Kill the server after a third of the summaries; return the command's last words and a new server."""
    server = LlamaServer(asked.gguf, context=asked.context, threads=asked.threads, port=port)
    process = precis("summarize", file, "--model", server.address, "--words", asked.words, "--out", out)
    part = out.with_name(out.name + ".part")
    while process.poll() is None and (not part.exists() or _lines(part) < asked.documents // 3):
        time.sleep(0.2)
    server.kill()
    code, said = ended(process)
    told = [f"killed server: exit code {code}, {_lines(part) - 1} summaries kept; {said[-1]}"]
    told += [f"  more than one line of error: {len(said)}"] if _tracebacks(said) else []
    return told, LlamaServer(asked.gguf, context=asked.context, threads=asked.threads, port=port)


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")


def _tracebacks(said: list[str]) -> bool:
    return any(line.startswith("Traceback") for line in said)


def main() -> int:
    """Print the figures; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=50)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rows = drawn(asked.data, asked.documents, asked.seed)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "documents.jsonl", Path(folder) / "summaries.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        told, server = run_with_a_kill(file, out, asked, asked.port)
        with server:
            command = ("summarize", file, "--model", server.address, "--words", asked.words, "--out", out)
            code, said = ended(precis(*command))
            if code:
                raise SystemExit("\n".join(said))
            records = [json.loads(line) for line in out.read_text().splitlines()]
            figures = checked(rows, records, words=asked.words)
            figures["prompts cut by the server"] = str(server.truncated)
            told += [_through(fault, server, Path(folder), rows[0]["document"]) for fault in FAULTS]
    print(f"{asked.gguf.name}, context {asked.context}, {asked.words} words, seed {asked.seed}; one run")
    print(f"{platform.processor() or platform.machine()}, threads: {asked.threads}, ", end="")
    print(f"{time.perf_counter() - start:.0f} s in all\n\n| what | figure |\n| --- | --- |")
    print(*(f"| {what} | {figure} |" for what, figure in figures.items()), "", *told, sep="\n")
    zero = ("silent", "over", "names", "numbers", "prompts cut")
    return int(any(what.startswith(zero) and figure != "0" for what, figure in figures.items()))


def _through(fault: str, server: LlamaServer, folder: Path, document: str) -> str:
    """Summarize the start of a document through a proxy with a fault, and say how it ended."""
    file = folder / "one.txt"
    file.write_text(" ".join(document.split()[:120]))
    with FaultyProxy(server.address, fault) as proxy:
        code, said = ended(precis("summarize", file, "--model", proxy.address, "--words", 30))
    tracebacks = ", with a traceback" if _tracebacks(said) else ""
    return f"{fault}: exit code {code}{tracebacks}; {said[-1].replace(proxy.address, 'ADDRESS')}"


if __name__ == "__main__":
    sys.exit(main())
