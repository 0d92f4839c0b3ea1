"""Short pairs of open sets, to adapt a causal language model and to score it.

    python -m experiments.scripts.writer_pairs --data DIR --out PAIRS [--train 32] [--dev 20] [--seed 0]

DIR holds the sets of `SETS`. From each one, rows with a summary of 8 to 60 words are drawn at random. Of a document
with more than 220 words, a pair has the passages that the model in the box chooses for a writer.
PAIRS/pairs/train.jsonl and dev.jsonl mix the sets for `precis tune`; each PAIRS/NAME.jsonl has `--dev` documents of one
set's dev split for `precis evaluate`, of any length, which training never sees. The dev pairs of a run are train rows
that are held out, a fifteenth of them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from precis.extract.extractor_opening import passage_choice
from precis.generation.writers.writer_input import Readable
from precis_experiments.open_sets import EXTENSIONS, SETS, pairs_of
from precis_text.units import extraction_units
from precis_text.words import length_in_words

NAMES = (
    "usgov_posts", "proposals", "optech_talk", "web_posts", "opensuse_news", "science_abstract", "science_lay",
    "scitldr", "ccby_docs", "crs_reports", "openstax", "govulndb", "gum",
)  # fmt: skip
_SHORTEST, _LONGEST, _SUMMARY = 50, 220, range(8, 61)  # words of a document, of its passages, of a summary
_DEV_SHARE = 15


def short(pairs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield the pairs of these lengths, with the first summary."""
    for pair in pairs:
        document, summary = str(pair["document"]), str(pair["summaries"][0])
        if length_in_words(document) >= _SHORTEST and length_in_words(summary) in _SUMMARY:
            yield {"document": document, "summary": summary}


def in_passages(pair: dict[str, str]) -> dict[str, str]:
    """Return a pair with what a writer would read of its document."""
    text = pair["document"]
    if length_in_words(text) <= _LONGEST:
        return pair
    readable = Readable(text, extraction_units(text))
    read = readable.passages(passage_choice(), lambda part: length_in_words(part) <= _LONGEST, words=_LONGEST)
    return {**pair, "document": read}


def drawn(pairs: Iterable[dict[str, str]], count: int, *, seed: int) -> list[dict[str, str]]:
    """At most `count` of the pairs, at random."""
    rows = list(pairs)
    return random.Random(seed).sample(rows, min(count, len(rows)))


def write(rows: Iterable[Mapping[str, str]], path: Path) -> None:
    """One JSON object a line."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    for name, value in (("train", 32), ("dev", 20), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    train: list[dict[str, str]] = []
    for chosen in (each for each in (*SETS, *EXTENSIONS) if each.name in NAMES):
        place = asked.data / chosen.place
        pairs = drawn(short(pairs_of(chosen, place, "train")), asked.train, seed=asked.seed)
        found = [in_passages(pair) for pair in pairs]
        scored = drawn(
            (
                {"document": p["document"], "summary": p["summaries"][0]}
                for p in pairs_of(chosen, place, "dev")
            ),
            asked.dev,
            seed=asked.seed,
        )
        write(scored, asked.out / f"{chosen.name}.jsonl")
        train += found
        print(f"{chosen.name}: {len(found)} pairs to train on, {len(scored)} to score, {chosen.licence}")
    random.Random(asked.seed).shuffle(train)
    held = len(train) // _DEV_SHARE
    (asked.out / "pairs").mkdir(exist_ok=True)
    write(train[held:], asked.out / "pairs" / "train.jsonl")
    write(train[:held], asked.out / "pairs" / "dev.jsonl")


if __name__ == "__main__":
    main()
