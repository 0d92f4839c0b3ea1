"""Structure to text from a pre-trained model, compared with the same model from nothing: E2E, WebNLG, DART.

    the given model, and one of its shape and tokenizer with new weights
    -> the learning rate of each, chosen on the first task's dev pairs if there are several
    -> each task with every seed, for the same steps -> BLEU, METEOR, TER, chrF, ROUGE-L of its test set

Tasks without a folder in the data are skipped with a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from precis.data.tasks.tasks import task
from precis.evaluation.score_report import title_of
from precis.generation.model_loader import load_model
from precis.recipes.planning import resolve_run
from precis_experiments.claim_verdicts import Claim
from precis_experiments.corpus_scores import corpus_cells, corpus_gain, corpus_gains, score_texts
from precis_experiments.experiment import (
    Experiment,
    Results,
    Runner,
    best_metric_of,
    drop_model,
    markdown,
    runs_of,
    training_of,
    write_texts,
)
from precis_experiments.initial_model import GIVEN, NOTHING, STARTS, starting_model
from precis_experiments.resumable_steps import Result, Step
from precis_experiments.scales import FACTS_SCALES, FactsScale
from precis_experiments.study_plan import Reads
from precis_text.errors import UserError

METRICS = ("bleu", "meteor", "ter", "chrf", "rougeL")
TITLES = {GIVEN: "the given model", NOTHING: "the same from nothing"}
RECIPE = "pretrained-small"
NOTE = """\
Intervals: 95%, test rows resampled, Student's t over seeds (two: their range); with one seed they do not cover other
seeds. Differences are paired by seed and test row. TER: lower is better. All runs of a task have the same number of
steps and tokens, and the checkpoint with the lowest dev loss counts. The model was pre-trained once.
"""


def _steps(scale: FactsScale, runner: Runner) -> Iterator[Step]:
    tasks = runner.tasks(scale.tasks)
    if not tasks:
        raise UserError(f"{runner.data} lacks a folder {' or '.join(scale.tasks)}; add one of them")
    trials = []
    for start in STARTS if len(scale.rates) > 1 else ():
        for rate in scale.rates:
            work = partial(_trial, scale, runner, start, tasks[0], rate=rate)
            trials.append(Step(_trial_step(start, rate), work, drop_model, updates=scale.rate_steps))
    yield from trials
    for seed in scale.seeds:
        for name in tasks:
            for start in STARTS:
                needs = tuple(step.name for step in trials)
                work = partial(_cell, scale, runner, start, name, seed=seed)
                cell = _step(name, start, seed)
                yield Step(cell, work, drop_model, needs=needs, updates=scale.steps)


def _trial_step(start: str, rate: float) -> str:
    return f"rate-{start}-{rate:g}"


def _step(name: str, start: str, seed: int) -> str:
    return f"{name}-{start}-{seed}"


def _trial(scale: FactsScale, runner: Runner, start: str, name: str, place: Path, *, rate: float) -> Result:
    """Return the best dev loss of a short run."""
    steps = scale.rate_steps
    return {"rate": rate, "loss": _train(scale, runner, start, name, place, rate=rate, steps=steps, seed=0)}


def _chosen(scale: FactsScale, results: Results, start: str) -> float:
    """Return the rate with the lowest dev loss, or the only one."""
    if len(scale.rates) == 1:
        return scale.rates[0]
    tried = [results[step] for rate in scale.rates if (step := _trial_step(start, rate)) in results]
    return float(min(tried, key=lambda found: found["loss"])["rate"])


def _cell(scale: FactsScale, runner: Runner, start: str, name: str, place: Path, *, seed: int) -> Result:
    steps = [_trial_step(start, rate) for rate in scale.rates]
    rate = _chosen(scale, {step: found for step in steps if (found := runner.study.result(step))}, start)
    loss = _train(scale, runner, start, name, place, rate=rate, steps=scale.steps, seed=seed)
    pairs = runner.spaced_test_pairs(name, scale.test_rows)
    settings = replace(task(name).generation, beams=scale.beams)
    loaded = load_model(place / "run")
    texts = write_texts(loaded, name, pairs, settings=settings, keep=place / "texts.jsonl", batch_size=32)
    scores = score_texts(METRICS, texts, [pair.all_references for pair in pairs])
    return {"rate": rate, "loss": loss, "rows": len(pairs), **scores}


def _train(
    scale: FactsScale,
    runner: Runner,
    start: str,
    name: str,
    place: Path,
    *,
    rate: float,
    steps: int,
    seed: int,
) -> float:
    """Train on a task; return the best dev loss."""
    begin = starting_model(scale, start, place / "start", seed=seed)
    changes = {
        **training_of(steps=steps, rate=rate, tokens=scale.batch_tokens, seed=seed),
        "train.validate_every": max(1, steps // 4),
        "train.patience": None,
        "generated_rows": 0,
    }
    run = resolve_run(RECIPE, pretrained=True, task_name=name, changes=changes, select="loss")
    result = runner.train(run, name, place, dev_rows=scale.dev_rows, start=begin, instruction="")
    return best_metric_of(result, place)


def _table(scale: FactsScale, results: Results) -> str:
    """Return a table for each task: both starts and the gain of the given one, in every metric."""
    lines = [
        f"Structure to text, scale {scale.name}: {scale.steps:,} steps of {scale.batch_tokens:,} tokens, "
        f"{'greedy' if scale.beams == 1 else f'beam {scale.beams}'}, at most {scale.test_rows:,} test rows, "
        f"learning rates {', '.join(f'{rate:g}' for rate in scale.rates)}.",
        "",
    ]
    for start, title in TITLES.items():
        tried = {rate: results[step] for rate in scale.rates if (step := _trial_step(start, rate)) in results}
        if not tried:
            continue
        told = ", ".join(f"{rate:g}: {found['loss']:.3f}" for rate, found in tried.items())
        lines += [f"Dev loss of {title} after {scale.rate_steps} steps by learning rate: {told}.", ""]
    for name in scale.tasks:
        by_start = {
            start: runs_of(results, {seed: _step(name, start, seed) for seed in scale.seeds})
            for start in STARTS
        }
        rows = [
            [
                TITLES[start],
                *corpus_cells(runs, METRICS),
                ", ".join(f"{run['loss']:.3f}" for run in runs.values()),
            ]
            for start, runs in by_start.items()
            if runs
        ]
        if gains := corpus_gains(by_start[GIVEN], by_start[NOTHING], METRICS):
            rows.append(["difference", *gains, ""])
        titles = " | ".join(map(title_of, METRICS))
        if rows:
            count = next(run["rows"] for runs in by_start.values() for run in runs.values())
            lines += markdown(f"{name}, {count:,} test rows | {titles} | dev loss of each seed", rows)
    signatures: dict[str, str] = next(
        (found["signatures"] for found in results.values() if "signatures" in found), {}
    )
    lines += [f"- `{signature}`" for signature in signatures.values()]
    return "\n".join([*lines, "", NOTE])


def _claims(scale: FactsScale, results: Results) -> list[Claim]:
    """Return the claim that pre-training helps, for each task."""
    claims = []
    for name in scale.tasks:
        given, nothing = (
            runs_of(results, {seed: _step(name, start, seed) for seed in scale.seeds})
            for start in (GIVEN, NOTHING)
        )
        ours, runs = corpus_gain(given, nothing, "bleu")
        words = f"pre-training helps on {name}, BLEU"
        claims.append(Claim(words=words, source="Z-Code++ A.6", theirs="", ours=ours, runs=runs))
    return claims


structure_to_text = Experiment(
    name="structure-to-text",
    scales=FACTS_SCALES,
    steps=_steps,
    reads=lambda scale: Reads(tasks=scale.tasks),
    table=_table,
    claims=_claims,
)
