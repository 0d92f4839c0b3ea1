"""Sixty summaries of the model in the box, to be read, and what a reader found wrong with them.

    python -m benchmarks.sixty_read --data DIR [--out FILE.jsonl]

The documents are drawn from the dev sets of `benchmarks.default_model`, seed 7, under 2,500 words. With --out they are
written with their reference and summary. What one reader found is in `sixty_read.toml`, by the number of the summary
from 1; it is counted here. A line says so if a summary is not the one that was read.
"""

import argparse
import hashlib
import json
import random
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.default_model import MEASURED, ONLY_MEASURED
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_location import default_model
from precis_experiments.open_sets import SETS, pairs_of

OF_EACH = (8, 8, 8, 8, 7, 7, 7, 7)
LONGEST = 2500
FOUND = Path(__file__).with_suffix(".toml")


def drawn(data: Path) -> Iterator[dict[str, Any]]:
    """Set, document and reference of the sixty."""
    sets = (*(each for each in SETS if each.name in MEASURED), *ONLY_MEASURED)
    for chosen, count in zip(sets, OF_EACH, strict=True):
        rows = pairs_of(chosen, data / chosen.place, "dev")
        short = [row for row in rows if len(row["document"].split()) < LONGEST]
        random.Random(7).shuffle(short)
        for row in short[:count]:
            yield {"set": chosen.name, "document": row["document"], "reference": row["summaries"][0]}


def main() -> int:
    """Print the counts; 1 if other summaries were read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = list(drawn(asked.data))
    made = open_extractor(default_model()).summarize([row["document"] for row in rows], short="write")
    rows = [{**row, "summary": summary.text} for row, summary in zip(rows, made, strict=True)]
    if asked.out is not None:
        asked.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    found = tomllib.loads(FOUND.read_text())
    print(f"of {len(rows)} summaries that one reader compared with their documents and references:")
    for each in found["kind"]:
        print(f"| {each['what']} | {len(each['summaries'])} |")
    others = [
        str(number)
        for number, (row, digest) in enumerate(zip(rows, found["digests"].split(), strict=True), start=1)
        if hashlib.sha256(row["summary"].encode()).hexdigest()[:6] != digest
    ]
    if others:
        print(f"not the summaries that were read: {', '.join(others)}")
    return bool(others)


if __name__ == "__main__":
    sys.exit(main())
