"""Markdown tables of runs: ROUGE with intervals, and what each row gains over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from precis.evaluation.significance import OVER_RUNS
from precis.studies.study import Result

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")

Key = TypeVar("Key")  # a seed, or a draw of examples
Runs = Mapping[Key, Result]


def markdown(header: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table and an empty one; `header` holds the titles between bars: "system | ROUGE-1"."""
    rule = "|---" * (header.count("|") + 1) + "|"
    return [f"| {header} |", rule, *(f"| {' | '.join(row)} |" for row in rows), ""]


def runs_of(results: Mapping[str, Result], names: Mapping[Key, str]) -> dict[Key, Result]:
    """The results that are there, by seed; `names` gives the step of each seed."""
    return {key: results[name] for key, name in names.items() if name in results}


def scores_of(runs: Runs[Key]) -> dict[str, NDArray[np.float64]]:
    """For each ROUGE type the (runs, examples) scores on the test set."""
    return {name: np.array([run["examples"][name] for run in runs.values()]) for name in ROUGE_TYPES}


def rouge_cells(runs: Runs[Key], types: Sequence[str] = ROUGE_TYPES) -> list[str]:
    """The interval of each ROUGE type over runs and examples."""
    scores = scores_of(runs)
    return [str(OVER_RUNS.runs_interval(scores[name])) for name in types]


def each_run(runs: Runs[Key]) -> str:
    """The mean ROUGE-L of every run."""
    return ", ".join(f"{mean:.1f}" for mean in scores_of(runs)["rougeL"].mean(axis=1))


def gain(runs: Runs[Key], others: Runs[Key]) -> str:
    """The interval of what ROUGE-L gains from `others` to `runs`, paired by seed and example.

    The cell is empty if no seed is in both.
    """
    common = [key for key in runs if key in others]
    if not common:
        return ""
    here, there = (scores_of({key: side[key] for key in common})["rougeL"] for side in (runs, others))
    return str(OVER_RUNS.runs_interval(here - there))
