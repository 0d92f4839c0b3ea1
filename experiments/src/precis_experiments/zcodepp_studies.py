"""Z-Code++'s two studies: few examples (Table 11), and the effect of each part of pre-training (A.4, Table 12).

`fewshot` compares the pre-training phases with 0, 10, 100, 1000 and all examples of SAMSum, CNN/DailyMail and XSum. A
given model takes the place of the first phase, and one of its shape from nothing that of new weights.
`ablation` compares replaced-token detection, disentangled attention and spans at equal steps: on summaries, and by
heads on the encoder for MNLI's labels and SQuAD's spans. A scale chooses among these; tasks that the data lack are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from precis.data.batches.pretraining_batches import Corruption
from precis.data.tasks.tasks import task
from precis.evaluation.score_report import title_of
from precis.evaluation.significance import OVER_RUNS
from precis.objectives.pretraining_objectives import SpansAlone
from precis.recipes.pretraining_runs import PreTrainRun
from precis_experiments.claim_verdicts import Claim, between
from precis_experiments.corpus_scores import corpus_cells, corpus_gain, corpus_gains
from precis_experiments.experiment import (
    FURTHER_TESTS,
    ROUGE_TYPES,
    Experiment,
    Results,
    Runner,
    drop_model,
    each_run,
    gain,
    gain_interval,
    in_a_name,
    markdown,
    rouge_cells,
    runs_of,
)
from precis_experiments.initial_model import GIVEN, NOTHING, starting_model
from precis_experiments.resumable_steps import Result, Step
from precis_experiments.scales import SCALES, Scale
from precis_experiments.study_plan import Reads
from precis_experiments.zcodepp_steps import (
    TASK,
    head_on,
    is_by_head,
    phase1,
    phase1_run,
    phase2,
    score_on,
    tune_on,
)

FEWSHOT_NOTE = """\
Intervals: 95%, test documents resampled, Student's t over draws of the examples (two: their range); differences are of
ROUGE-L, paired by draw and document. Losses are per token in nats, a figure for each draw. Each model was pre-trained
once: another run might differ, and no interval covers that.
"""
STARTS = ("scratch", "phase1", "phase1+2")
GROUNDED = "given+2"
#: The same of a given model.
FROM_GIVEN = (NOTHING, GIVEN, GROUNDED)
#: Table 11, ROUGE-1/2/L by task, start and number of examples.
TABLE_11 = {
    (task_name, start): dict(zip((0, 10, 100, 1000), figures.split(), strict=True))
    for task_name, start, figures in (
        ("samsum", "phase1", "6.0/0.1/5.4 13.6/2.6/11.0 44.7/20.2/36.7 50.9/26.3/42.3"),
        ("samsum", "phase1+2", "26.5/7.9/20.5 40.27/17.4/33.7 47.6/22.3/38.7 52.2/28.1/43.9"),
        ("cnndm", "phase1", "3.5/0.1/3.1 11.9/1.5/8.7 37.3/15.0/25.5 40.7/18.3/28.3"),
        ("cnndm", "phase1+2", "40.0/17.3/25.3 40.0/17.3/25.3 41.1/18.4/27.5 42.0/19.6/28.9"),
        ("xsum", "phase1", "3.6/0.1/3.7 16.7/2.1/12.6 35.3/12.3/27.5 40.9/17.3/32.8"),
        ("xsum", "phase1+2", "36.6/13.7/28.6 37.4/14.0/29.1 40.6/17.5/30.0 41.9/18.9/33.6"),
        ("samsum", "t5", "9.4/1.3/8.2 14.0/4.0/12.0 29.6/10.4/23.5 41.4/17.8/32.8"),
        ("samsum", "pegasus", "26.3/6.4/20.5 37.0/11.7/28.1 45.0/19.8/36.1 49.3/24.4/40.6"),
        ("cnndm", "t5", "18.5/4.9/13.3 19.0/5.1/13.6 24.2/7.7/17.5 31.9/11.2/21.4"),
        ("cnndm", "pegasus", "32.9/13.3/29.4 37.6/15.8/33.5 40.3/18.2/37.0 41.7/19.4/38.3"),
        ("xsum", "t5", "12.8/2.3/9.8 13.2/2.5/10.0 21.5/5.5/17.0 31.2/9.4/23.8"),
        ("xsum", "pegasus", "19.3/3.0/12.7 19.4/3.5/14.02 39.07/16.4/31.3 41.6/18.2/33.3"),
    )
}


def _fewshot_steps(scale: Scale, runner: Runner) -> Iterator[Step]:
    """Yield the steps: each phase against the one before with few examples, then pre-training against none."""
    if not scale.start:
        yield runner.pack(scale.corpora, scale.vocab_size)
        yield phase1(runner, "phase1", phase1_run(scale, scale.phase1_steps))
    yield phase2(scale, runner, starts_of(scale)[2])
    for name in runner.tasks(scale.tasks):
        for start in starts_of(scale)[1:]:
            score = partial(_zero_shot, scale, runner, name, start)
            yield Step(_fewshot_cell(name, start, 0), score, needs=_needs(scale, start))
        for start, examples, seed in ordered_cells(scale):
            tune = partial(_tuned, scale, runner, start, name, examples=examples, sampling_seed=seed or 0)
            cell = _fewshot_cell(name, start, examples, seed)
            updates = scale.full_steps if examples is None else scale.few_shot_steps
            yield Step(cell, tune, drop_model, needs=_needs(scale, start), updates=updates)


def starts_of(scale: Scale) -> tuple[str, ...]:
    """Return the starting points of fine-tuning: ours, then the other models."""
    return (*(FROM_GIVEN if scale.start else STARTS), *scale.beside)


def _needs(scale: Scale, start: str) -> tuple[str, ...]:
    """Return the steps that make a starting point; another or a given model needs none."""
    if start in (*scale.beside, NOTHING, GIVEN):
        return ()
    return ("pack" if start == "scratch" else start,)


def _model_of(scale: Scale, runner: Runner, start: str, place: Path, *, seed: int = 0) -> Path | str | None:
    """Return the model of a starting point, written to `place` if it has new weights; None for our own new one."""
    if start in scale.beside:
        return start
    if start in (NOTHING, GIVEN):
        return starting_model(scale, start, place / "start", seed=seed)
    return None if start == "scratch" else runner.model_of(start)


def _zero_shot(scale: Scale, runner: Runner, name: str, start: str, place: Path) -> Result:
    model = _model_of(scale, runner, start, place)
    assert model is not None
    return score_on(scale, runner, name, model)


def _tuned(
    scale: Scale,
    runner: Runner,
    start: str,
    name: str,
    place: Path,
    *,
    examples: int | None,
    sampling_seed: int,
) -> Result:
    begin = _model_of(scale, runner, start, place, seed=sampling_seed)
    return tune_on(scale, runner, name, place, start=begin, examples=examples, sampling_seed=sampling_seed)


def ordered_cells(scale: Scale) -> list[tuple[str, int | None, int | None]]:
    """Return (start, examples, sampling seed) of every fine-tuning, most informative first; draws stay together."""
    starts = starts_of(scale)
    cells = [
        (start, size, seed) for size in scale.examples for seed in scale.sampling_seeds for start in starts
    ]
    return sorted([*cells, *((start, None, None) for start in starts)], key=lambda cell: _rank(*cell[:2]))


def _rank(start: str, examples: int | None) -> int:
    if examples in (10, 100) and start not in ("scratch", NOTHING):
        return 0
    return {100: 1, 1000: 2, None: 3}.get(examples, 4)


def _fewshot_cell(name: str, start: str, examples: int | None, seed: int | None = None) -> str:
    size = "all" if examples is None else str(examples)
    return _of_task(name, f"{in_a_name(start)}-{size}" + ("" if seed is None else f"-{seed}"))


def _of_task(name: str, step: str) -> str:
    """Return the name of a step on a task; SAMSum, at first the only task, is not named."""
    return step if name == TASK else f"{name}-{step}"


def _fewshot_table(scale: Scale, results: Results) -> str:
    """Return a table for each task, with a row for each start and size that has results, and the paper's figures.

    Starts are compared on their common draws.
    """
    first = (
        f"Test sets, at most {scale.test_rows} documents each, "
        f"{'greedy' if scale.beams == 1 else f'beam {scale.beams}'}, scale {scale.name}"
        f"{_tokens(results)}{scale.told_start}. "
        f"Phase 2 reads {', '.join(scale.grounding_tasks)} (at most {scale.grounding_cap:,} pairs of each, without the "
        f"tasks tested here) and {scale.invented_pairs:,} pairs of the project's synthetic corpus, for "
        f"{scale.grounding_steps:,} steps; so its effect is not due to the paper's method only. Fine-tuning on a few "
        f"examples ends after at most {scale.few_shot_steps} steps."
    )
    lines = [first, ""]
    for name in scale.tasks:
        header = (
            f"{name}, examples | start | ROUGE-1 | ROUGE-2 | ROUGE-L | of each draw | against the row above "
            "| loss of the references | the paper, large"
        )
        if rows := _fewshot_rows(scale, name, results):
            lines += markdown(header, rows)
    return "\n".join([*lines, FEWSHOT_NOTE]) + "\n"


def _fewshot_claims(scale: Scale, results: Results) -> list[Claim]:
    """Return Table 11's claim for each task and size: grounding helps."""
    claims = []
    for name in scale.tasks:
        for size in (0, *scale.examples):
            seeds: tuple[int | None, ...] = scale.sampling_seeds if size else (None,)
            above, below = (
                runs_of(results, {seed: _fewshot_cell(name, start, size, seed) for seed in seeds})
                for start in starts_of(scale)[2:0:-1]
            )
            ours, runs = gain_interval(above, below)
            printed = [
                TABLE_11.get((name, start), {}).get(size, "").rpartition("/")[2]
                for start in ("phase1+2", "phase1")
            ]
            theirs = between(*printed) if all(printed) else ""
            words = f"phase 2 helps on {name} with {size:,} examples, ROUGE-L"
            claims.append(Claim(words=words, source="Z-Code++ Table 11", theirs=theirs, ours=ours, runs=runs))
    return claims


