"""Z-Code++ Table 11 on SAMSum: what each pre-training phase is worth with 0, 10, 100, 1000 and all examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from precis.evaluation.significance import interval_over_runs
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

NAME = "zcodepp-fewshot"
NOTE = """Intervals: 95%, test dialogues resampled, Student's t over draws of the examples; differences are of ROUGE-L,
paired by draw and dialogue. Losses are per token in nats, a figure for each draw. Each model was pre-trained once:
another run might differ, and no interval covers that.
"""
STARTS = ("scratch", "phase1", "phase1+2")
#: Table 11, ROUGE-1/2/L on SAMSum by number of examples.
PAPER = {
    "phase1": {0: "6.0/0.1/5.4", 10: "13.6/2.6/11.0", 100: "44.7/20.2/36.7", 1000: "50.9/26.3/42.3"},
    "phase1+2": {0: "26.5/7.9/20.5", 10: "40.27/17.4/33.7", 100: "47.6/22.3/38.7", 1000: "52.2/28.1/43.9"},
}


def fewshot(scale: Scale, *, data: Path, out: Path, tell: Tell) -> str:
    """Do what is left of the experiment in `out`; its table.

    Raises:
        UserError: the data are not there, or `out` holds something else.
        Interrupted: it was asked to stop; the same call goes on.
    """
    study = Study(out, scale, name=NAME, data=data)
    steps = list(_steps(study, Experiment(scale, data, tell)))
    return work_and_show(study, steps, lambda results: table(scale, results), tell)


def _steps(study: Study, experiment: Experiment) -> Iterator[Step]:
    """What the issue of the experiment hangs on comes first: with few examples each phase against the one before,
    then pre-training against none.
    """
    scale = experiment.scale
    pack = study.place("pack") / "pack"
    phase1 = phase1_run(scale, steps=scale.phase1_steps)
    models = {"scratch": None, **{start: study.place(start) / "run" for start in STARTS[1:]}}

    def zero_shot(start: str) -> Step:
        return Step(_cell(start, 0), lambda _: experiment.score(study.place(start) / "run"), needs=(start,))

    def tuned(start: str, examples: int | None, seed: int | None = None) -> Step:
        return Step(
            _cell(start, examples, seed),
            lambda place: experiment.tune(
                place,
                start=models[start],
                tokenizer=pack / "tokenizer",
                examples=examples,
                sampling_seed=seed or 0,
            ),
            drop_model,
            needs=("pack" if models[start] is None else start,),
        )

    yield Step("pack", experiment.pack)
    yield Step(
        "phase1", lambda place: experiment.phase1(place, phase1, pack=pack), drop_checkpoints, needs=("pack",)
    )
    first = study.place("phase1") / "run"
    yield Step(
        "phase1+2", lambda place: experiment.phase2(place, start=first), drop_checkpoints, needs=("phase1",)
    )
    yield from (zero_shot(start) for start in STARTS[1:])
    yield from (tuned(*cell) for cell in ordered_cells(scale))


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


def _cell(start: str, examples: int | None, seed: int | None = None) -> str:
    size = "all" if examples is None else str(examples)
    return f"{start}-{size}" + ("" if seed is None else f"-{seed}")


def table(scale: Scale, results: Mapping[str, Result]) -> str:
    """Markdown: a row for each start and size that has results, the interval over test examples, the paper's figures
    beside it. Starts are compared on the draws that both have.
    """
    lines = [
        f"SAMSum test, {scale.test_rows} dialogues, {'greedy' if scale.beams == 1 else f'beam {scale.beams}'}, scale "
        f"{scale.name}{_tokens(results)}. Phase 2 reads {', '.join(scale.grounding_tasks)} ({scale.grounding_cap:,} "
        f"pairs of each at most) and {scale.invented_pairs:,} pairs of the project's synthetic corpus, for "
        f"{scale.grounding_steps:,} steps; so what it brings is not the paper's method alone. Fine-tuning on a few "
        f"examples ends after {scale.few_shot_steps} steps at the latest.",
        "",
        "| examples | start | ROUGE-1 | ROUGE-2 | ROUGE-L | of each draw | against the row above "
        "| loss of the references | Z-Code++ large |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for size in (0, *scale.examples, None):
        above: dict[int | None, Result] = {}
        for start in STARTS:
            runs = _runs(scale, results, start, size)
            if not runs:
                continue
            scores = scores_of(list(runs.values()))
            cells = [str(interval_over_runs(scores[name])) for name in ROUGE_TYPES]
            gain = paired_gain(runs, above)
            above = runs
            draws = ", ".join(f"{mean:.1f}" for mean in scores["rougeL"].mean(axis=1))
            losses = ", ".join(f"{run['loss']:.2f}" for run in runs.values())
            paper = PAPER.get(start, {}).get(-1 if size is None else size, "")
            shown = "all" if size is None else size
            lines.append(
                f"| {shown} | {start} | {' | '.join(cells)} | {draws} | {gain} | {losses} | {paper} |"
            )
    return "\n".join([*lines, "", NOTE]) + "\n"


def _tokens(results: Mapping[str, Result]) -> str:
    if not {"pack", "phase1"} <= results.keys():
        return ""
    packed, read = results["pack"]["tokens"], results["phase1"]["tokens"]
    return f"; {packed:,} tokens of text packed, {read:,} read in phase 1"


def _runs(
    scale: Scale, results: Mapping[str, Result], start: str, size: int | None
) -> dict[int | None, Result]:
    """By sampling seed; None is the one run with no examples or all."""
    seeds: tuple[int | None, ...] = scale.sampling_seeds if size else (None,)
    names = {seed: _cell(start, size, seed) for seed in seeds}
    return {seed: results[name] for seed, name in names.items() if name in results}
