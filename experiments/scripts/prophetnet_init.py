"""How soon a narrow ProphetNet learns E2E, by the spreads that its weights and its absolute positions begin with.

    python -m experiments.scripts.prophetnet_init --data DIR [--steps 200] [--seeds 0 1 2] --out runs/prophetnet-init

Trains `prophetnet-micro` (128 wide, n = 2) for each (docs/adr/0007); prints the loss of the next token on the dev set,
in nats: mean and range over seeds. What is in --out already is not trained again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from experiments.scripts import by_seed
from precis.cli.framework.library_logging import quieten_transformers
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.recipes.planning import resolve_run

WIDE = 0.02 * (1024 / 128) ** 0.5
SPREADS = ((0.02, 0.02), (0.02, 0.004), (WIDE, WIDE), (WIDE, WIDE / 5))


def losses(init: float, positions: float, seed: int, options: argparse.Namespace) -> by_seed.Losses:
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
    finetune(
        run,
        PairRequest(sources=NamedPairs(task="e2e", data=str(options.data)).sources(), out=out, notify=print),
    )
    return by_seed.losses_of(out)


def main() -> None:
    options = by_seed.options(__doc__, out=Path("runs/prophetnet-init")).parse_args()
    quieten_transformers()
    torch.set_num_threads(options.threads)
    rows = [
        (
            (f"{init:.3f}", f"{positions:.3f}"),
            [losses(init, positions, seed, options) for seed in options.seeds],
        )
        for init, positions in SPREADS
    ]
    by_seed.print_table(["weights", "positions"], rows)


if __name__ == "__main__":
    main()
