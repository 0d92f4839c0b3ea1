"""The scores and baselines of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import task as known_task
from precis.evaluation.baselines import DEFAULT_BASELINES, Baseline, Lead
from precis.evaluation.meteor import Meteor, synonyms_at_hand
from precis.evaluation.rouge import ROUGE_TYPES, Rouge, TokenizerName
from precis.evaluation.sacrebleu_scores import bleu
from precis.evaluation.scoring import Scorer
from precis.evaluation.support_scores import Judge
from precis.evaluation.task_scores import Majority, has_labels, rouge_types, task_scorers
from precis_text.sentences import split_sentences


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores to compute: ROUGE if `with_rouge`, other corpus scores by name, the table's baselines, and marks with
    the judges' scores unless `faithful` is None.
    """

    rouge: Rouge
    scorers: Mapping[str, Scorer]
    baselines: tuple[Baseline, ...]
    with_rouge: bool = True
    faithful: Sequence[Judge] | None = None


def scores_for(
    task_name: str | None,
    pairs: Sequence[Pair],
    *,
    tokenizer: TokenizerName | None = None,
    stemmer: bool | None = None,
    with_bleu: bool = False,
    meteor: Scorer | None = None,
    with_meteor: bool = False,
    bertscore: Scorer | None = None,
    baselines: bool | None = None,
) -> Scores:
    """Choose the scores of a task, and add the requested ones.

    Summaries get ROUGE, with LEAD-k, LONGEST-k, LEXRANK-k, TEXTRANK-k and the oracle. A task with `metrics` gets
    those: the beginning of a passage is neither a question nor an answer, so only facts, whose texts repeat words of
    the data, keep the baselines. Labels get the most frequent label as baseline.

    Args:
        task_name: a task of the table; if None, the pairs do not belong to a task.
        tokenizer, stemmer: how ROUGE counts words; if None, by the task's language or the references' letters.
        with_bleu: BLEU for any task.
        meteor: computes METEOR; if None, nltk does, with synonyms if WordNet is available.
        with_meteor: METEOR for any task; implied by `meteor`.
        bertscore: computes BERTScore.
        baselines: whether the table has baselines; if None, as above.

    Raises:
        UserError: an unknown task.
    """
    known = known_task(task_name) if task_name is not None else None
    metrics = known.metrics if known is not None else ()
    types = rouge_types(metrics)
    rouge = Rouge.choose(
        (text for pair in pairs for text in pair.all_references),
        language=known.language if known is not None else None,
        tokenizer=tokenizer,
        stemmer=stemmer,
    )
    scorers = task_scorers(metrics)
    if with_bleu:
        scorers.setdefault("bleu", bleu)
    if meteor is not None:
        scorers["meteor"] = meteor
    elif with_meteor:
        scorers.setdefault("meteor", Meteor(synonyms=synonyms_at_hand()))
    if bertscore is not None:
        scorers["bertscore"] = bertscore
    everything: tuple[Baseline, ...] = (
        (Majority.of(pairs),) if has_labels(metrics) else _of_their_length(pairs)
    )
    shown = has_labels(metrics) or types == ROUGE_TYPES if baselines is None else baselines
    return Scores(
        rouge=replace(rouge, types=types or ROUGE_TYPES),
        scorers=scorers,
        baselines=everything if shown else (),
        with_rouge=bool(types),
    )


def _of_their_length(pairs: Sequence[Pair]) -> tuple[Baseline, ...]:
    """Return the usual baselines, and LEAD-k with as many units as the references have sentences on average."""
    counts = [len(split_sentences(text)) for pair in pairs for text in pair.all_references]
    own = Lead(units=max(1, round(sum(counts) / max(1, len(counts)))))
    first, *others = DEFAULT_BASELINES
    return DEFAULT_BASELINES if own == first else (first, own, *others)
