"""The scores that a task may name in `metrics`.

A name is a ROUGE type ("rougeL"; "rouge" means all of `ROUGE_TYPES`), a key of `SCORERS`, or "f1:LABEL".
"question_bleu" ignores case, as papers on question generation do. METEOR is nltk's, with WordNet's synonyms if
available; the signature shows which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from precis.data.pairs.pair import Pair
from precis.evaluation.answer_metrics import (
    accuracy,
    answer_f1,
    exact_match,
    f1_of,
    matthews,
    pearson,
    spearman,
)
from precis.evaluation.meteor import Meteor, synonyms_at_hand
from precis.evaluation.rouge import ROUGE_TYPES, Rouge
from precis.evaluation.sacrebleu_scores import bleu, chrf, ter
from precis.evaluation.scoring import Scorer
from precis_text.config import Settings, nearest
from precis_text.errors import UserError

SCORERS: Mapping[str, Callable[[], Scorer]] = {
    "bleu": lambda: bleu, "question_bleu": lambda: partial(bleu, lowercase=True),
    "meteor": lambda: Meteor(synonyms=synonyms_at_hand()), "ter": lambda: ter, "chrf": lambda: chrf,
    "exact_match": lambda: exact_match, "answer_f1": lambda: answer_f1, "accuracy": lambda: accuracy,
    "matthews": lambda: matthews, "pearson": lambda: pearson, "spearman": lambda: spearman,
}  # fmt: skip
_F1 = "f1:"
_OF_LABELS = {"accuracy", "matthews"}


def rouge_types(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the ROUGE types among a task's metrics, or all types if the list is empty."""
    if not metrics or "rouge" in metrics:
        return ROUGE_TYPES
    return tuple(name for name in metrics if name.startswith("rouge"))


def task_scorers(metrics: Sequence[str]) -> dict[str, Scorer]:
    """Return the scorers of a task's metrics except ROUGE, by name; raise `UserError` if a metric is unknown."""
    scorers: dict[str, Scorer] = {}
    for name in metrics:
        if name.startswith("rouge"):
            continue
        if name.startswith(_F1):
            scorers["f1"] = partial(f1_of, name.removeprefix(_F1))
        elif name in SCORERS:
            scorers["bleu" if name == "question_bleu" else name] = SCORERS[name]()
        else:
            raise UserError(f"unknown metric {name!r}{nearest(name, SCORERS)}")
    return scorers


def label_measure(metrics: Sequence[str]) -> str | None:
    """Return the first score of a task whose answers are labels or numbers; None for any other task."""
    return metrics[0] if metrics and metrics[0] in _OF_LABELS | {"pearson"} else None


def has_labels(metrics: Sequence[str]) -> bool:
    """Check whether a task's answers are labels, so that the most frequent one is a baseline."""
    return not _OF_LABELS.isdisjoint(metrics)


@dataclass(frozen=True, kw_only=True)
class Majority(Settings):
    """Baseline that predicts the same label for every example: the most frequent one in the scored references."""

    label: str
    reads_references: bool = False

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Majority:
        """Find the most frequent label, the alphabetically first in a tie; raise `UserError` without pairs."""
        if not pairs:
            raise UserError("zero pairs to count labels in; give at least one")
        counts = Counter(pair.all_references[0] for pair in pairs)
        return cls(label=min(counts, key=lambda label: (-counts[label], label)))

    @property
    def name(self) -> str:
        return "MAJORITY"

    def extract(self, pair: Pair, *, rouge: Rouge) -> str:
        """Return the label."""
        return self.label
