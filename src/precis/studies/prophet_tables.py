"""The tables of ProphetNet's comparisons, with the paper's figures named beside."""

from __future__ import annotations

from collections.abc import Mapping

from precis.evaluation.significance import interval_over_runs
from precis.studies.prophet_scales import NGRAMS, PLAIN, QUESTIONS, ProphetScale
from precis.studies.study import Result
from precis.studies.study_parts import ROUGE_TYPES, paired_gain, scores_of

PAPER = """The paper, CNN/DailyMail, ROUGE-1/2/L: Table 7 (base, pre-trained) 1-gram 42.21/19.54/39.06, 2-gram
42.52/19.78/39.59, 3-gram 42.61/19.83/39.67; Table 6 (no pre-training, dev) Transformer 39.19/17.60/36.69, ProphetNet
40.66/18.05/37.79. Table 3 (SQuAD, BLEU-4/METEOR/ROUGE-L): 23.91/26.60/52.26, and on Zhao et al.'s split
25.80/27.54/53.65.
"""
NOTE = """BLEU-4, METEOR and ROUGE-L are not computed by the paper's scripts; nltk's METEOR above all reads far higher
than the METEOR 1.5 of the paper (docs/guide/questions.md), so that only systems scored alike can be compared.

Intervals: 95%, test documents resampled, Student's t over seeds; differences are of ROUGE-L, paired by seed
and document. Each n was pre-trained once: another run might differ, and no interval covers that. The checkpoint for
questions is chosen by dev rows of Du et al.'s split, which are test rows of Zhao et al.'s. Test rows are evenly
spaced where there are more; intervals of questions take them for independent, though many share a passage.
The spreads that ProphetNet and "Transformer" begin with were chosen for ProphetNet, on E2E (docs/adr/0007);
"Transformer-released-start" begins with BART's N(0, 0.02).
"""


def tables(scale: ProphetScale, results: Mapping[str, Result]) -> str:
    """Markdown of what is there."""
    pretrained = results.get("pretrained-2gram")
    read = f", {pretrained['tokens']:,} tokens read in each pre-training" if pretrained else ""
    lines = [f"Task {scale.task}, {scale.test_rows:,} test documents at most, scale {scale.name}{read}.", ""]
    by_ngram = {f"pre-trained, {n}-gram": _runs(results, f"tuned-{n}gram", scale) for n in NGRAMS}
    by_system = {f"no pre-training, {name}": _runs(results, f"plain-{name}", scale) for name in PLAIN}
    for rows in (by_ngram, by_system):
        lines += _compared(rows)
    lines += _questions(results)
    return "\n".join([*lines, NOTE, PAPER])


def _runs(results: Mapping[str, Result], stem: str, scale: ProphetScale) -> dict[int, Result]:
    return {seed: results[f"{stem}-{seed}"] for seed in scale.seeds if f"{stem}-{seed}" in results}


def _compared(rows: Mapping[str, Mapping[int, Result]]) -> list[str]:
    lines = [
        "| system | ROUGE-1 | ROUGE-2 | ROUGE-L | of each seed | against the row above |",
        "|---|---|---|---|---|---|",
    ]
    above: Mapping[int, Result] = {}
    for name, runs in rows.items():
        if not runs:
            continue
        scores = scores_of(list(runs.values()))
        cells = [str(interval_over_runs(scores[kind])) for kind in ROUGE_TYPES]
        gain = paired_gain(runs, above)
        above = runs
        seeds = ", ".join(f"{mean:.1f}" for mean in scores["rougeL"].mean(axis=1))
        lines.append(f"| {name} | {' | '.join(cells)} | {seeds} | {gain} |")
    return [*lines, ""]


def _questions(results: Mapping[str, Result]) -> list[str]:
    found = results.get("questions")
    if found is None:
        return []
    lines = ["| questions | BLEU-4 | METEOR | ROUGE-L | test questions |", "|---|---|---|---|---|"]
    for name in QUESTIONS:
        cells = " | ".join(found[name]["scores"].values())
        lines.append(f"| {name} | {cells} | {found[name]['questions']:,} |")
    return [*lines, "", f"METEOR: {found[QUESTIONS[0]]['meteor']}", ""]
