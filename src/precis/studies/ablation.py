"""Z-Code++ A.4: what replaced-token detection, disentangled attention and spans are worth, at equal steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from precis.data.batches.pretraining_batches import Corruption
from precis.evaluation.significance import interval_over_runs
from precis.objectives.pretraining import SpansAlone
from precis.recipes.pretraining_runs import PreTrainRun
from precis.recipes.runs import ZCodePPShape
from precis.studies.reproduction import Experiment, Scale, phase1_run
from precis.studies.study import Result, Step, Study
from precis.studies.study_parts import (
    ROUGE_TYPES,
    drop_checkpoints,
    drop_model,
    paired_gain,
    scores_of,
    work_and_show,
)
from precis.telling import Tell

NAME = "zcodepp-ablation"
VARIANTS = (
    "RTD and spans",
    "without RTD",
    "without disentangled attention",
    "gap sentences instead of spans",
)
NOTE = """Intervals: 95%, test dialogues resampled, Student's t over pre-training seeds, differences paired. Steps are
equal and compute is not (see the minutes); the span loss favours what was trained on spans, ROUGE does not.
"""
PAPER = """The paper (ACL version, A.4) prints: with disentangled attention MNLI +0.9/+1.2, ROUGE-2 +0.39 on XSum and
+0.22 on CNNDM; without RTD language understanding "significantly" worse; spans better than gap sentences (no figure).
"""
_EXAMPLES = 1000


def ablation(scale: Scale, *, data: Path, out: Path, tell: Tell) -> str:
    """Do what is left of the experiment in `out`; its table.

    Raises:
        UserError: the data are not there, or `out` holds something else.
        Interrupted: it was asked to stop; the same call goes on.
    """
    study = Study(out, scale, name=NAME, data=data)
    steps = list(_steps(study, Experiment(scale, data, tell)))
    return work_and_show(study, steps, lambda results: table(scale, results), tell)


def variant(scale: Scale, name: str, *, seed: int) -> PreTrainRun:
    """The pre-training run of one variant: the whole recipe with one thing changed."""
    run = phase1_run(scale, steps=scale.ablation_steps)
    run = replace(run, train=replace(run.train, seed=seed))
    if name == "without RTD":
        return replace(run, objective=SpansAlone())
    if name == "without disentangled attention":
        assert isinstance(run.model, ZCodePPShape)
        return replace(run, model=replace(run.model, encoder_positions="bucketed"))
    if name == "gap sentences instead of spans":
        return replace(run, corruption=Corruption(unit="sentences"))
    return run


def _steps(study: Study, experiment: Experiment) -> Iterator[Step]:
    pack = study.place("pack") / "pack"
    examples = min(_EXAMPLES, max(experiment.scale.examples))

    def pretrained(name: str, seed: int) -> Step:
        run = variant(experiment.scale, name, seed=seed)
        return Step(
            _cell("pretrained", name, seed),
            lambda place: experiment.phase1(place, run, pack=pack),
            drop_checkpoints,
            needs=("pack",),
        )

    def tuned(name: str, seed: int) -> Step:
        origin = _cell("pretrained", name, seed)
        start = study.place(origin) / "run"
        return Step(
            _cell("tuned", name, seed),
            lambda place: experiment.tune(
                place, start=start, tokenizer=pack / "tokenizer", examples=examples
            ),
            drop_model,
            needs=(origin,),
        )

    yield Step("pack", experiment.pack)
    for seed in experiment.scale.ablation_seeds:
        for name in VARIANTS:
            yield pretrained(name, seed)
            yield tuned(name, seed)


def _cell(stage: str, name: str, seed: int) -> str:
    return f"{stage}-{name.replace(' ', '-')}-{seed}"


def table(scale: Scale, results: Mapping[str, Result]) -> str:
    """Markdown: a row for each variant that has results, its seeds together, and "-" for what is not there yet.
    Variants are compared on the seeds that both have.
    """
    examples = min(_EXAMPLES, max(scale.examples))
    lines = [
        f"{scale.ablation_steps:,} steps each, seeds {', '.join(map(str, scale.ablation_seeds))}, scale {scale.name}; "
        f"then SAMSum with {examples} examples, test, {scale.test_rows} dialogues.",
        "",
        "| variant | held-out span loss | CPU minutes | ROUGE-1 | ROUGE-2 | ROUGE-L | against the first: ROUGE-L "
        "| loss of the references |",
        "|---|---|---|---|---|---|---|---|",
    ]
    first = _by_seed(scale, results, "tuned", VARIANTS[0])
    for name in VARIANTS:
        pretrained = _by_seed(scale, results, "pretrained", name)
        tuned = _by_seed(scale, results, "tuned", name)
        if not pretrained:
            continue
        losses = ", ".join(f"{result['span_loss']:.3f}" for result in pretrained.values())
        minutes = sum(result["cpu_seconds"] for result in pretrained.values()) / len(pretrained) / 60
        against = "" if name == VARIANTS[0] else paired_gain(tuned, first) or "-"
        after = ", ".join(f"{result['loss']:.2f}" for result in tuned.values()) or "-"
        cells = [name, losses, f"{minutes:.0f}", *_rouge(tuned), against, after]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", NOTE, PAPER])


def _by_seed(scale: Scale, results: Mapping[str, Result], stage: str, name: str) -> dict[int, Result]:
    cells = {seed: _cell(stage, name, seed) for seed in scale.ablation_seeds}
    return {seed: results[cell] for seed, cell in cells.items() if cell in results}


def _rouge(runs: Mapping[int, Result]) -> list[str]:
    if not runs:
        return ["-"] * len(ROUGE_TYPES)
    scores = scores_of(list(runs.values()))
    return [str(interval_over_runs(scores[kind])) for kind in ROUGE_TYPES]
