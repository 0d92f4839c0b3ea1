"""The tables of the discourse-prefix comparisons, with the paper's figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from precis.evaluation.probe_plots import Measured, ScoreInterval, curves, draw_curves
from precis.evaluation.significance import Bootstrap
from precis_experiments.claim_verdicts import Claim, between
from precis_experiments.experiment import (
    ROUGE_TYPES,
    Results,
    each_run,
    gain,
    gain_interval,
    markdown,
    rouge_cells,
    runs_of,
)
from precis_experiments.resumable_steps import Result
from precis_experiments.scales import FINE_TUNING, LOW, TOP, WHOLE, PrefixScale
from precis_text.row import pluralize

UNTUNED = "the base, untuned"
SYSTEMS = (FINE_TUNING, "prefix", "uniblock", "hierblock", "softsa", "hierblock+softsa")
ON_LAYERS = (TOP, LOW)
SPARSE = ("truncsa", "htruncsa", "hsoftsa")
LOW_SYSTEMS = (FINE_TUNING, "prefix", "hierblock", "hierblock+softsa")
#: ROUGE-1/2/L of BART-large: Tables 2, 5 and 9, sparse attention from Table 11. The paper's E2E (Tables 9 and 5) is
#: the cleaned set (Table 8), whose figures cannot be compared with those of the original test set.
PAPER: Mapping[str, Mapping[str, str]] = {
    "samsum": {
        FINE_TUNING: "51.02/25.70/41.58",
        "prefix": "51.98/27.37/43.28",
        "uniblock": "51.07/26.50/42.53",
        "hierblock": "51.53/26.83/42.94",
        "softsa": "52.48/27.93/43.80",
        "hierblock+softsa": "52.91/27.56/43.63",
        "truncsa": "52.13/27.41/43.31",
        "htruncsa": "52.55/27.87/43.57",
        "hsoftsa": "52.71/27.93/43.73",
        "fine-tuning, truncsa": "50.38/25.55/41.46",
        "fine-tuning, softsa": "50.51/25.71/41.42",
    },
    "dart": {
        FINE_TUNING: "73.92/47.98/56.44",
        "prefix": "74.48/48.42/56.70",
        "uniblock": "74.37/48.00/55.94",
        "hierblock": "74.44/48.18/56.72",
        "hierblock+softsa": "74.62/48.60/57.03",
    },
}
NOTE = """Intervals: 95%, test texts resampled, Student's t over seeds (two: their range); differences are of ROUGE-L,
paired by seed and text, without correction for multiple comparisons. With one seed they do not cover other seeds. BLEU
is sacrebleu's with all references, ROUGE the highest over them; the paper's E2E is another, cleaned set, so its
figures are not shown. The base was pre-trained once. Rates and temperature, for SAMSum too, were chosen on E2E's dev
pairs with one seed, by the label-smoothed loss of runs no longer than the final ones. All prefix methods have the rate
of the plain prefix. SoftSA draws noise in training only: at temperature 1 it computes plain softmax when it writes.
The untuned base gets the task's instruction; the systems are trained without. In the paper's low-resource figures (the
mean of XSum and WikiHow, curves without numbers) HierBlock and HierBlock+SoftSA are above fine-tuning and prefix
tuning below 50% of the pairs. Nor does its Figure 3 print numbers. For layers the paper gives validation ROUGE-1/2/L.
XSum (Table 3): top 40.1/16.8/31.4, low 33.7/13.1/26.9, all 41.2/18.4/33.4. SAMSum (Table 10): top 50.61/24.24/40.95,
low 41.87/19.98/34.12, all 52.56/26.93/42.96.
"""


def cell(task_name: str, system: str, seed: int, pairs: int | None = None) -> str:
    """Return the name of a training step with `pairs` pairs; None: all."""
    return f"{task_name}-{system}-{seed}" + ("" if pairs is None else f"-{pairs}pairs")


def rate_step(family: str, rate: float) -> str:
    """Return the name of the step for a rate."""
    return f"rate-{family}-{rate:g}"


def temperature_step(temperature: float) -> str:
    """Return the name of the step for a temperature."""
    return f"temperature-{temperature:g}"


def tables(scale: PrefixScale, results: Results) -> str:
    """Return the available results as Markdown."""
    read = results.get("phase1")
    before = f"; {read['tokens']:,} tokens of text read before grounding" if read else ""
    before += scale.told_start
    blocks = f"{scale.settings.encoder_segments} and {scale.settings.decoder_segments}"
    search = "greedy" if scale.beams == 1 else f"beam {scale.beams}"
    lines = [
        f"Scale {scale.name}{before}. E2E {scale.facts_steps:,} steps, SAMSum {scale.dialogues_steps:,}, few pairs "
        f"{scale.low_steps:,}, each of {scale.batch_tokens:,} tokens, rates tried for {scale.rate_steps:,}; {blocks} "
        f"segments in encoder and decoder; {search}.",
        "",
    ]
    lines += _tried(results)
    lines += _compared("E2E", "e2e", scale.facts_seeds, results)
    lines += _compared("SAMSum", "samsum", scale.dialogues_seeds, results)
    for name in scale.other_facts:
        lines += _compared(name, name, scale.facts_seeds, results)
    for name in scale.single_layer_tasks:
        lines += _single_layers(scale, name, results)
    for name in scale.low_tasks:
        lines += _low_resource(scale, name, results)
    lines += _mean_of_tasks(scale, results)
    lines += _costs(results)
    return "\n".join([*lines, NOTE])


def _tried(results: Results) -> list[str]:
    """Return the tried rates and temperatures with their dev losses; mark a best value at the edge."""
    lines = []
    for family in ("rate-fine-tuning", "rate-prefix", "temperature"):
        tried = {
            float(name.removeprefix(f"{family}-")): found["best"]
            for name, found in results.items()
            if name.startswith(f"{family}-")
        }
        if not tried:
            continue
        best = min(tried, key=lambda value: tried[value])
        edge = len(tried) > 2 and best in (min(tried), max(tried))
        words = ", ".join(f"{value:g}: {loss:.3f}" for value, loss in sorted(tried.items()))
        tail = " (at the edge of the range)" if edge else ""
        lines.append(
            f"- {family.replace('-', ' of ', 1)}, dev loss per token: {words}; chosen {best:g}{tail}."
        )
    return [*lines, ""] if lines else []


def _compared(title: str, task_name: str, seeds: Sequence[int], results: Results) -> list[str]:
    by_system = {
        system: _runs(results, task_name, system, seeds)
        for system in (UNTUNED, *SYSTEMS, *SPARSE, *WHOLE, *ON_LAYERS)
    }
    known = PAPER.get(task_name, {})
    rows = []
    for system, runs in by_system.items():
        if not runs:
            continue
        # the untuned base is deterministic: its one run is compared with every seed
        paired = dict.fromkeys(seeds, runs[seeds[0]]) if system == UNTUNED else runs
        against = [
            "" if other == system else gain(paired, by_system[other]) for other in (FINE_TUNING, "prefix")
        ]
        paper = [known.get(system, "")] if known else []
        rows.append(
            [
                system,
                f"{_most_passes([runs]):.2f}",
                _bleu(runs),
                *rouge_cells(runs),
                each_run(runs),
                *against,
                *paper,
            ]
        )
    header = (
        f"{title} | passes | BLEU | ROUGE-1 | ROUGE-2 | ROUGE-L | of each seed | ROUGE-L against fine-tuning "
        f"| against prefix{' | the paper, BART-large' if known else ''}"
    )
    return markdown(header, rows) if rows else []


def _runs(
    results: Results, task_name: str, system: str, seeds: Sequence[int], pairs: int | None = None
) -> dict[int, Result]:
    return runs_of(results, {seed: cell(task_name, system, seed, pairs) for seed in seeds})


def _most_passes(systems: Iterable[Mapping[int, Result]]) -> float:
    return max(run.get("passes", 0.0) for runs in systems for run in runs.values())


def _bleu(runs: Mapping[int, Result]) -> str:
    resampled = np.array([run["bleu_resampled"] for run in runs.values()])
    return str(Bootstrap().corpus_runs_interval([run["bleu"] for run in runs.values()], resampled))


def _single_layers(scale: PrefixScale, task_name: str, results: Results) -> list[str]:
    """Return ROUGE-L with a prefix in one layer, and its difference to a prefix in all layers (Figure 3)."""
    seeds = scale.seeds_on(task_name)
    whole = _runs(results, task_name, "prefix", seeds)
    rows = [
        [str(number), *rouge_cells(runs, ["rougeL"]), gain(runs, whole)]
        for number, system in enumerate(scale.single_layers, start=1)
        if (runs := _runs(results, task_name, system, seeds))
    ]
    header = f"{task_name}, prefix in one layer (1 is the lowest) | ROUGE-L | against a prefix in all layers"
    return markdown(header, rows) if rows else []


def _low(
    scale: PrefixScale, task_name: str, system: str, share: float, results: Results
) -> dict[int, Result]:
    """Return the runs of a system on a share of a task's pool, by sampling seed."""
    pairs = scale.low_pairs(task_name)[scale.shares.index(share)]
    return _runs(results, task_name, system, scale.sampling_seeds, pairs)


