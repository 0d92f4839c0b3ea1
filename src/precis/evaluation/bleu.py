"""Corpus BLEU by sacrebleu (Post, 2018), kept as sentence statistics so that a bootstrap is cheap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from precis.data.text.words import unspaced_share
from precis.errors import UserError
from precis.evaluation.rouge import check_parallel

_ORDERS = 4
_UNSPACED = 0.5


@dataclass(frozen=True, kw_only=True)
class CorpusScore:
    """BLEU of a whole test set.

    Attributes:
        score: 0..100.
        signature: sacrebleu's own.
        precisions: of 1- to 4-grams, 0..100.
        brevity_penalty: 0..1.
        statistics: (n, 10) integers, a row an example: tokens of the prediction, of the reference nearest in
            length, matched n-grams (4), n-grams (4). BLEU of any subset is a function of its column sums.
    """

    score: float
    signature: str
    precisions: tuple[float, ...]
    brevity_penalty: float
    statistics: NDArray[np.int64] = field(repr=False)

    @property
    def examples(self) -> None:
        """BLEU has no score of a single example."""
        return None

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """BLEU of the examples `rows`, which may repeat."""
        counts = self.statistics[rows].sum(axis=0).tolist()
        whole = BLEU.compute_bleu(
            correct=counts[2 : 2 + _ORDERS],
            total=counts[2 + _ORDERS :],
            sys_len=counts[0],
            ref_len=counts[1],
            smooth_method="exp",
        )
        return float(whole.score)


def bleu(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Literal["13a", "intl", "char", "zh", "none"] | None = None,
    lowercase: bool = False,
) -> CorpusScore:
    """sacrebleu's `corpus_bleu` with exponential smoothing; examples may have different numbers of
    references.

    Args:
        tokenize: sacrebleu's name of a tokenizer; if None, 13a, or zh where most letters of the references are of
            scripts without spaces: there 13a would take a whole sentence for one word.

    Raises:
        UserError: the two differ in length, are empty, or an example has no reference.
    """
    check_parallel(predictions, references)
    if not predictions:
        raise UserError("BLEU needs at least one prediction")
    if tokenize is None:
        unspaced = unspaced_share(text for targets in references for text in targets)
        tokenize = "zh" if unspaced > _UNSPACED else "13a"
    # sacrebleu takes one list for each reference position; None stands where an example has fewer.
    streams = [list(stream) for stream in zip_longest(*references)]
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    whole = metric.corpus_score(list(predictions), streams)
    # effective_order only changes how a sentence's score is formed (unused here), not its counts.
    sentence = BLEU(tokenize=tokenize, lowercase=lowercase, force=True, effective_order=True)
    rows = np.zeros((len(predictions), 2 + 2 * _ORDERS), dtype=np.int64)
    for row, prediction, targets in zip(rows, predictions, references, strict=True):
        counted = sentence.sentence_score(prediction, list(targets))
        row[:] = [counted.sys_len, counted.ref_len, *counted.counts, *counted.totals]
    return CorpusScore(
        score=float(whole.score),
        signature=f"bleu|{metric.get_signature()}",
        precisions=tuple(whole.precisions),
        brevity_penalty=float(whole.bp),
        statistics=rows,
    )
