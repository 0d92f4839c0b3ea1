"""The second stage of a search: the best model's decoding, tried on a part of the validation set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from precis.data.pairs.pair import Pair
from precis.evaluation.rouge import Rouge
from precis.generation.reading import DocumentEncoder
from precis.generation.summarizer import Summarizer
from precis.phases.validation import evenly_spaced
from precis.recipes.runs import RunPlan
from precis.studies.grid_study import GridStudy
from precis.studies.search_results import figure
from precis.studies.search_space import decoding_at_point
from precis.telling import Tell

_ROWS = 200  # of the dev set, where the run does not say how many it summarizes
_BATCH = 16


def try_decodings(
    model: Path,
    study: GridStudy,
    run: RunPlan,
    *,
    dev: Sequence[Pair],
    metric: str,
    tell: Tell,
    noted: Callable[[], None],
) -> None:
    """Score every point of the decoding grid that has no score yet.

    Args:
        model: the run folder of the best training trial.
        study: of the decoding grid; each score is noted in it, followed by a call of `noted`.
        run: `run.generation` is what the points change; `run.generated_rows` says on how many rows.
        metric: rouge1, rouge2 or rougeL; measured as validation does (0 to 100).
    """
    summarizer = Summarizer.from_pretrained(model)
    encode = DocumentEncoder(summarizer.tokenizer)
    # Training passes over pairs without tokens where bad ones are skipped; they must not end a search either.
    usable = [pair for pair in dev if encode.reads(encode(pair.document))]
    shown = evenly_spaced(usable, run.generated_rows or _ROWS)
    documents, references = [pair.document for pair in shown], [pair.all_references for pair in shown]
    rouge = Rouge.suited((text for texts in references for text in texts), types=(metric,))
    tell(f"decoding: {study.size} ways on {len(shown):,} dev pairs, judged by {metric}")
    while (done := len(study.finished)) < study.size:
        trial, _ = study.take()
        settings = decoding_at_point(run.generation, trial.values)
        written = summarizer.summarize(
            documents, settings=settings, batch_size=_BATCH, long="truncate", short="write"
        )
        value = float(rouge.score([summary.text for summary in written], references)[metric].mean())
        study.finish(trial, value)
        tell(f"decoding {done + 1} of {study.size}: {trial.words}: {metric} {figure(value)}")
        noted()
