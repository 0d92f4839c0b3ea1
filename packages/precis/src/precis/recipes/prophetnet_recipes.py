"""The settings of ProphetNet's paper by task.

With `--task`, base and large use the training and decoding settings of the paper (arXiv:2001.04063, sections 3.2
and 3.3) and its released scripts:

| task | rate | batch | beams | length penalty | tokens | blocked | decoding from |
|---|---|---|---|---|---|---|---|
| cnndm | 1e-4 | 512 | 5 | 1.2 | 45 to 110 | trigrams | paper |
| gigaword, or Reuters headlines instead | 1e-4 | 128 | 4 | 1.0 | at most the task's | nothing | paper |
| squad-qg, squad-qg-zhao | 1e-5 | 28 | 5 | 1.5 | at most the task's | trigrams | scripts |

All train for 10 epochs with 1,000 steps of warm-up, which the paper does not give for questions. A step's batch is
split into micro-batches of at most 32 pairs. The task table has Z-Code++'s decoding; only for question generation are
both the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from precis.data.tasks.tasks import task
from precis.recipes.run_plan import RunPlan
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

FINE_TUNED = ("prophetnet-base", "prophetnet-large")
"""Recipes that start from pre-trained weights, as in the paper."""


@dataclass(frozen=True)
class PaperTask:
    """The paper's training and decoding settings for a task; a step has `batch_size` times `passes` pairs."""

    learning_rate: float
    batch_size: int
    passes: int
    decoding: GenerationSettings


def _within(name: str, settings: PaperTask) -> PaperTask:
    """Return `settings` with the task's own limit of tokens."""
    limit = task(name).generation.max_tokens
    return replace(settings, decoding=replace(settings.decoding, max_tokens=limit))


_CNNDM = GenerationSettings(beams=5, length_penalty=1.2, no_repeat_ngram=3, min_tokens=45, max_tokens=110)
_HEADLINE = PaperTask(1e-4, 32, 4, GenerationSettings(beams=4, length_penalty=1.0))
_QUESTION = PaperTask(1e-5, 28, 1, GenerationSettings(beams=5, length_penalty=1.5, no_repeat_ngram=3))
PROPHETNET_TASKS: Mapping[str, PaperTask] = MappingProxyType(
    {
        "cnndm": PaperTask(1e-4, 32, 16, _CNNDM),
        **{name: _within(name, _HEADLINE) for name in ("gigaword", "reuters21578")},
        **{name: _within(name, _QUESTION) for name in ("squad-qg", "squad-qg-zhao")},
    }
)
"""The tasks that the paper reports on, and Reuters headlines instead of Gigaword."""


def prophetnet_decoding(task_name: str | None) -> GenerationSettings:
    """Return the decoding settings for a task.

    Raises:
        UserError: the paper does not report on it, or `task_name` is None.
    """
    if task_name is None or task_name not in PROPHETNET_TASKS:
        known = ", ".join(PROPHETNET_TASKS)
        raise UserError(f"ProphetNet's decoding settings need --task with one of its tasks: {known}")
    return PROPHETNET_TASKS[task_name].decoding


def on_task(run: RunPlan, task_name: str) -> RunPlan:
    """Return `run` with the paper's settings for a task if it starts from ProphetNet's weights and the paper reports on
    the task; else unchanged.
    """
    settings = PROPHETNET_TASKS.get(task_name)
    if settings is None or run.name not in FINE_TUNED:
        return run
    train = replace(
        run.train,
        learning_rate=settings.learning_rate,
        warmup_steps=1000,
        epochs=10,
        steps=None,
        gradient_accumulation=settings.passes,
    )
    return replace(
        run, train=train, batch_size=settings.batch_size, batch_tokens=None, generation=settings.decoding
    )