def _fewshot_rows(scale: Scale, name: str, results: Results) -> list[list[str]]:
    rows = []
    for size in (0, *scale.examples, None):
        above: dict[int | None, Result] = {}
        seeds: tuple[int | None, ...] = scale.sampling_seeds if size else (None,)
        for start in starts_of(scale):
            runs = runs_of(results, {seed: _fewshot_cell(name, start, size, seed) for seed in seeds})
            if not runs:
                continue
            losses = ", ".join(f"{run['loss']:.2f}" for run in runs.values())
            printed = _printed(start)
            paper = TABLE_11.get((name, printed), {}).get(-1 if size is None else size, "")
            shown = "all" if size is None else str(size)
            rows.append([shown, start, *rouge_cells(runs), each_run(runs), gain(runs, above), losses, paper])
            above = runs
    return rows


def _printed(start: str) -> str:
    """Return the row of Table 11 to compare a starting point with."""
    if start in FROM_GIVEN:
        return STARTS[FROM_GIVEN.index(start)]
    return next((known for known in ("t5", "pegasus") if known in start.lower()), start)


def _tokens(results: Results) -> str:
    if not {"pack", "phase1"} <= results.keys():
        return ""
    packed, read = results["pack"]["tokens"], results["phase1"]["tokens"]
    return f"; {packed:,} tokens of text packed, {read:,} read in phase 1"


