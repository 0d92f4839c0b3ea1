"""Scoring of models and baselines on the same examples, with an interval for each figure and named scorers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from precis.data.pairs.pair import Pair
from precis.evaluation.baselines import DEFAULT_BASELINES, Baseline
from precis.evaluation.rouge import NON_LATIN_WARNING, Rouge
from precis.evaluation.sacrebleu_scores import bleu
from precis.evaluation.score_report import REFERENCES, Corpus, Kind, Report, SystemScores, pooled, title_of
from precis.evaluation.significance import TOO_FEW_FOR_T, Bootstrap
from precis.evaluation.support_scores import Judge, faithful_scores
from precis.evaluation.text_statistics import shape_statistics
from precis_text.control_characters import remove_marks
from precis_text.errors import UserError
from precis_text.support.marks import HINT
from precis_text.words import non_latin_share

Scorer = Callable[[Sequence[str], Sequence[Sequence[str]]], Corpus]
_ABOUT_MARKS = f"Names, numbers, negations: marks per summary. {HINT[0].upper()}{HINT[1:]}."
_NO_SCORERS: Mapping[str, Scorer] = MappingProxyType({})
_NO_POOLS: Mapping[str, Sequence[str]] = MappingProxyType({})


def score(
    systems: Mapping[str, Sequence[str]],
    pairs: Sequence[Pair],
    *,
    rouge: Rouge | None = None,
    with_rouge: bool = True,
    with_bleu: bool = False,
    scorers: Mapping[str, Scorer] = _NO_SCORERS,
    baselines: Sequence[Baseline] = DEFAULT_BASELINES,
    intervals: Bootstrap | None = None,
    faithful: Sequence[Judge] | None = None,
    pools: Mapping[str, Sequence[str]] = _NO_POOLS,
) -> Report:
    """Score predictions and baselines on the same pairs.

    Args:
        systems: name -> predictions, one per pair, in the order of `pairs`; empty ones score 0 and are counted.
        pairs: documents with their references (`all_references`).
        rouge: ROUGE settings; if None, chosen by the language of the references (`Rouge.choose`).
        with_rouge: report ROUGE, which is meaningless for labels and numbers.
        with_bleu: also report corpus BLEU (sacrebleu, 13a).
        scorers: further scores of the whole corpus by name, such as {"meteor": Meteor()}.
        baselines: systems to compare with; () for none.
        intervals: samples, level and seed of the bootstrap.
        faithful: judges to run in addition to marking each summary; None for neither.
        pools: name of a row -> names of the systems that it pools, runs of one model with several seeds.

    Raises:
        UserError: zero pairs, a system with another number of predictions, or a name used twice.

    Examples:
        >>> pairs = list(precis.read_pairs("pairs", split="test"))
        >>> report = score({"mine": ["Ann sings." for _ in pairs]}, pairs)
        >>> report.system("mine").metrics["rougeL"].mean
        100.0
    """
    if not pairs:
        raise UserError("zero pairs to evaluate; give at least one")
    references = [pair.all_references for pair in pairs]
    rouge = rouge or Rouge.choose(text for texts in references for text in texts)
    intervals = intervals or Bootstrap()
    measures: dict[str, Scorer] = {**({"bleu": bleu} if with_bleu else {}), **scorers}
    rows = _predictions(systems, pairs, baselines, rouge)
    texts = {name: predictions for name, (_, predictions) in rows.items()}
    texts[REFERENCES] = [first for first, *_ in references]
    shapes = shape_statistics(texts, [remove_marks(pair.document) for pair in pairs])
    scored: list[SystemScores] = []
    for name, (kind, predictions) in rows.items():
        scores = rouge.score(predictions, references) if with_rouge else {}
        corpus = {measure: scorer(predictions, references) for measure, scorer in measures.items()}
        single = {measure: found.examples for measure, found in corpus.items() if found.examples is not None}
        scored.append(
            SystemScores(
                name=name,
                kind=kind,
                metrics={measure: intervals.interval(values) for measure, values in scores.items()}
                | {m: intervals.corpus_interval(found.resampled, len(pairs)) for m, found in corpus.items()},
                statistics=_means(shapes[name]),
                empty=sum(not prediction.strip() for prediction in predictions),
                predictions=predictions,
                examples={**scores, **shapes[name], **single},
                corpus=corpus,
            )
        )
    signed = scored[0].corpus if scored else {}
    scored = _with_pools(scored, pools, intervals)
    return Report(
        systems=scored,
        reference_statistics=_means(shapes[REFERENCES]),
        signatures=({"rouge": rouge.signature} if with_rouge else {})
        | {name: found.signature for name, found in signed.items()},
        intervals=intervals,
        notes=_notes(scored, pairs, rouge if with_rouge else None, intervals)
        + ([] if faithful is None else [_ABOUT_MARKS]),
        pairs=pairs,
        faithful={}
        if faithful is None
        else faithful_scores(texts, [pair.document for pair in pairs], references, judges=faithful),
    )


def _with_pools(
    scored: Sequence[SystemScores], pools: Mapping[str, Sequence[str]], intervals: Bootstrap
) -> list[SystemScores]:
    """Return the rows, with one row for the runs of each pool in the place of the first."""
    rows = {system.name: system for system in scored}
    places = {runs[0]: (name, runs) for name, runs in pools.items()}
    later = {run for runs in pools.values() for run in runs[1:]}
    return [
        pooled(places[name][0], [rows[run] for run in places[name][1]], intervals)
        if name in places
        else system
        for name, system in rows.items()
        if name not in later
    ]


def _predictions(
    systems: Mapping[str, Sequence[str]], pairs: Sequence[Pair], baselines: Sequence[Baseline], rouge: Rouge
) -> dict[str, tuple[Kind, Sequence[str]]]:
    """Return the kind and predictions of each row: the given systems, checked, then the baselines."""
    rows: dict[str, tuple[Kind, Sequence[str]]] = {}
    for name, predictions in systems.items():
        if name == REFERENCES:
            raise UserError(f"a system cannot be called {name!r}: the references use that name; rename it")
        if len(predictions) != len(pairs):
            raise UserError(f"system {name!r} has {len(predictions)} predictions for {len(pairs)} pairs")
        rows[name] = ("model", predictions)
    for baseline in baselines:
        if baseline.name in rows:
            raise UserError(f"two systems are called {baseline.name!r}; rename one")
        kind: Kind = "bound" if baseline.reads_references else "baseline"
        rows[baseline.name] = (kind, [baseline.extract(pair, rouge=rouge) for pair in pairs])
    return rows


def _notes(
    systems: Sequence[SystemScores], pairs: Sequence[Pair], rouge: Rouge | None, intervals: Bootstrap
) -> list[str]:
    """Return the notes that a reader needs to compare the figures."""
    notes = [
        f"{len(pairs)} examples; intervals: {intervals.level:.0%} percentile bootstrap over examples, "
        f"{intervals.samples} samples, seed {intervals.seed}."
        if len(pairs) > 1
        else "1 example: no intervals; score more examples to estimate how far a figure would vary."
    ]
    notes += [_about_seeds(system) for system in systems if system.runs]
    several = sum(len(pair.all_references) > 1 for pair in pairs)
    if several and rouge is not None:
        how = "best" if rouge.references == "max" else "mean"
        notes.append(f"{several} examples have several references: ROUGE takes the {how} for each measure.")
    share = non_latin_share(text for pair in pairs for text in pair.all_references)
    if rouge is not None and rouge.tokenizer == "rouge-score" and share > NON_LATIN_WARNING:
        notes.append(
            f"WARNING: {share:.0%} of the references' letters are not Latin, and rouge-score's tokenizer "
            "ignores them: these scores mean little; use --rouge-tokenizer unicode."
        )
    blank = sum(not any(text.strip() for text in pair.all_references) for pair in pairs)
    if blank and any(system.metrics for system in systems):
        notes.append(f"{blank} examples have an empty reference; every system scores 0 there.")
    notes += [f"{s.name}: {s.empty} empty predictions, scored 0." for s in systems if s.empty]
    bounds = [system.name for system in systems if system.kind == "bound"]
    if bounds:
        notes.append(f"{', '.join(bounds)} reads the references: a bound for extraction, not a competitor.")
    return notes


def _about_seeds(system: SystemScores) -> str:
    """Return what the interval of a pooled row covers, and the figure of each run."""
    measure = next((name for name in ("rougeL", *system.metrics) if name in system.metrics), "")
    figures = ", ".join(f"{run.metrics[measure].mean:.1f}" for run in system.runs)
    covered = "; intervals cover examples and seeds (Student's t over seeds)"
    if len(system.runs) == TOO_FEW_FOR_T:
        covered = " give their range, as an interval takes three"
    return (
        f"{system.name}: {len(system.runs)} runs{covered}; differences are paired by seed. {title_of(measure)} of each "
        f"run: {figures}."
    )


def _means(values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {name: float(column.mean()) for name, column in values.items()}