def _low_resource(scale: PrefixScale, task_name: str, results: Results) -> list[str]:
    """Return ROUGE-L by number of pairs and system, and the gain of each over fine-tuning."""
    others = [system for system in LOW_SYSTEMS if system != FINE_TUNING]
    rows = []
    for share, pairs in zip(scale.shares, scale.low_pairs(task_name), strict=True):
        by_system = {system: _low(scale, task_name, system, share, results) for system in LOW_SYSTEMS}
        if not any(by_system.values()):
            continue
        cells = ["".join(rouge_cells(runs, ["rougeL"])) if runs else "" for runs in by_system.values()]
        cells += [gain(by_system[system], by_system[FINE_TUNING]) for system in others]
        passes = _most_passes(by_system.values())
        rows.append([f"{pairs:,}", f"{share:.0%}", f"{passes:.1f}", *cells])
    names = [*LOW_SYSTEMS, *(f"{system} against fine-tuning" for system in others)]
    header = f"{task_name}, pairs | of the pool | passes | {' | '.join(names)}"
    return markdown(header, rows) if rows else []


def _mean_of_tasks(scale: PrefixScale, results: Results) -> list[str]:
    """Return ROUGE-L by share and system, the mean over the low-resource tasks (Figures 4, 8)."""
    if len(scale.low_tasks) < 2:
        return []
    rows = []
    for share in scale.shares:
        cells = []
        for system in LOW_SYSTEMS:
            by_task = [_low(scale, name, system, share, results) for name in scale.low_tasks]
            common = [seed for seed in by_task[0] if all(seed in runs for runs in by_task)]
            cells.append(mean_over_tasks(by_task, common) if common else "")
        if any(cells):
            rows.append([f"{share:.0%}", *cells])
    header = f"mean of {', '.join(scale.low_tasks)}, share | {' | '.join(LOW_SYSTEMS)}"
    return markdown(header, rows) if rows else []