fewshot = Experiment(
    name="zcodepp-fewshot",
    scales=SCALES,
    steps=_fewshot_steps,
    reads=lambda scale: Reads(
        texts=() if scale.start else scale.corpora, grounding=scale.grounding_tasks, tasks=scale.tasks
    ),
    table=_fewshot_table,
    claims=_fewshot_claims,
)


WHOLE, GAP_SENTENCES = "RTD and spans", "gap sentences instead of spans"
#: The changes of each variant to the whole recipe.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    "without RTD": {"objective": SpansAlone()},
    "without disentangled attention": {"model.encoder_positions": "bucketed"},
    GAP_SENTENCES: {"corruption": Corruption(unit="sentences")},
}
ABLATION_NOTE = """\
Intervals: 95%, test rows resampled, Student's t over pre-training seeds (two: their range), differences paired. Steps
are equal, compute is not (see the minutes); the span loss favours models trained on spans, ROUGE does not.
"""
APPENDIX_A4 = """\
The paper (ACL version, A.4) prints: with disentangled attention MNLI +0.9/+1.2, ROUGE-2 +0.39 on XSum and
+0.22 on CNNDM; without RTD language understanding "significantly" worse; spans better than gap sentences (no figure).
"""
#: What each variant lacks, as a claim.
PARTS = {
    "without RTD": "RTD helps",
    "without disentangled attention": "disentangled attention helps",
    GAP_SENTENCES: "spans beat gap sentences",
}
#: The differences that A.4 prints, and the ROUGE type of each summarization task there.
PRINTED_A4 = {
    ("without disentangled attention", "mnli"): "+0.9",
    ("without disentangled attention", "mnli-mm"): "+1.2",
    ("without disentangled attention", "xsum"): "+0.39",
    ("without disentangled attention", "cnndm"): "+0.22",
}
PRINTED_MEASURE = {"xsum": "rouge2", "cnndm": "rouge2"}
_EXAMPLES = 1000


