"""What few pairs teach the model that comes with precis, its pre-training alone, and a model from nothing.

    python -m benchmarks.few_from_default --data DIR/samsum --base PHASE1 [--pairs 100 1000] [--draws 3] [--out FOLDER]

DIR/samsum has train, dev and test pairs. Each draw takes other training pairs, the same for all models; the dev pairs
that choose the checkpoint are 200 of the dev split. Printed are ROUGE-1/2/L on the test pairs: the mean over draws, the
lowest and the highest, and the paired difference of the first model to each other with a 95% interval (bootstrap over
documents of the mean over draws, 1,000 samples, seed 0). A finished cell is kept in OUT and not made again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.report import header
from precis.data.pairs.pair import Pair
from precis.data.pairs.sources import read_pairs
from precis.evaluation.rouge import Rouge
from precis.generation.default_model import default_model
from precis.generation.summarizer import Summarizer
from precis.phases.finetune import finetune
from precis.phases.sources import find_sources
from precis.recipes.catalogue import recipe

KINDS = ("rouge1", "rouge2", "rougeL")
Scores = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Start:
    """A model to begin with, or none, and the recipe that suits it."""

    name: str
    recipe: str
    model: str | None


@dataclass(frozen=True)
class Cell:
    """One training: on so many pairs of one draw."""

    start: Start
    pairs: int
    draw: int

    def folder(self, out: Path) -> Path:
        """Where its run and its scores are."""
        return out / f"{self.start.name}-{self.pairs}-{self.draw}"


def scored(cell: Cell, data: Path, out: Path, test: Sequence[Pair]) -> Scores:
    """The scores of each test pair; from the cell's file if it was made before."""
    file = cell.folder(out) / "test_scores.json"
    if not file.is_file():
        plan = recipe(cell.start.recipe)
        done = finetune(
            replace(plan, train=replace(plan.train, seed=cell.draw)),
            sources=find_sources(data=str(data), skip_bad=True),
            start=cell.start.model,
            examples=cell.pairs,
            sampling_seed=cell.draw,
            out=cell.folder(out) / "run",
            tell=lambda text: print(f"  {text}", flush=True),
        )
        assert done.model is not None, "interrupted: start the same command again"
        documents = [pair.document for pair in test]
        written = Summarizer.from_pretrained(done.model).summarize(documents, batch_size=32, short="write")
        found = Rouge(types=KINDS).score([s.text for s in written], [pair.all_references for pair in test])
        file.write_text(json.dumps({kind: found[kind].tolist() for kind in KINDS}))
    return {kind: np.array(values) for kind, values in json.loads(file.read_text()).items()}


def over_draws(scores: Sequence[Scores]) -> str:
    """Means of the three scores over draws, and the range of the last."""
    means = [np.array([each[kind].mean() for each in scores]) for kind in KINDS]
    return f"{'/'.join(f'{m.mean():.1f}' for m in means)} ({means[-1].min():.1f} to {means[-1].max():.1f})"


def difference(ours: Sequence[Scores], theirs: Sequence[Scores]) -> str:
    """The mean paired difference of ROUGE-L over draws, with its interval over documents."""
    each = np.mean([a["rougeL"] - b["rougeL"] for a, b in zip(ours, theirs, strict=True)], axis=0)
    rng = np.random.default_rng(0)
    means = each[rng.integers(len(each), size=(1000, len(each)))].mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{each.mean():+.1f} ({low:+.1f} to {high:+.1f})"


def main() -> None:
    """Make what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--test", type=int, default=819)
    parser.add_argument("--out", type=Path, default=Path("runs/few-from-default"))
    asked = parser.parse_args()
    header(f"few pairs of {asked.data.name}, {asked.draws} draws")
    starts = (
        Start("default", "pretrained-small", str(default_model())),
        Start("phase-1", "pretrained-small", asked.base),
        Start("nothing", "zcodepp-few", None),
    )
    test = list(read_pairs(next(asked.data.glob("test.jsonl*"))))[: asked.test]
    lines = [
        "| pairs | model | ROUGE-1/2/L (lowest to highest L) | default over it, L |",
        "|---|---|---|---|",
    ]
    for pairs in asked.pairs:
        found = {
            start.name: [
                scored(Cell(start, pairs, draw), asked.data, asked.out, test) for draw in range(asked.draws)
            ]
            for start in starts
        }
        for name, scores in found.items():
            over = "" if name == "default" else difference(found["default"], scores)
            lines.append(f"| {pairs:,} | {name} | {over_draws(scores)} | {over} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
