"""How soon a narrow ProphetNet learns E2E, by the spreads that its weights and its absolute positions begin with.

    python benchmarks/prophetnet_init.py --data DIR [--steps 200] [--seeds 0 1 2] --out runs/prophetnet-init

Trains `prophetnet-micro` (128 wide, n = 2) for each (docs/adr/0007); prints the loss of the next token on the dev set,
in nats: mean and range over seeds. What is in --out already is not trained again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from precis.cli.quiet import quieten_transformers
from precis.recipes.finetune import finetune, resolve_run
from precis.recipes.sources import find_sources
from precis.training.callbacks import read_metrics

WIDE = 0.02 * (1024 / 128) ** 0.5
SPREADS = ((0.02, 0.02), (0.02, 0.004), (WIDE, WIDE), (WIDE, WIDE / 5))


def losses(init: float, positions: float, seed: int, options: argparse.Namespace) -> dict[int, float]:
    """Of the dev set, by step."""
    changes: dict[str, Any] = {
        "model.vocab_size": 2000,
        "model.init_std": init,
        "model.position_std": positions,
        "train.steps": options.steps,
        "train.epochs": None,
        "train.warmup_steps": 40,
        "train.validate_every": options.steps // 2,
        "train.seed": seed,
        "batch_tokens": 2048,
        "generated_rows": 0,
    }
    out = options.out / f"{init:.3f}-{positions:.3f}-{seed}"
    run = resolve_run("prophetnet-micro", task_name="e2e", changes=changes, select="loss")
    finetune(run, sources=find_sources(task_name="e2e", data=str(options.data)), out=out, tell=print)
    return {r["step"]: r["nll"] for r in read_metrics(out / "metrics.jsonl") if r["kind"] == "validation"}


def main() -> None:
    options = _options()
    quieten_transformers()
    torch.set_num_threads(options.threads)
    lines = []
    for init, positions in SPREADS:
        runs = [losses(init, positions, seed, options) for seed in options.seeds]
        cells = []
        for step in sorted(runs[0]):
            found = [run[step] for run in runs]
            cells.append(f"{mean(found):.2f} ({min(found):.2f}-{max(found):.2f})")
        lines.append(f"| {init:.3f} | {positions:.3f} | {' | '.join(cells)} |")
    steps = " | ".join(f"loss at step {step}" for step in sorted(runs[0]))
    print(f"| weights | positions | {steps} |\n|---|---|{'---|' * len(runs[0])}", *lines, sep="\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with a folder for each task")
    parser.add_argument("--out", type=Path, default=Path("runs/prophetnet-init"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
