"""Z-Code++'s two studies on SAMSum: few examples (Table 11), and what each part of pre-training is worth (A.4).

`fewshot` compares what each pre-training phase brings with 0, 10, 100, 1000 and all examples. `ablation` compares
replaced-token detection, disentangled attention and spans at equal steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from precis.data.batches.pretraining_batches import Corruption
from precis.objectives.pretraining import SpansAlone
from precis.recipes.pretraining_runs import PreTrainRun
from precis.studies.experiment import (
    ROUGE_TYPES,
    Experiment,
    Results,
    Runner,
    drop_model,
    each_run,
    gain,
    markdown,
    rouge_cells,
    runs_of,
)
from precis.studies.scales import SCALES, Scale
from precis.studies.study import Result, Step
from precis.studies.zcodepp_steps import phase1, phase1_run, phase2, score_on_dialogues, tune_on_dialogues

FEWSHOT_NOTE = """\
Intervals: 95%, test dialogues resampled, Student's t over draws of the examples; differences are of ROUGE-L,
paired by draw and dialogue. Losses are per token in nats, a figure for each draw. Each model was pre-trained once:
another run might differ, and no interval covers that.
"""
STARTS = ("scratch", "phase1", "phase1+2")
#: Table 11, ROUGE-1/2/L on SAMSum by number of examples.
TABLE_11 = {
    "phase1": {0: "6.0/0.1/5.4", 10: "13.6/2.6/11.0", 100: "44.7/20.2/36.7", 1000: "50.9/26.3/42.3"},
    "phase1+2": {0: "26.5/7.9/20.5", 10: "40.27/17.4/33.7", 100: "47.6/22.3/38.7", 1000: "52.2/28.1/43.9"},
}


def _fewshot_steps(scale: Scale, runner: Runner) -> Iterator[Step]:
    """Each phase against the one before with few examples comes first, then pre-training against none."""
    yield runner.pack(scale.corpora, scale.vocab_size)
    yield phase1(runner, "phase1", phase1_run(scale, scale.phase1_steps))
    yield phase2(scale, runner, "phase1+2")
    for start in STARTS[1:]:
        score = partial(_zero_shot, scale, runner, start)
        yield Step(_fewshot_cell(start, 0), score, needs=(start,))
    for start, examples, seed in ordered_cells(scale):
        model = None if start == "scratch" else runner.model_of(start)
        tune = partial(
            tune_on_dialogues, scale, runner, start=model, examples=examples, sampling_seed=seed or 0
        )
        needs = ("pack" if model is None else start,)
        yield Step(_fewshot_cell(start, examples, seed), tune, drop_model, needs=needs)


def _zero_shot(scale: Scale, runner: Runner, start: str, _: object) -> Result:
    return score_on_dialogues(scale, runner, runner.model_of(start))


def ordered_cells(scale: Scale) -> list[tuple[str, int | None, int | None]]:
    """(start, examples, sampling seed) of every fine-tuning, the ones that decide most first; draws stay together."""
    cells = [
        (start, size, seed) for size in scale.examples for seed in scale.sampling_seeds for start in STARTS
    ]
    return sorted([*cells, *((start, None, None) for start in STARTS)], key=lambda cell: _rank(*cell[:2]))


def _rank(start: str, examples: int | None) -> int:
    if examples in (10, 100) and start != "scratch":
        return 0
    return {100: 1, 1000: 2, None: 3}.get(examples, 4)


def _fewshot_cell(start: str, examples: int | None, seed: int | None = None) -> str:
    size = "all" if examples is None else str(examples)
    return f"{start}-{size}" + ("" if seed is None else f"-{seed}")


def _fewshot_table(scale: Scale, results: Results) -> str:
    """A row for each start and size that has results, the paper's figures beside it.

    Starts are compared on the draws that both have.
    """
    first = (
        f"SAMSum test, {scale.test_rows} dialogues, {'greedy' if scale.beams == 1 else f'beam {scale.beams}'}, scale "
        f"{scale.name}{_tokens(results)}. Phase 2 reads {', '.join(scale.grounding_tasks)} ({scale.grounding_cap:,} "
        f"pairs of each at most) and {scale.invented_pairs:,} pairs of the project's synthetic corpus, for "
        f"{scale.grounding_steps:,} steps; so what it brings is not the paper's method alone. Fine-tuning on a few "
        f"examples ends after {scale.few_shot_steps} steps at the latest."
    )
    rows = []
    for size in (0, *scale.examples, None):
        above: dict[int | None, Result] = {}
        seeds: tuple[int | None, ...] = scale.sampling_seeds if size else (None,)
        for start in STARTS:
            runs = runs_of(results, {seed: _fewshot_cell(start, size, seed) for seed in seeds})
            if not runs:
                continue
            losses = ", ".join(f"{run['loss']:.2f}" for run in runs.values())
            paper = TABLE_11.get(start, {}).get(-1 if size is None else size, "")
            shown = "all" if size is None else str(size)
            rows.append([shown, start, *rouge_cells(runs), each_run(runs), gain(runs, above), losses, paper])
            above = runs
    header = (
        "examples | start | ROUGE-1 | ROUGE-2 | ROUGE-L | of each draw | against the row above "
        "| loss of the references | Z-Code++ large"
    )
    return "\n".join([first, "", *markdown(header, rows), FEWSHOT_NOTE]) + "\n"


def _tokens(results: Results) -> str:
    if not {"pack", "phase1"} <= results.keys():
        return ""
    packed, read = results["pack"]["tokens"], results["phase1"]["tokens"]
    return f"; {packed:,} tokens of text packed, {read:,} read in phase 1"


fewshot = Experiment(name="zcodepp-fewshot", scales=SCALES, steps=_fewshot_steps, table=_fewshot_table)


WHOLE = "RTD and spans"
#: What each variant changes of the whole recipe.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    "without RTD": {"objective": SpansAlone()},
    "without disentangled attention": {"model.encoder_positions": "bucketed"},
    "gap sentences instead of spans": {"corruption": Corruption(unit="sentences")},
}
ABLATION_NOTE = """\
Intervals: 95%, test dialogues resampled, Student's t over pre-training seeds, differences paired. Steps are
equal and compute is not (see the minutes); the span loss favours what was trained on spans, ROUGE does not.
"""
APPENDIX_A4 = """\
The paper (ACL version, A.4) prints: with disentangled attention MNLI +0.9/+1.2, ROUGE-2 +0.39 on XSum and
+0.22 on CNNDM; without RTD language understanding "significantly" worse; spans better than gap sentences (no figure).
"""
_EXAMPLES = 1000


def variant(scale: Scale, name: str, *, seed: int) -> PreTrainRun:
    """The pre-training run of one variant: the whole recipe with one thing changed."""
    return phase1_run(scale, scale.ablation_steps, {**VARIANTS[name], "train.seed": seed})


def _examples(scale: Scale) -> int:
    return min(_EXAMPLES, max(scale.examples))


def _ablation_steps(scale: Scale, runner: Runner) -> Iterator[Step]:
    yield runner.pack(scale.corpora, scale.vocab_size)
    for seed in scale.ablation_seeds:
        for name in VARIANTS:
            origin = _ablation_cell("pretrained", name, seed)
            yield phase1(runner, origin, variant(scale, name, seed=seed))
            tune = partial(
                tune_on_dialogues, scale, runner, start=runner.model_of(origin), examples=_examples(scale)
            )
            yield Step(_ablation_cell("tuned", name, seed), tune, drop_model, needs=(origin,))


def _ablation_cell(stage: str, name: str, seed: int) -> str:
    return f"{stage}-{name.replace(' ', '-')}-{seed}"


def _ablation_table(scale: Scale, results: Results) -> str:
    """A row for each variant that has results, its seeds together, and "-" for what is not there yet.

    Variants are compared on the seeds that both have.
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
        f"then SAMSum with {_examples(scale)} examples, test, {scale.test_rows} dialogues."
    )
    return "\n".join([first, "", *markdown(header, rows), ABLATION_NOTE, APPENDIX_A4])


ablation = Experiment(name="zcodepp-ablation", scales=SCALES, steps=_ablation_steps, table=_ablation_table)