def variant(scale: Scale, name: str, *, seed: int) -> PreTrainRun:
    """Return the pre-training run of one variant: the whole recipe with one change."""
    return phase1_run(scale, scale.ablation_steps, {**VARIANTS[name], "train.seed": seed})


def _examples(scale: Scale) -> int:
    return min(_EXAMPLES, max(scale.examples))


def _ablation_steps(scale: Scale, runner: Runner) -> Iterator[Step]:
    """Yield the steps: what the span loss decides first, then gap sentences, then the tasks."""
    yield runner.pack(scale.corpora, scale.vocab_size)
    by_seed = [(name, seed) for seed in scale.ablation_seeds for name in VARIANTS]
    for name, seed in sorted(by_seed, key=lambda cell: cell[0] == GAP_SENTENCES):
        run = variant(scale, name, seed=seed)
        yield phase1(runner, _ablation_cell("pretrained", name, seed), run)
    for task_name in runner.tasks(scale.judged_on):
        for name, seed in by_seed:
            origin = _ablation_cell("pretrained", name, seed)
            begin = runner.model_of(origin)
            tune = (
                partial(head_on, scale, runner, task_name, start=begin, seed=seed)
                if is_by_head(task_name)
                else partial(tune_on, scale, runner, task_name, start=begin, examples=_examples(scale))
            )
            updates = scale.head_steps if is_by_head(task_name) else scale.few_shot_steps
            cell = _judged_cell(task_name, name, seed)
            yield Step(cell, tune, drop_model, needs=(origin,), updates=updates)


def _judged_cell(task_name: str, name: str, seed: int) -> str:
    """Return the name of a step that judges a variant on a task; heads have steps of their own name."""
    stage = "head" if is_by_head(task_name) else "tuned"
    return _of_task(task_name, _ablation_cell(stage, name, seed))


def _ablation_cell(stage: str, name: str, seed: int) -> str:
    return f"{stage}-{name.replace(' ', '-')}-{seed}"


def _ablation_table(scale: Scale, results: Results) -> str:
    """Return a table with a row for each variant that has results, over its seeds, and "-" for missing ones.

    Variants are compared on their common seeds.
    """
    pretrained, tuned = (
        {
            name: runs_of(results, {seed: _ablation_cell(stage, name, seed) for seed in scale.ablation_seeds})
            for name in VARIANTS
        }
        for stage in ("pretrained", "tuned")
    )
    rows = [
        [
            name,
            ", ".join(f"{run['span_loss']:.3f}" for run in runs.values()),
            f"{sum(run['cpu_seconds'] for run in runs.values()) / len(runs) / 60:.0f}",
            *(rouge_cells(tuned[name]) if tuned[name] else ["-"] * len(ROUGE_TYPES)),
            "" if name == WHOLE else gain(tuned[name], tuned[WHOLE]) or "-",
            ", ".join(f"{run['loss']:.2f}" for run in tuned[name].values()) or "-",
        ]
        for name, runs in pretrained.items()
        if runs
    ]
    header = (
        "variant | held-out span loss | CPU minutes | ROUGE-1 | ROUGE-2 | ROUGE-L | against the first: ROUGE-L "
        "| loss of the references"
    )
    first = (
        f"{scale.ablation_steps:,} steps each, seeds {', '.join(map(str, scale.ablation_seeds))}, scale {scale.name}; "
        f"then SAMSum with {_examples(scale)} examples, test, {scale.test_rows} dialogues; MNLI and SQuAD by heads on "
        f"the encoder, {scale.head_steps:,} steps on all pairs."
    )
    others = [
        line
        for name in scale.judged_on
        for test in (name, *FURTHER_TESTS.get(name, ()))
        if test != TASK
        for line in _judged_table(scale, name, test, results)
    ]
    return "\n".join([first, "", *markdown(header, rows), *others, ABLATION_NOTE, APPENDIX_A4])


