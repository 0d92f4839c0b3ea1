"""What `precis finetune --data FEW` learns by default, and what it did when the default was another recipe.

    python -m experiments.scripts.few_pairs [--pairs 300] [--seeds 0 1] [--recipe NAME ...] [--out runs/few-pairs]

Synthetic pairs; each seed has pairs and weights of its own, and all recipes see the same. The default begins with the
model that comes with precis (`pretrained-few`), the others from scratch. Reported are the loss of the
next token on the dev set at the kept checkpoint, and ROUGE-L of its summaries of unseen test documents, decoded as the
recipe says, beside LEAD-1, the first sentence. About fifteen minutes a recipe and seed on one core.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import torch

from faults.report import header
from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import read_pairs
from precis.evaluation.baselines import lead
from precis.evaluation.rouge import Rouge
from precis.generation.summarizer import Summarizer
from precis.phases.data.pair_checks import write_synthetic
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.starting_point import begin_as_recipe_says
from precis.recipes.catalogue import FROM_DEFAULT, recipe
from precis.training.callbacks import JsonLines, read_metrics

COMPARED = ("zcodepp-mini", "zcodepp-few", FROM_DEFAULT)
_DEV, _TEST = 60, 200


@dataclass(frozen=True)
class Found:
    """Of one run: the parameters of its model, the kept step, the loss there, ROUGE-L on the test set (0 to 100)."""

    steps: int
    kept: int
    loss: float
    rouge: float
    seconds: float


def rouge_l(texts: list[str], pairs: list[Pair]) -> float:
    """The mean F1, 0 to 100."""
    scores = Rouge(types=("rougeL",)).score(texts, [pair.all_references for pair in pairs])
    return float(scores["rougeL"].mean())


def trained(name: str, data: Path, out: Path, *, seed: int) -> Found:
    """Train by a recipe's own settings, and score what it keeps."""
    run = recipe(name)
    run = replace(run, train=replace(run.train, seed=seed))
    done = finetune(
        run,
        PairRequest(
            start=begin_as_recipe_says(name).model,
            sources=NamedPairs(data=str(data)).sources(),
            out=out,
            notify=lambda text: print(f"  {text}", flush=True),
            callbacks=[JsonLines()],
        ),
    )
    assert done.model is not None
    measured = {r["step"]: r["nll"] for r in read_metrics(out / "metrics.jsonl") if r["kind"] == "validation"}
    kept = done.result.best_step
    assert kept is not None
    test = list(read_pairs(data / "test.jsonl"))
    written = Summarizer.from_pretrained(done.model).summarize([p.document for p in test], batch_size=50)
    score = rouge_l([summary.text for summary in written], test)
    return Found(done.result.step, kept, measured[kept], score, done.result.seconds)


def main() -> None:
    """Run the recipes on each seed's pairs and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--recipe", nargs="+", choices=COMPARED, default=[*COMPARED])
    parser.add_argument("--out", type=Path, default=Path("runs/few-pairs"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    header(f"{options.pairs} synthetic pairs: {', '.join(options.recipe)}")
    rows: dict[str, list[Found]] = {name: [] for name in options.recipe}
    leads = []
    for seed in options.seeds:
        data = options.out / str(seed) / "pairs"
        write_synthetic(data, {"train": options.pairs, "dev": _DEV, "test": _TEST}, seed=seed)
        test = list(read_pairs(data / "test.jsonl"))
        leads.append(rouge_l([lead(pair.document, 1) for pair in test], test))
        for name, found in rows.items():
            print(f"seed {seed}, {name}:")
            found.append(trained(name, data, options.out / str(seed) / name, seed=seed))
            print(f"  {json.dumps(found[-1].__dict__)}", flush=True)
    print("\n| recipe | steps | dev loss a token | test ROUGE-L | minutes |\n|---|---|---|---|---|")
    for name, found in rows.items():
        losses, scores = [one.loss for one in found], [one.rouge for one in found]
        print(
            f"| {name} | {found[0].steps} | {_spread(losses, 2)} | {_spread(scores, 1)} | "
            f"{mean(one.seconds for one in found) / 60:.1f} |"
        )
    print(f"| LEAD-1 | | | {_spread(leads, 1)} | |")


def _spread(values: list[float], digits: int) -> str:
    return f"{mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


if __name__ == "__main__":
    main()
