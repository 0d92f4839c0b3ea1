"""Scores of tasks with a label or a number for an answer, by scikit-learn and scipy; all times 100, as GLUE prints.

Predictions are texts, as a decoder writes them. A text that is no label of the references counts as wrong, as in T5:
it is a class of its own. A text that is no number counts as -1. F1 is that of one class, which GLUE calls positive.
Where a figure is not defined (every prediction or every reference the same), it is 0, as in scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precis.errors import UserError
from precis.evaluation.answers import MeanScore
from precis.evaluation.rouge import check_scored

_NO_NUMBER = -1.0
_Values = NDArray[Any]
_Statistic = Callable[[_Values, _Values], float]  # references, predictions


@dataclass(frozen=True, kw_only=True)
class CorpusFigure:
    """A figure of the whole set, -100..100, computed anew for any of its examples."""

    signature: str
    wanted: _Values = field(repr=False)
    given: _Values = field(repr=False)
    statistic: _Statistic = field(repr=False)

    @property
    def score(self) -> float:
        return self.resampled(np.arange(len(self.wanted)))

    @property
    def examples(self) -> None:
        """The figure of the set is no mean of its examples'."""
        return None

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """The figure of the examples `rows`, which may repeat."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a figure is not defined, which gives 0
            figure = float(self.statistic(self.wanted[rows], self.given[rows]))
        return 100 * figure if np.isfinite(figure) else 0.0


def accuracy(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
    """Share of predictions that equal a reference, white space at the ends apart; 0..100.

    Raises:
        UserError: the two differ in length, are empty, or an example has no reference.
    """
    check_scored("accuracy", predictions, references)
    equal = [
        100.0 * (text.strip() in {target.strip() for target in targets})
        for text, targets in zip(predictions, references, strict=True)
    ]
    return MeanScore(signature="accuracy|labels:exact", examples=np.array(equal))


def matthews(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusFigure:
    """Matthews correlation of labels; the first reference counts.

    Raises:
        UserError: the two differ in length, are empty, or an example has no reference.
    """
    from sklearn.metrics import matthews_corrcoef

    check_scored("matthews", predictions, references)
    wanted, given = _labels(predictions, references)
    return CorpusFigure(
        signature=f"matthews|scikit-learn:{version('scikit-learn')}",
        wanted=wanted,
        given=given,
        statistic=matthews_corrcoef,
    )


def f1_of(positive: str, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusFigure:
    """F1 of the class `positive`; the first reference counts.

    Raises:
        UserError: the two differ in length, are empty, or an example has no reference.
    """
    from sklearn.metrics import f1_score

    check_scored("f1", predictions, references)
    wanted, given = _labels(predictions, references)
    return CorpusFigure(
        signature=f"f1|of:{positive}|scikit-learn:{version('scikit-learn')}",
        wanted=wanted == positive,
        given=given == positive,
        statistic=partial(f1_score, zero_division=0.0),
    )


def pearson(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusFigure:
    """Pearson's correlation of numbers; the first reference counts.

    Raises:
        UserError: the two differ in length, are empty, or a reference is missing or no number.
    """
    return _correlation("pearson", "pearsonr", predictions, references)


def spearman(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusFigure:
    """Spearman's rank correlation of numbers; the first reference counts.

    Raises:
        UserError: the two differ in length, are empty, or a reference is missing or no number.
    """
    return _correlation("spearman", "spearmanr", predictions, references)


def _correlation(
    name: str, function: str, predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> CorpusFigure:
    from scipy import stats

    check_scored(name, predictions, references)
    wanted = [_number(first) for first, *_ in references]
    if None in wanted:
        row = wanted.index(None)
        raise UserError(f"{name} needs numbers: the reference of example {row + 1} is {references[row][0]!r}")
    given = [_NO_NUMBER if (number := _number(text)) is None else number for text in predictions]
    correlate = getattr(stats, function)
    return CorpusFigure(
        signature=f"{name}|scipy:{version('scipy')}",
        wanted=np.array(wanted, dtype=np.float64),
        given=np.array(given, dtype=np.float64),
        statistic=lambda one, other: correlate(one, other).statistic if len(one) > 1 else 0.0,
    )


def _labels(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[_Values, _Values]:
    """Labels of references and predictions as arrays of texts; what no reference says is one class, ""."""
    wanted = [first.strip() for first, *_ in references]
    known = set(wanted)
    return np.array(wanted), np.array([text.strip() if text.strip() in known else "" for text in predictions])


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