def _judged_table(scale: Scale, task_name: str, test: str, results: Results) -> list[str]:
    """Return a table with a row for each variant that was fine-tuned on another task.

    A row has its metrics on a test set, and the gains over the first variant.
    """
    by_variant = {name: _judged_runs(scale, task_name, test, name, results) for name in VARIANTS}
    metrics = task(test).metrics
    rows = []
    for name, runs in by_variant.items():
        if runs and metrics:
            gains = [] if name == WHOLE else corpus_gains(runs, by_variant[WHOLE], metrics)
            rows.append([name, *corpus_cells(runs, metrics), *(gains or [""] * len(metrics))])
        elif runs:
            gains = ["" if name == WHOLE else gain(runs, by_variant[WHOLE])]
            rows.append([name, *rouge_cells(runs), *gains])
    titles = [title_of(metric) for metric in metrics or ROUGE_TYPES]
    against = [f"against the first: {title}" for title in (titles if metrics else titles[-1:])]
    return markdown(" | ".join([test, *titles, *against]), rows) if rows else []


def _judged_runs(
    scale: Scale, task_name: str, test: str, name: str, results: Results
) -> Mapping[int, Result]:
    """Return the scores of a variant's fine-tuning runs on one of a task's test sets, by seed."""
    steps = {seed: _judged_cell(task_name, name, seed) for seed in scale.ablation_seeds}
    runs = runs_of(results, steps)
    if test == task_name:
        return runs
    return {seed: run["further"][test] for seed, run in runs.items() if test in run.get("further", {})}


def _ablation_claims(scale: Scale, results: Results) -> list[Claim]:
    """Return A.4's claims: each part helps, by the span loss and on every task."""
    claims = []
    for name, part in PARTS.items():
        whole, without = (
            runs_of(
                results, {seed: _ablation_cell("pretrained", each, seed) for seed in scale.ablation_seeds}
            )
            for each in (WHOLE, name)
        )
        common = [seed for seed in whole if seed in without]
        theirs, losses = (
            np.array([runs[seed]["span_losses"] for seed in common]) for runs in (without, whole)
        )
        ours = OVER_RUNS.runs_interval(theirs - losses) if common else None
        words = f"{part}, held-out span loss (nats)"
        claims.append(
            Claim(words=words, source="Z-Code++ A.4", theirs="", ours=ours, runs=len(common), decimals=3)
        )
        for task_name in scale.judged_on:
            for test in (task_name, *FURTHER_TESTS.get(task_name, ())):
                claims.append(_judged_claim(scale, (task_name, test, name), part, results))
    return claims


def _judged_claim(scale: Scale, what: tuple[str, str, str], part: str, results: Results) -> Claim:
    """Return the claim that a part helps on one test set."""
    task_name, test, name = what
    whole, without = (_judged_runs(scale, task_name, test, each, results) for each in (WHOLE, name))
    metrics = task(test).metrics
    if metrics:
        measure = metrics[0]
        ours, runs = corpus_gain(whole, without, measure)
    else:
        measure = PRINTED_MEASURE.get(test, "rougeL")
        ours, runs = gain_interval(whole, without, measure)
    theirs = PRINTED_A4.get((name, test), "")
    words = f"{part}, {test}, {title_of(measure)}"
    return Claim(words=words, source="Z-Code++ A.4", theirs=theirs, ours=ours, runs=runs)


ablation = Experiment(
    name="zcodepp-ablation",
    scales=SCALES,
    steps=_ablation_steps,
    reads=lambda scale: Reads(texts=scale.corpora, tasks=scale.judged_on),
    table=_ablation_table,
    claims=_ablation_claims,
)
