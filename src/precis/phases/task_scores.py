"""What `precis evaluate` reports of a task where nothing else is asked for.

Summaries: ROUGE, beside LEAD-k, LONGEST-k and the oracle. Questions (ProphetNet, section 3.3): BLEU-4, METEOR and
ROUGE-L, without those: the beginning of a passage is no question. Papers lower-case questions before BLEU, so case is
disregarded here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from precis.data.tasks.tasks import task
from precis.evaluation.baselines import DEFAULT_BASELINES, Baseline
from precis.evaluation.bleu import bleu
from precis.evaluation.meteor import Meteor, synonyms_at_hand
from precis.evaluation.report import Scorer
from precis.evaluation.rouge import Rouge


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What is computed: ROUGE, other scores of the corpus by name, and the baselines in the table."""

    rouge: Rouge
    scorers: Mapping[str, Scorer]
    baselines: tuple[Baseline, ...]


def language_of(task_name: str | None) -> str | None:
    """The language of a task's texts as an ISO 639-1 code; None if there is no task.

    Raises:
        UserError: an unknown task.
    """
    return task(task_name).language if task_name else None


def scores_for(
    task_name: str | None,
    *,
    rouge: Rouge,
    with_bleu: bool = False,
    meteor: Scorer | None = None,
    with_meteor: bool = False,
    baselines: bool | None = None,
) -> Scores:
    """The scores of a task, and whatever is asked for besides.

    Args:
        task_name: a task of the table; None if the pairs belong to no task.
        rouge: how ROUGE is computed; for questions its types give way to ROUGE-L.
        with_bleu: BLEU for any task.
        meteor: how METEOR is computed; if None, by nltk, with synonyms if WordNet is at hand.
        with_meteor: METEOR for any task; a given `meteor` means that too.
        baselines: whether they are in the table; if None, they are except for questions.

    Raises:
        UserError: an unknown task.
    """
    questions = task_name is not None and task(task_name).kind == "question"
    scorers: dict[str, Scorer] = {}
    if with_bleu or questions:
        scorers["bleu"] = partial(bleu, lowercase=questions)
    if with_meteor or meteor is not None or questions:
        scorers["meteor"] = meteor or Meteor(synonyms=synonyms_at_hand())
    shown = not questions if baselines is None else baselines
    return Scores(
        rouge=replace(rouge, types=("rougeL",)) if questions else rouge,
        scorers=scorers,
        baselines=DEFAULT_BASELINES if shown else (),
    )
