"""Fits the least match of a question that a document answers: `python -m benchmarks.questions --data ROWS.jsonl.gz`.

Each row has a `document`, and `specific_queries` that it answers (a list of objects with `query`). A question of
another document, whose words may occur by chance, stands for one that the document does not answer.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from precis_text.forms.question import LEAST
from precis_text.forms.question_match import match
from precis_text.units import extraction_units


def matches(rows: list[dict[str, Any]], *, most: int) -> tuple[list[float], list[float]]:
    """Return how much of each question its own document holds, and how much the next one holds."""
    own: list[float] = []
    other: list[float] = []
    for row, following in zip(rows, [*rows[1:], rows[0]], strict=True):
        texts = [unit.text for unit in extraction_units(row["document"])]
        own += [match(each["query"], texts).held for each in row["specific_queries"][:most]]
        other += [match(each["query"], texts).held for each in following["specific_queries"][:most]]
    return own, other


def main() -> None:
    """Print the shares of questions that count as answered, for thresholds from 0.1 to 0.9."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--questions", type=int, default=6, help="the most of each document")
    asked = parser.parse_args()
    with gzip.open(asked.data, "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row.get("specific_queries")][: asked.documents]
    own, other = matches(rows, most=asked.questions)
    print(f"{len(own)} questions of {len(rows)} documents; the threshold in use is {LEAST}")
    for least in np.arange(0.1, 0.95, 0.1):
        right, wrong = (float(np.mean(np.array(each) >= least)) for each in (own, other))
        print(
            f"{least:.1f}: {right:.0%} of own questions answered, {wrong:.0%} of others; difference {right - wrong:.2f}"
        )


if __name__ == "__main__":
    main()
