"""GLUE two ways (Z-Code++ A.5): a head on the encoder, and text from the decoder, from a model and from nothing.

    start (the model, nothing) x task x way (head, text) x seed -> trained on the task -> answers for its test rows

Other models, such as a converted DeBERTaV3, have only a head, like the encoders in the paper's Table 13. The model from
nothing has the shape and the vocabulary of the given one. The baseline is the majority class.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import task
from precis.evaluation.score_report import title_of
from precis.evaluation.task_scores import Majority, has_labels, task_scorers
from precis.generation.classifier import Classifier
from precis.generation.model_loader import load_model
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.recipes.planning import Answer, resolve_run
from precis.storage.atomic import write_file
from precis_experiments.claim_verdicts import Claim, between
from precis_experiments.corpus_scores import corpus_cells, corpus_gain, corpus_gains, score_texts
from precis_experiments.experiment import (
    FURTHER_TESTS,
    Experiment,
    Results,
    Runner,
    drop_model,
    in_a_name,
    markdown,
    runs_of,
    training_of,
    write_texts,
)
from precis_experiments.initial_model import GIVEN, STARTS, starting_model
from precis_experiments.resumable_steps import Interrupted, Result, Step
from precis_experiments.scales import GLUE_SCALES, GlueScale
from precis_experiments.study_plan import Reads

WAYS: tuple[Answer, ...] = get_args(Answer)[::-1]
_BATCH = 64
#: Z-Code++ (ACL 2023), Table 13, dev: encoder with a head, encoder-decoder with text; no F1 and no Spearman.
PAPER = {
    ("cola", "matthews"): "75.5 / 86.2",
    ("sst2", "accuracy"): "96.3 / 96.5",
    ("mrpc", "accuracy"): "92.4 / 91.2",
    ("stsb", "pearson"): "93.1 / 92.5",
    ("qqp", "accuracy"): "92.8 / 92.4",
    ("mnli", "accuracy"): "91.7 / 91.4",
    ("mnli-mm", "accuracy"): "91.5 / 91.4",
    ("qnli", "accuracy"): "95.8 / 95.2",
    ("rte", "accuracy"): "92.4 / 92.1",
}
NOTE = """\
Intervals: 95%, test rows resampled, Student's t over seeds (two: their range). "Above" is the difference to the most
frequent class in the test rows, on the same rows; numbers do not have one. Checkpoints are chosen by the task's first
metric on rows held out from the training set. "Nothing" has the shape and the vocabulary of the given model.
"""


def _steps(scale: GlueScale, runner: Runner) -> Iterator[Step]:
    """Yield the steps, those of the given model first: they are the most informative."""
    for seed in scale.seeds:
        for start, ways in ways_of(scale).items():
            for way in ways:
                for name in scale.tasks:
                    work = partial(_cell, scale, runner, name, way, start=start, seed=seed)
                    updates = scale.steps_of(name, way)
                    yield Step(cell(start, name, way, seed), work, drop_model, updates=updates)


def ways_of(scale: GlueScale) -> dict[str, tuple[Answer, ...]]:
    """Return the ways by start; another model is an encoder, whose decoder was never trained."""
    return {**dict.fromkeys(STARTS, WAYS), **dict.fromkeys(scale.beside, ("head",))}


def cell(start: str, name: str, way: str, seed: int) -> str:
    """Return the name of a training step."""
    return f"{in_a_name(start)}-{name}-{way}-{seed}"


def _cell(
    scale: GlueScale, runner: Runner, name: str, way: Answer, place: Path, *, start: str, seed: int
) -> Result:
    """Train once, and score the answers on the test sets of the task."""
    steps = scale.steps_of(name, way)
    changes = training_of(steps=steps, rate=scale.rate(way), tokens=scale.batch_tokens, seed=seed)
    changes |= {"train.validate_every": max(1, steps // scale.validations)}
    changes |= {} if way == "head" else {"generated_rows": scale.dev_rows}
    base = start if start in scale.beside else starting_model(scale, start, place / "start", seed=seed)
    done = finetune(
        resolve_run(scale.recipe, pretrained=True, task_name=name, changes=changes, answer=way),
        PairRequest(
            sources=NamedPairs(task=name, data=str(runner.data), skip_bad=True).sources(),
            out=place / "run",
            answer=way,
            notify=runner.notify,
            start=str(base),
        ),
    )
    if done.result.interrupted:
        raise Interrupted
    sets: dict[str, Result] = {}
    for test in runner.test_sets(name):
        pairs = runner.spaced_test_pairs(test, scale.test_rows)
        texts = _answers(place / "run", way, test, pairs)
        write_file(place / f"answers-{test}.json", json.dumps(texts) + "\n")
        sets[test] = _scored(test, texts, pairs)
    return {"steps": done.result.step, "best_step": done.result.best_step, "sets": sets}


def _answers(model: Path, way: Answer, test: str, pairs: Sequence[Pair]) -> list[str]:
    if way == "head":
        classifier = Classifier.from_pretrained(str(model))
        return [each.text for each in classifier.stream([pair.document for pair in pairs], batch_size=_BATCH)]
    return write_texts(load_model(model), test, pairs, settings=task(test).generation, batch_size=_BATCH)


def _scored(test: str, texts: Sequence[str], pairs: Sequence[Pair]) -> Result:
    """Return the scores of the answers, and of the majority class on the same draws of rows."""
    metrics, references = task(test).metrics, [pair.all_references for pair in pairs]
    found = {"rows": len(pairs), "answers": score_texts(metrics, texts, references)}
    if has_labels(metrics):
        majority = [Majority.of(pairs).label] * len(pairs)
        found["majority"] = score_texts(metrics, majority, references)
    return found


def _table(scale: GlueScale, results: Results) -> str:
    """Return a table with a row for each test set, metric and start that has results."""
    seeds = f"{len(scale.seeds)} seed{'s' * (len(scale.seeds) > 1)}"
    longer = "".join(f" ({name} as text: {steps:,})" for name, steps in scale.text_steps)
    first = (
        f"Scale {scale.name}: {scale.steps:,} steps{longer} of {scale.batch_tokens:,} tokens, peak rates "
        f"{scale.head_rate:g} (head) and {scale.text_rate:g} (text), {seeds}; the given model's weights have the "
        f"digest {scale.weights}."
    )
    rows = [
        row
        for name in scale.tasks
        for test in (name, *FURTHER_TESTS.get(name, ()))
        for measure in task_scorers(task(test).metrics)
        for start in ways_of(scale)
        if (row := _row(scale, results, (name, test, measure), start))
    ]
    header = (
        "task | rows | measure | majority | start | head | above | text | above | Z-Code++ large, head / text"
    )
    return "\n".join([first, "", *markdown(header, rows), NOTE])


def _row(scale: GlueScale, results: Results, what: tuple[str, str, str], start: str) -> list[str]:
    name, test, measure = what
    cells, rows, majority = [], "", "-"
    for way in WAYS:
        runs = runs_of(results, {seed: cell(start, name, way, seed) for seed in scale.seeds})
        sets = {seed: run["sets"][test] for seed, run in runs.items() if test in run["sets"]}
        answers = {seed: each["answers"] for seed, each in sets.items()}
        beside = {seed: each["majority"] for seed, each in sets.items() if "majority" in each}
        own = corpus_cells(answers, [measure]) if answers else ["-"]
        cells += [*own, *(corpus_gains(answers, beside, [measure]) or ["-"])]
        for each in sets.values():
            rows = f"{each['rows']:,}"
            majority = f"{each['majority']['scores'][measure]:.1f}" if beside else "-"
    return [test, rows, measure, majority, start, *cells, PAPER.get((test, measure), "")] if rows else []


def _claims(scale: GlueScale, results: Results) -> list[Claim]:
    """Return Table 13's figures as claims: on each test set the head leads, or the text."""
    claims = []
    for name in scale.tasks:
        for test in (name, *FURTHER_TESTS.get(name, ())):
            measure = next(iter(task_scorers(task(test).metrics)))
            head, text = (
                {
                    seed: run["sets"][test]["answers"]
                    for seed in scale.seeds
                    if (run := results.get(cell(GIVEN, name, way, seed))) and test in run["sets"]
                }
                for way in ("head", "text")
            )
            printed = PAPER.get((test, measure), "").partition(" / ")[::2]
            leads = not all(printed) or float(printed[0]) >= float(printed[1])
            ours, runs = corpus_gain(head, text, measure) if leads else corpus_gain(text, head, measure)
            theirs = between(*(printed if leads else printed[::-1])) if all(printed) else ""
            words = f"{'the head' if leads else 'the text'} leads on {test}, {title_of(measure)}"
            claims.append(Claim(words=words, source="Z-Code++ Table 13", theirs=theirs, ours=ours, runs=runs))
    return claims


glue = Experiment(
    name="glue",
    scales=GLUE_SCALES,
    steps=_steps,
    reads=lambda scale: Reads(tasks=scale.tasks, needed=scale.tasks),
    table=_table,
    claims=_claims,
)
