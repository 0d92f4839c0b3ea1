"""How soon a prefix learns E2E on a small frozen base, by how its keys and values are made and the learning rate.

    python -m experiments.scripts.prefix_init --base RUN --data DIR [--steps 200] [--seeds 0 1 2] --out runs/prefix-init

RUN is the base of `precis reproduce discourse-prefix`, steps/base/run in its folder. Prints the loss of the next token
on the dev set, in nats: mean and range over seeds. What is in --out already is not trained again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from experiments.scripts import by_seed
from precis.cli.framework.library_logging import quieten_transformers
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune
from precis.recipes.adapter_recipes import TunePlan
from precis.recipes.planning import resolve_run
from precis.tuning import Prefix
from precis.tuning.prefix import Direct, Reparametrized

WORDS = "The restaurant serves cheap food in the city near the river."
KINDS: Mapping[str, dict[str, Any]] = {
    "drawn, 0.02": {"keys": Direct(std=0.02)},
    "drawn, 0.3": {"keys": Direct(std=0.3)},
    "drawn, 1": {"keys": Direct(std=1.0)},
    "words": {"initial_text": WORDS},
    "network": {"keys": Reparametrized()},
}
PAPERS = 5e-5
TRIED = (
    ("drawn, 0.02", PAPERS),
    ("network", PAPERS),
    ("network", 1e-3),
    ("network", 3e-3),
    ("drawn, 0.02", 0.3),
    ("drawn, 0.3", 0.3),
    ("drawn, 1", 0.3),
    ("words", 0.3),
)


def losses(kind: str, rate: float, seed: int, options: argparse.Namespace) -> by_seed.Losses:
    """Of the dev set, by step."""
    changes: dict[str, Any] = {
        "train.steps": options.steps,
        "train.epochs": None,
        "train.warmup_steps": options.steps // 10,
        "train.validate_every": options.steps // 2,
        "train.learning_rate": rate,
        "train.weight_decay": 0.0,
        "train.seed": seed,
        "batch_tokens": 2048,
        "generated_rows": 0,
    }
    made = dict(KINDS[kind])
    prefix = Prefix(length=10, **({"keys": made.pop("keys")} if "keys" in made else {}))
    out = options.out / f"{kind.replace(', ', '-')}-{rate:g}-{seed}"
    run = resolve_run("zcodepp-micro", task_name="e2e", changes=changes, select="loss")
    sources = NamedPairs(task="e2e", data=str(options.data)).sources()
    plan = TunePlan(method="prefix", prefix=prefix, **made)
    tune(
        plan,
        run,
        PairRequest(start=str(options.base), sources=sources, out=out, instruction="", notify=print),
    )
    return by_seed.losses_of(out)


def main() -> None:
    parser = by_seed.options(__doc__, out=Path("runs/prefix-init"))
    parser.add_argument("--base", type=Path, required=True, help="a small Z-Code++")
    options = parser.parse_args()
    quieten_transformers()
    torch.set_num_threads(options.threads)
    rows = [
        ((kind, f"{rate:g}"), [losses(kind, rate, seed, options) for seed in options.seeds])
        for kind, rate in TRIED
    ]
    by_seed.print_table(["keys and values", "rate"], rows)


if __name__ == "__main__":
    main()
