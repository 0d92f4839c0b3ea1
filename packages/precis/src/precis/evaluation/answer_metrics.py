"""Scores of answers, times 100: labels and numbers as in GLUE, by scikit-learn and scipy; texts as in SQuAD.

Predictions are texts, as a decoder writes them. A text that is not a label of the references counts as wrong, as in T5:
it forms a separate class. A text that is not a number counts as -1. F1 is that of one class, which GLUE calls positive.
An undefined figure (every prediction or every reference the same) counts as 0, as in scikit-learn.

Exact match and F1 of words follow SQuAD's official script (Rajpurkar et al., 2016, version 1.1). Answers are
lower-cased. ASCII punctuation and the words "a", "an" and "the" are removed; white space is collapsed. Exact match is 1
if the texts are then equal; F1 compares their words as bags. The best of several references counts.

Every score raises `UserError` if the lengths differ or are zero, or an example lacks a reference.
"""

from __future__ import annotations

import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precis.evaluation.rouge import check_scored
from precis_text.errors import UserError

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_NUMBER = -1.0
_Values = NDArray[Any]
_Statistic = Callable[[_Values, _Values], float]  # references, predictions


@dataclass(frozen=True, kw_only=True)
class MeanScore:
    """The mean of a per-example score, (n,) in 0..100."""

    signature: str
    examples: NDArray[np.float64] = field(repr=False)

    @property
    def score(self) -> float:
        return float(self.examples.mean())

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """Return the score of the examples `rows`, which may repeat."""
        return float(self.examples[rows].mean())


def exact_match(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
    """Compute the share of predictions, 0..100, that equal a reference after normalization."""
    return _best("exact_match", _equal, predictions, references)


def answer_f1(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
    """Compute the mean F1 of words, 0..100, each prediction with its best reference."""
    return _best("answer_f1", _f1, predictions, references)


def normalized(answer: str) -> str:
    """Normalize an answer by the rules of SQuAD's script."""
    bare = answer.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def _best(
    name: str,
    compare: Callable[[str, str], float],
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
) -> MeanScore:
    check_scored(name, predictions, references)
    scores = [
        100 * max(compare(normalized(text), normalized(target)) for target in targets)
        for text, targets in zip(predictions, references, strict=True)
    ]
    return MeanScore(signature=f"{name}|rules:squad-1.1|refs:max", examples=np.array(scores))


def _equal(prediction: str, reference: str) -> float:
    return float(prediction == reference)


def _f1(prediction: str, reference: str) -> float:
    predicted, wanted = prediction.split(), reference.split()
    common = sum((Counter(predicted) & Counter(wanted)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True, kw_only=True)
class CorpusFigure:
    """A figure of the whole set, -100..100, which can be recomputed for any of its examples."""

    signature: str
    wanted: _Values = field(repr=False)
    given: _Values = field(repr=False)
    statistic: _Statistic = field(repr=False)

    @property
    def score(self) -> float:
        return self.resampled(np.arange(len(self.wanted)))

    @property
    def examples(self) -> None:
        """None: the figure of the set is not a mean over examples."""
        return None

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """Compute the figure of the examples `rows`, which may repeat."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an undefined figure, which counts as 0
            figure = float(self.statistic(self.wanted[rows], self.given[rows]))
        return 100 * figure if np.isfinite(figure) else 0.0


def accuracy(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
    """Compute the share of predictions that equal a reference, ignoring white space at the ends; 0..100."""
    check_scored("accuracy", predictions, references)
    equal = [
        100.0 * (text.strip() in {target.strip() for target in targets})
        for text, targets in zip(predictions, references, strict=True)
    ]
    return MeanScore(signature="accuracy|labels:exact", examples=np.array(equal))


def matthews(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusFigure:
    """Compute the Matthews correlation of labels; the first reference counts."""
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
    """Compute F1 of the class `positive`; the first reference counts."""
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
    """Compute Pearson's correlation of numbers; the first reference counts, and must be a number."""
    return _correlation("pearson", "pearsonr", predictions, references)


def spearman(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusFigure:
    """Compute Spearman's rank correlation of numbers; the first reference counts, and must be a number."""
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
    """Return labels of references and predictions as arrays of texts; predictions with unknown labels become ""."""
    wanted = [first.strip() for first, *_ in references]
    known = set(wanted)
    return np.array(wanted), np.array([text.strip() if text.strip() in known else "" for text in predictions])


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
