"""Our sentence splitter and pysbd on the cases of `tests/text/sentence_rules.toml`: `python -m benchmarks.sentences`.

pysbd is not a dependency: `pip install pysbd==0.3.4`, or see our column only. It gets the language of each text;
ours does not. The second table has the speed on one text of invented sentences.
"""

import argparse
import time
import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from precis_text.sentences import split_sentences

CASES = Path(__file__).parents[1] / "tests" / "text" / "sentence_rules.toml"
CODES = {
    "english": "en",
    "german": "de",
    "spanish": "es",
    "french": "fr",
    "italian": "it",
    "russian": "ru",
    "japanese": "ja",
    "chinese": "zh",
    "arabic": "ar",
    "greek": "el",
    "hindi": "hi",
    "kinds": "en",
}
Split = Callable[[str], list[str]]


def pysbd_splitter(code: str) -> Split:
    """Return pysbd's splitter for a language, with sentences stripped."""
    segmenter = import_module("pysbd").Segmenter(language=code, clean=False)
    return lambda text: [sentence.strip() for sentence in segmenter.segment(text) if sentence.strip()]


def right(split: Split, cases: list[list[str]], *, joint: bool) -> int:
    """Count the texts that a splitter cuts into exactly these sentences."""
    return sum(split(("" if joint else " ").join(case)) == case for case in cases)


def speed(split: Split, text: str, *, repeats: int) -> float:
    """Return the best number of characters a second."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        split(text)
        times.append(time.perf_counter() - begin)
    return len(text) / min(times)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    tables = tomllib.loads(CASES.read_text("utf-8"))
    has_pysbd = find_spec("pysbd") is not None
    print(f"{'cases':12}{'texts':>7}{'ours':>7}{'pysbd':>7}")
    for name, table in tables.items():
        cases, joint = table["cases"], table.get("joint", False)
        ours = right(split_sentences, cases, joint=joint)
        theirs = str(right(pysbd_splitter(CODES[name]), cases, joint=joint)) if has_pysbd else "-"
        print(f"{name:12}{len(cases):7}{ours:7}{theirs:>7}")
    prose = " ".join(" ".join(case) for case in tables["english"]["cases"])
    for length in (1, 10):
        text = prose * length
        line = f"{len(text):,} characters: ours {speed(split_sentences, text, repeats=repeats):,.0f} a second"
        if has_pysbd:
            line += f", pysbd {speed(pysbd_splitter('en'), text, repeats=repeats):,.0f}"
        print(line)


if __name__ == "__main__":
    main()
