"""BLEU, chrF and TER of a whole test set by sacrebleu, stored as sentence statistics for a cheap bootstrap.

BLEU: Papineni et al. (2002), with exponential smoothing (Post, 2018). chrF: Popovic (2015), F-score of character
n-grams up to 6, beta 2, no word n-grams. TER: Snover et al. (2006), edits and shifts per reference word; lower is
better, and a bad text can exceed 100. All settings are sacrebleu's defaults, which the signature states. With several
references, chrF takes the nearest, TER the fewest edits over the mean length. Every score raises `UserError` if the
lengths differ or are zero, or an example lacks a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from precis.evaluation.rouge import check_scored
from precis_text.words import unspaced_share

_UNSPACED = 0.5


@dataclass(frozen=True, kw_only=True)
class SummedScore:
    """A figure that sacrebleu computes from sums over sentences.

    Attributes:
        score: 0..100; TER may be higher.
        statistics: (n, k), one row per example; sacrebleu defines k and their meaning.
    """

    score: float
    signature: str
    statistics: NDArray[np.float64] = field(repr=False)
    metric: Metric = field(repr=False)

    @property
    def examples(self) -> None:
        """None: the figure of the set is not a mean over examples."""
        return None

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """Compute the figure of the examples `rows`, which may repeat."""
        return float(self.metric._compute_score_from_stats(self.statistics[rows].sum(axis=0).tolist()).score)


def bleu(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Literal["13a", "intl", "char", "zh", "none"] | None = None,
    lowercase: bool = False,
) -> SummedScore:
    """Compute sacrebleu's `corpus_bleu`; examples may have different numbers of references.

    Args:
        tokenize: sacrebleu's name of a tokenizer; if None, 13a, or zh if most letters of the references are in scripts
            without spaces. There 13a would treat a whole sentence as one word.
    """
    if tokenize is None:
        tokenize = "zh" if _is_unspaced(references) else "13a"
    return _summed("bleu", BLEU(tokenize=tokenize, lowercase=lowercase, force=True), predictions, references)


def chrf(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> SummedScore:
    """Compute sacrebleu's `corpus_chrf`; examples may have different numbers of references."""
    return _summed("chrf", CHRF(), predictions, references)


def ter(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> SummedScore:
    """Compute sacrebleu's `corpus_ter`; examples may have different numbers of references.

    If most letters of the references are in scripts without spaces, each letter is a word.
    """
    unspaced = _is_unspaced(references)
    return _summed("ter", TER(normalized=unspaced, asian_support=unspaced), predictions, references)


def _is_unspaced(references: Sequence[Sequence[str]]) -> bool:
    return unspaced_share(text for targets in references for text in targets) > _UNSPACED


def _summed(
    name: str, metric: Metric, predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> SummedScore:
    check_scored(name, predictions, references)
    # sacrebleu takes one list for each reference position; None fills in if an example has fewer.
    streams = [list(stream) for stream in zip_longest(*references)]
    # The statistics are private there; a test checks that they give the public figure exactly.
    rows = metric._extract_corpus_statistics(list(predictions), streams)
    whole = metric._aggregate_and_compute(rows)
    return SummedScore(
        score=float(whole.score),
        signature=f"{name}|{metric.get_signature()}",
        statistics=np.array(rows, dtype=np.float64),
        metric=metric,
    )