def mean_over_tasks(by_task: Sequence[Mapping[int, Result]], seeds: Sequence[int]) -> str:
    """Return the interval of ROUGE-L's mean over tasks, each of whose test texts is resampled by itself."""
    figures, resampled = [], []
    for seed in seeds:
        scores = [np.array(runs[seed]["examples"]["rougeL"]) for runs in by_task]
        figures.append(float(np.mean([each.mean() for each in scores])))
        drawn = [
            Bootstrap().resampled(lambda rows, each=each: float(each[rows].mean()), len(each))  # type: ignore[misc]
            for each in scores
        ]
        resampled.append(np.mean(drawn, axis=0))
    return str(Bootstrap().corpus_runs_interval(figures, np.array(resampled)))


def _costs(results: Results) -> list[str]:
    found = results.get("cost")
    if found is None:
        return []
    systems, rounds = found["systems"], found["rounds"]
    parameters = systems[FINE_TUNING]["parameters"]
    rows = []
    for system, cost in systems.items():
        cells = [f"{cost['trained']:,.0f}", f"{cost['trained'] / parameters:.2%}"]
        for key, scale in (("seconds", 1000), ("peak_mb", 1)):
            shares = [
                ours[key] / whole[key]
                for ours, whole in zip(rounds[system], rounds[FINE_TUNING], strict=True)
            ]
            spread = f"{np.median(shares):.2f} ({min(shares):.2f}-{max(shares):.2f})"
            cells += [f"{scale * cost[key]:.0f}", spread]
        rows.append([system, *cells])
    header = "a step | trained parameters | of all | ms | of fine-tuning | peak MB | of fine-tuning"
    return [
        *markdown(header, rows),
        f"Batches of 16 x (64 + 48) tokens, {pluralize(found['threads'], 'thread')}; "
        f"medians of {len(rounds[FINE_TUNING])} rounds, shares with the lowest and highest round; "
        "no other step of this study ran.",
        "",
    ]


