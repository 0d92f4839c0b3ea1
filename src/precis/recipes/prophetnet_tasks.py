"""How ProphetNet is fine-tuned on each task of its paper (arXiv:2001.04063, sections 3.2 and 3.3).

| task | learning rate | batch | warm-up | epochs |
|---|---|---|---|---|
| cnndm | 1e-4 | 512 | 1000 | 10 |
| gigaword, and Reuters headlines in its place | 1e-4 | 128 | 1000 | 10 |
| squad-qg, squad-qg-zhao | 1e-5 | 28 | not given; 1000 here, as for the others | 10 |

A step's batch is made of micro-batches of at most 32 pairs. How each of these tasks is decoded is in
`prophetnet_decoding.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from precis.recipes.prophetnet_decoding import PROPHETNET_DECODING
from precis.recipes.runs import RunPlan

FINE_TUNED = ("prophetnet-base", "prophetnet-large")
"""Recipes that begin with pre-trained weights, as the paper does."""


@dataclass(frozen=True)
class TaskTraining:
    """Pairs in a step are `batch_size` times `passes`."""

    learning_rate: float
    batch_size: int
    passes: int
    warmup_steps: int = 1000
    epochs: float = 10


_CNNDM = TaskTraining(learning_rate=1e-4, batch_size=32, passes=16)
_HEADLINE = TaskTraining(learning_rate=1e-4, batch_size=32, passes=4)
_QUESTION = TaskTraining(learning_rate=1e-5, batch_size=28, passes=1)

PROPHETNET_TRAINING: Mapping[str, TaskTraining] = MappingProxyType(
    {
        "cnndm": _CNNDM,
        "gigaword": _HEADLINE,
        "reuters21578": _HEADLINE,
        "squad-qg": _QUESTION,
        "squad-qg-zhao": _QUESTION,
    }
)


def on_task(run: RunPlan, task_name: str) -> RunPlan:
    """`run` with the paper's settings for a task, where it is one that begins with ProphetNet's weights and the paper
    reports on the task; else as it is.
    """
    settings = PROPHETNET_TRAINING.get(task_name)
    if settings is None or run.name not in FINE_TUNED:
        return run
    train = replace(
        run.train,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_steps,
        epochs=settings.epochs,
        steps=None,
        gradient_accumulation=settings.passes,
    )
    return replace(
        run,
        train=train,
        batch_size=settings.batch_size,
        batch_tokens=None,
        generation=PROPHETNET_DECODING[task_name],
    )
