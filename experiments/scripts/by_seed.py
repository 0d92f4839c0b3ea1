"""Short trainings on E2E, several seeds each, and the table of their losses: what the `*_init.py` here share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from precis.training.callbacks import read_metrics

Losses = dict[int, float]
"""Of the next token on the dev set, in nats, by step."""


def losses_of(run: Path) -> Losses:
    """What a run folder measured."""
    records = read_metrics(run / "metrics.jsonl")
    return {record["step"]: record["nll"] for record in records if record["kind"] == "validation"}


def print_table(columns: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[Losses]]]) -> None:
    """Mean and range over the seeds of each row, step by step."""
    steps = sorted(rows[0][1][0])
    print("|", " | ".join([*columns, *(f"loss at step {step}" for step in steps)]), "|")
    print("|---" * (len(columns) + len(steps)) + "|")
    for names, runs in rows:
        found = [[run[step] for run in runs] for step in steps]
        cells = [f"{mean(one):.2f} ({min(one):.2f}-{max(one):.2f})" for one in found]
        print("|", " | ".join([*names, *cells]), "|")


def options(described: str | None, *, out: Path) -> argparse.ArgumentParser:
    """The options that they have in common."""
    parser = argparse.ArgumentParser(
        description=described, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with a folder for each task")
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    return parser
