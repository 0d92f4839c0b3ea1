"""Exact match and F1 of answers, by the rules of SQuAD's official script (Rajpurkar et al., 2016, version 1.1).

Answers are lower-cased. ASCII punctuation and the words "a", "an" and "the" are removed; white space is collapsed.
Exact match is 1 if the texts are then equal; F1 compares their words as bags. The best of several references counts.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from precis.evaluation.rouge import check_scored

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


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
    """Compute the share of predictions, 0..100, that equal a reference after normalization.

    Raises:
        UserError: the lengths differ or are zero, or an example lacks a reference.
    """
    return _best("exact_match", _equal, predictions, references)


def answer_f1(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
    """Compute the mean F1 of words, 0..100, each prediction with its best reference.

    Raises:
        UserError: the lengths differ or are zero, or an example lacks a reference.
    """
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
