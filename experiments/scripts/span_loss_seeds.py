"""RTD and disentangled attention by the held-out span loss alone, with further seeds (Z-Code++ A.4).

    python -m experiments.scripts.span_loss_seeds --data DATA --out runs/ablation --seeds 3 4 5

These are the pre-training steps of `precis reproduce zcodepp-ablation`, in a folder of that study: the same runs, with
chosen seeds and variants and without the tasks. A second call with the same folder resumes. The tables show the
seeds of the folder alone, and together with the three that were run before, of which only the means were kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from precis.cli.framework.console import note
from precis.cli.framework.options import begin
from precis.evaluation.significance import OVER_RUNS
from precis_experiments.experiment import Results, Runner, markdown
from precis_experiments.resumable_steps import Interrupted, Step, Study
from precis_experiments.scales import SCALES, Scale
from precis_experiments.zcodepp_studies import PARTS, WHOLE, ablation

#: Mean span losses of seeds 0, 1 and 2 at the micro scale, as docs/experiments/pretraining.md prints them.
EARLIER: Mapping[str, Sequence[float]] = {
    WHOLE: (5.134, 5.109, 5.061),
    "without RTD": (5.119, 5.150, 5.138),
    "without disentangled attention": (5.169, 5.282, 5.152),
}
VARIANTS = (WHOLE, "without disentangled attention", "without RTD")


def step_name(variant: str, seed: int) -> str:
    """Return the name of the study's step."""
    return f"pretrained-{variant.replace(' ', '-')}-{seed}"


def chosen_steps(steps: Iterable[Step], variants: Sequence[str], seeds: Sequence[int]) -> list[Step]:
    """Return the packing and the pre-training of the chosen variants and seeds, seed by seed.

    The last variant comes after all the others, so that a run that is cut short has whole pairs.
    """
    named = {step.name: step for step in steps}
    cells = [(variant, seed) for seed in seeds for variant in variants]
    order = sorted(cells, key=lambda cell: len(variants) > 2 and cell[0] == variants[-1])
    return [named["pack"], *(named[step_name(*cell)] for cell in order)]


def difference_rows(results: Results, scale: Scale) -> list[list[str]]:
    """Return a row for each part: the differences of the new seeds, and of all seeds by their means."""
    rows = []
    for variant in VARIANTS[1:]:
        pairs = [
            tuple(np.array(results[step_name(each, seed)]["span_losses"]) for each in (variant, WHOLE))
            for seed in scale.ablation_seeds
            if {step_name(variant, seed), step_name(WHOLE, seed)} <= results.keys()
        ]
        if not pairs:
            continue
        new = np.array([without - whole for without, whole in pairs])
        before = np.array(EARLIER[variant]) - np.array(EARLIER[WHOLE])
        means = np.concatenate([before, new.mean(axis=1)])
        rows.append(
            [
                PARTS[variant],
                ", ".join(f"{mean:+.3f}" for mean in means),
                _cell(before[:, None]),
                _cell(new),
                _cell(means[:, None]),
            ]
        )
    return rows


def _cell(differences: np.ndarray) -> str:
    found = OVER_RUNS.runs_interval(differences)
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}], {len(differences)} seeds"


def tables(results: Results, scale: Scale) -> str:
    """Return the losses by variant and seed, then the differences."""
    losses = []
    for variant in VARIANTS:
        runs = [results.get(step_name(variant, seed)) for seed in scale.ablation_seeds]
        done = [run for run in runs if run is not None]
        shown = ", ".join("-" if run is None else f"{run['span_loss']:.3f}" for run in runs)
        minutes = f"{sum(run['cpu_seconds'] for run in done) / len(done) / 60:.1f}" if done else "-"
        losses.append([variant, shown, minutes])
    seeds = ", ".join(map(str, scale.ablation_seeds))
    first = markdown(f"variant | held-out span loss, seeds {seeds} | CPU minutes", losses)
    header = (
        "claim | difference of each seed, 0 to 2 first | these seeds and blocks | all seeds, by their means"
    )
    return "\n".join([*first, *markdown(header, difference_rows(results, scale))])


def main() -> None:
    """Run the remaining steps and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with a folder for each corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    begin(asked.threads)
    scale = replace(SCALES["micro"], ablation_seeds=tuple(asked.seeds))
    study = Study(asked.out, scale, name=ablation.name, data=asked.data)
    known = ablation.steps(scale, Runner(study, asked.data, note))
    steps = chosen_steps(known, asked.variants, asked.seeds)
    try:
        study.work(steps, note, show=lambda found: print(tables(found, scale), flush=True))
    except Interrupted:
        note("repeat the command to resume")
        sys.exit(130)


if __name__ == "__main__":
    main()