#: Better system, worse system, words, table.
CLAIMS = (
    ("uniblock", "prefix", "UniBlock beats a plain prefix", "Table 2"),
    ("hierblock", "prefix", "HierBlock beats a plain prefix", "Table 2"),
    ("truncsa", "prefix", "TruncSA beats a dense prefix", "Table 4"),
    ("softsa", "prefix", "SoftSA beats a dense prefix", "Table 4"),
    ("htruncsa", "truncsa", "HTruncSA beats TruncSA", "Table 4"),
    ("hsoftsa", "softsa", "HSoftSA beats SoftSA", "Table 4"),
    ("hierblock+softsa", "hierblock", "SoftSA adds to HierBlock", "Table 5"),
    ("prefix", FINE_TUNING, "a prefix beats fine-tuning", "Table 2"),
    (TOP, LOW, "top layers beat low ones", "Table 10"),
)


def claims(scale: PrefixScale, results: Results) -> list[Claim]:
    """Return the claims of Tables 2, 4, 5 and 10 for each task, and of the figures with few pairs."""
    found = []
    for name in ("e2e", "samsum", *scale.other_facts):
        printed = PAPER.get(name, {})
        for better, worse, words, table in CLAIMS:
            sides = [_runs(results, name, system, scale.seeds_on(name)) for system in (better, worse)]
            figures = [printed.get(system, "").rpartition("/")[2] for system in (better, worse)]
            theirs = between(*figures) if all(figures) else ""
            found.append(_claim(f"{words}, {name}", table, theirs, sides))
    for name in scale.low_tasks:
        for share in scale.shares:
            if share < 0.5:
                systems = ("hierblock+softsa", FINE_TUNING)
                sides = [_low(scale, name, system, share, results) for system in systems]
                words = f"HierBlock+SoftSA beats fine-tuning with {share:.0%} of the pairs, {name}"
                found.append(_claim(words, "Figures 4, 8", "", sides))
    return found


def _claim(words: str, table: str, theirs: str, sides: Sequence[Mapping[int, Result]]) -> Claim:
    better, worse = sides
    ours, runs = gain_interval(better, worse)
    return Claim(words=f"{words}, ROUGE-L", source=f"prefixes, {table}", theirs=theirs, ours=ours, runs=runs)


def draw_all(scale: PrefixScale, results: Results, folder: Path) -> None:
    """Draw the low-resource curves, and the scores of single layers."""
    draw_low_resource(scale, results, folder / "low-resource.png")
    draw_single_layers(scale, results, folder / "single-layers.png")


def draw_single_layers(scale: PrefixScale, results: Results, file: Path) -> None:
    """Draw ROUGE-L over the only layer with a prefix, as in the paper's Figure 3; nothing before the first point."""
    measured = [
        Measured(
            line="a prefix in one layer",
            x=float(number),
            task=name,
            metrics={"rougeL": ScoreInterval(float(np.mean(run["examples"]["rougeL"])))},
        )
        for number, system in enumerate(scale.single_layers, start=1)
        for name, run in _of_every_task(
            {
                name: _runs(results, name, system, scale.seeds_on(name)).values()
                for name in scale.single_layer_tasks
            }
        )
    ]
    if measured:
        draw_curves([curves(measured, "rougeL")], file, xlabel="layer with the prefix", logarithmic=False)


def _of_every_task(runs: Mapping[str, Collection[Result]]) -> list[tuple[str, Result]]:
    """Return each task's runs; none if a task lacks them, or a point would show the tasks and not the method."""
    if not all(runs.values()):
        return []
    return [(name, run) for name, found in runs.items() for run in found]


def draw_low_resource(scale: PrefixScale, results: Results, file: Path) -> None:
    """Draw ROUGE over the share of training pairs, a line per system, as in the paper's Figures 4 and 8.

    A point is the mean over the tasks. Draw nothing before the first point.
    """
    measured = [
        Measured(
            line=system,
            x=100 * share,
            task=name,
            metrics={name: ScoreInterval(float(np.mean(run["examples"][name]))) for name in ROUGE_TYPES},
        )
        for system in LOW_SYSTEMS
        for share in scale.shares
        for name, run in _of_every_task(
            {name: _low(scale, name, system, share, results).values() for name in scale.low_tasks}
        )
    ]
    if measured:
        lines = [curves(measured, name) for name in ROUGE_TYPES]
        draw_curves(lines, file, xlabel="% of the training pairs", logarithmic=True)
