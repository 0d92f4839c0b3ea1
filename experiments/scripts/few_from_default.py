"""What few pairs teach the model that comes with precis, its pre-training alone, and a model from nothing.

    python -m experiments.scripts.few_from_default --data DIR/samsum --model NAME=FOLDER ...
        [--pairs 100 1000] [--draws 3]

DIR/samsum has train, dev and test pairs. Each draw takes other training pairs, the same for all models; the checkpoint
is chosen on dev pairs. The model that comes with precis is "default"; more are named by --model, such as
--model phase-1=FOLDER. "nothing" is the recipe zcodepp-few, which begins without a model. Printed are ROUGE-1/2/L on
the test pairs: the mean over draws, the lowest and the highest, and the paired difference of the first model to each
other with a 95% interval (bootstrap over documents of the mean over draws, 1,000 samples, seed 0). Last stands
LEAD-3. A finished cell is kept in OUT and not made again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faults.report import header
from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import read_pairs
from precis.evaluation.baselines import Lead
from precis.evaluation.rouge import Rouge
from precis.generation.model_location import default_model
from precis.generation.summarizer import Summarizer
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.recipes.catalogue import recipe
from precis.recipes.overrides import with_changes
from precis.recipes.run_plan import RunPlan

STEPS = {"pretrained-small": (100, 250), "zcodepp-few": (600, 1200)}
"""Steps for few and for many pairs; a model from nothing takes more."""
_MANY = 500
VALIDATED = 100
KINDS = ("rouge1", "rouge2", "rougeL")
Scores = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Start:
    """A model to begin with, or none, and the recipe that suits it, in steps for so many pairs."""

    name: str
    recipe: str
    model: str | None
    changes: Mapping[str, Any]

    def plan(self, pairs: int, seed: int) -> RunPlan:
        """About ten times through few pairs, and three times through many."""
        steps = STEPS[self.recipe][pairs >= _MANY]
        changes = {
            **self.changes,
            "train.steps": steps,
            "train.validate_every": steps // 4,
            "train.seed": seed,
        }
        return with_changes(recipe(self.recipe), changes)


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
        done = finetune(
            cell.start.plan(cell.pairs, cell.draw),
            PairRequest(
                sources=NamedPairs(data=str(data), skip_bad=True).sources(),
                start=cell.start.model,
                examples=cell.pairs,
                sampling_seed=cell.draw,
                out=cell.folder(out) / "run",
                notify=lambda text: print(f"  {text}", flush=True),
            ),
        )
        assert done.model is not None, "interrupted: start the same command again"
        documents = [pair.document for pair in test]
        written = Summarizer.from_pretrained(done.model).summarize(documents, batch_size=32, short="write")
        found = Rouge(types=KINDS).score([s.text for s in written], [pair.all_references for pair in test])
        file.write_text(json.dumps({kind: found[kind].tolist() for kind in KINDS}))
    return {kind: np.array(values) for kind, values in json.loads(file.read_text()).items()}


def few_for_validation(data: Path, place: Path) -> Path:
    """A folder with the training pairs and the first dev pairs that have a text; all would take most of the time."""
    for split, limit in (("train", None), ("dev", VALIDATED)):
        file = place / f"{split}.jsonl"
        place.mkdir(parents=True, exist_ok=True)
        pairs = read_pairs(data, split=split, skip_bad=True, limit=limit)
        rows = ({"document": pair.document, "summaries": list(pair.all_references)} for pair in pairs)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


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
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--only", action="append", metavar="NAME", help="make these cells and print no table")
    parser.add_argument("--pairs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("runs/few-from-default"))
    asked = parser.parse_args()
    header(f"few pairs of {asked.data.name}, {asked.draws} draws")
    named = [("default", str(default_model())), *(each.split("=", 1) for each in asked.model)]
    changes = {"batch_tokens": 2048, "max_source": 512, "train.warmup_steps": 30}
    starts = (
        *(Start(name, "pretrained-small", model, changes) for name, model in named),
        Start("nothing", "zcodepp-few", None, {}),
    )
    if asked.only:
        starts = tuple(start for start in starts if start.name in asked.only)
    data = few_for_validation(asked.data, asked.out / "data")
    test = list(read_pairs(asked.data, split="test", skip_bad=True, limit=asked.test))
    lines = [
        "| pairs | model | ROUGE-1/2/L (lowest to highest L) | default over it, L |",
        "|---|---|---|---|",
    ]
    for pairs in asked.pairs:
        found = {
            start.name: [
                scored(Cell(start, pairs, draw), data, asked.out, test) for draw in range(asked.draws)
            ]
            for start in starts
        }
        if asked.only:
            continue
        for name, scores in found.items():
            over = "" if name == "default" else difference(found["default"], scores)
            lines.append(f"| {pairs:,} | {name} | {over_draws(scores)} | {over} |")
    if asked.only:
        return
    lead = Rouge(types=KINDS).score(
        [Lead(units=3).extract(pair, rouge=Rouge()) for pair in test], [pair.all_references for pair in test]
    )
    lines.append(f"| | LEAD-3 | {'/'.join(f'{lead[kind].mean():.1f}' for kind in KINDS)} | |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
