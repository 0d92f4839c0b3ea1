"""Scores of whole test sets in a study's results, for pooling and comparing runs later.

A result keeps each score and its values on resampled rows, with the same draws for every run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from precis.evaluation.answer_metrics import MeanScore
from precis.evaluation.rouge import Rouge
from precis.evaluation.score_report import Corpus
from precis.evaluation.significance import Bootstrap, Interval
from precis.evaluation.task_scores import rouge_types, task_scorers
from precis_experiments.experiment import Key, Runs
from precis_experiments.resumable_steps import Result


def score_texts(
    metrics: Sequence[str], texts: Sequence[str], references: Sequence[Sequence[str]], *, language: str = "en"
) -> Result:
    """Score texts in a language by a task's metrics; return JSON values.

    Raises:
        UserError: a metric is unknown, or `texts` is empty.
    """
    found: dict[str, Corpus] = {
        name: scorer(texts, references) for name, scorer in task_scorers(metrics).items()
    }
    if types := rouge_types(metrics):
        rouge = Rouge.choose((), language=language, types=types)
        for name, examples in rouge.score(texts, references).items():
            found[name] = MeanScore(signature=rouge.signature, examples=examples)
    drawn = Bootstrap()
    return {
        "scores": {name: score.score for name, score in found.items()},
        "resampled": {
            name: [round(float(value), 3) for value in drawn.resampled(score.resampled, len(texts))]
            for name, score in found.items()
        },
        "signatures": {name: score.signature for name, score in found.items()},
    }


def corpus_cells(runs: Runs[Key], metrics: Sequence[str]) -> list[str]:
    """Return the interval of each metric over runs and test rows."""
    return [str(_interval([_one(run, metric) for run in runs.values()])) for metric in metrics]


def corpus_gains(runs: Runs[Key], others: Runs[Key], metrics: Sequence[str]) -> list[str]:
    """Return the gain of `runs` over `others` in each metric, paired by key and row; empty without common keys."""
    found = [corpus_gain(runs, others, metric)[0] for metric in metrics]
    return [str(interval) for interval in found if interval is not None]


def corpus_gain(runs: Runs[Key], others: Runs[Key], metric: str) -> tuple[Interval | None, int]:
    """Return the interval of the gain in a metric, and the number of common runs; None without any."""
    common = [key for key in runs if key in others]
    if not common:
        return None, 0
    return _interval([_one(runs[key], metric) - _one(others[key], metric) for key in common]), len(common)


def _one(run: Result, metric: str) -> NDArray[np.float64]:
    """Return the score, followed by its value on each draw of rows."""
    return np.array([run["scores"][metric], *run["resampled"][metric]])


def _interval(runs: Sequence[NDArray[np.float64]]) -> Interval:
    figures = np.stack(runs)
    return Bootstrap().corpus_runs_interval(figures[:, 0].tolist(), figures[:, 1:])
