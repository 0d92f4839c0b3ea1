"""Z-Code++ A.4: what replaced-token detection, disentangled attention and spans are worth, at equal steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from precis.data.batches.pretraining_batches import Corruption
from precis.objectives.pretraining import SpansAlone
from precis.recipes.pretraining_runs import PreTrainRun
from precis.studies.experiment import Experiment, Results, Runner, drop_model
from precis.studies.scales import SCALES, Scale
from precis.studies.study import Step
from precis.studies.tables import ROUGE_TYPES, gain, markdown, rouge_cells, runs_of
from precis.studies.zcodepp_steps import phase1, phase1_run, tune_on_dialogues

WHOLE = "RTD and spans"
#: What each variant changes of the whole recipe.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    "without RTD": {"objective": SpansAlone()},
    "without disentangled attention": {"model.encoder_positions": "bucketed"},
    "gap sentences instead of spans": {"corruption": Corruption(unit="sentences")},
}
NOTE = """Intervals: 95%, test dialogues resampled, Student's t over pre-training seeds, differences paired. Steps are
equal and compute is not (see the minutes); the span loss favours what was trained on spans, ROUGE does not.
"""
PAPER = """The paper (ACL version, A.4) prints: with disentangled attention MNLI +0.9/+1.2, ROUGE-2 +0.39 on XSum and
+0.22 on CNNDM; without RTD language understanding "significantly" worse; spans better than gap sentences (no figure).
"""
_EXAMPLES = 1000


def variant(scale: Scale, name: str, *, seed: int) -> PreTrainRun:
    """The pre-training run of one variant: the whole recipe with one thing changed."""
    return phase1_run(scale, scale.ablation_steps, {**VARIANTS[name], "train.seed": seed})


def _examples(scale: Scale) -> int:
    return min(_EXAMPLES, max(scale.examples))


def _steps(scale: Scale, runner: Runner) -> Iterator[Step]:
    yield runner.pack(scale.corpora, scale.vocab_size)
    for seed in scale.ablation_seeds:
        for name in VARIANTS:
            origin = _cell("pretrained", name, seed)
            yield phase1(runner, origin, variant(scale, name, seed=seed))
            tune = partial(
                tune_on_dialogues, scale, runner, start=runner.model_of(origin), examples=_examples(scale)
            )
            yield Step(_cell("tuned", name, seed), tune, drop_model, needs=(origin,))


def _cell(stage: str, name: str, seed: int) -> str:
    return f"{stage}-{name.replace(' ', '-')}-{seed}"


def _table(scale: Scale, results: Results) -> str:
    """A row for each variant that has results, its seeds together, and "-" for what is not there yet.

    Variants are compared on the seeds that both have.
    """
    pretrained, tuned = (
        {
            name: runs_of(results, {seed: _cell(stage, name, seed) for seed in scale.ablation_seeds})
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
        f"then SAMSum with {_examples(scale)} examples, test, {scale.test_rows} dialogues."
    )
    return "\n".join([first, "", *markdown(header, rows), NOTE, PAPER])


ablation = Experiment(name="zcodepp-ablation", scales=SCALES, steps=_steps, table=_table)
