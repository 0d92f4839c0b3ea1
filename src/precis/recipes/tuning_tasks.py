"""Settings of prefix tuning by task, out of the paper's Table 7, and its low-resource sets.

The paper trains BART-large. Its rate of 5e-5, which is Li & Liang's for their network, suits a base of that size; the
smaller the base, the larger the rate it wants: for models of a few million parameters 0.001 to 0.003 for the network,
0.1 to 0.3 where keys and values are parameters themselves. The table names block sizes, top-p and temperatures as
ranges that were searched and not what was chosen; `MethodSettings` has our defaults. What "tau (top-p)" does is our
reading; see `precis.nn.normalizers.TopP`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from precis.config import Settings
from precis.data.tasks.tasks import task
from precis.decoding import GenerationSettings
from precis.recipes.catalogue import pretrained
from precis.recipes.overrides import metric_to_select, with_changes, with_overrides
from precis.recipes.runs import RunPlan
from precis.training.settings import Highest, TrainSettings

LOW_RESOURCE = (0.05, 0.10, 0.25, 0.50)
"""Section 6.6: shares of the training set, drawn at random."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """A column of Table 7."""

    prefix_length: int
    epochs: float
    batch_size: int
    learning_rate: float = 5e-5
    beams: int = 5


TABLE_7: Mapping[str, TaskSettings] = MappingProxyType(
    {
        "xsum": TaskSettings(prefix_length=100, epochs=30, batch_size=8),
        "cnndm": TaskSettings(prefix_length=50, epochs=30, batch_size=8),
        "pubmed": TaskSettings(prefix_length=50, epochs=30, batch_size=8),
        "wikihow": TaskSettings(prefix_length=100, epochs=30, batch_size=8),
        "samsum": TaskSettings(prefix_length=10, epochs=20, batch_size=16),
        "e2e": TaskSettings(prefix_length=10, epochs=10, batch_size=16),
        "dart": TaskSettings(prefix_length=10, epochs=10, batch_size=16),
    }
)
_LIKE = {"facts": "e2e", "dialogue": "samsum"}  # kinds of tasks


def settings_for(task_name: str | None) -> TaskSettings:
    """The task's column of Table 7; of other tasks that of their kind: facts as E2E, dialogues as SAMSum, all else as
    CNN/DailyMail.

    Raises:
        UserError: there is no such task.
    """
    if task_name is None:
        return TABLE_7["cnndm"]
    kind = task(task_name).kind
    return TABLE_7[task_name if task_name in TABLE_7 else _LIKE.get(kind, "cnndm")]


def resolve_tuning(
    task_name: str | None,
    *,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> RunPlan:
    """How a prefix is trained: Table 7 for the task, its lengths and decoding, under what was asked for.

    As in Li & Liang's code the rate falls linearly from the first step on, without warm-up, weight decay and label
    smoothing. The best checkpoint is chosen by ROUGE-L on validation pairs.

    Args:
        changes: values by dotted name.
        assignments: the same as texts; they win.
        select: the metric that names the best checkpoint.

    Raises:
        UserError: an unknown task or setting, or a value of another type.
    """
    paper = settings_for(task_name)
    train = TrainSettings(
        epochs=paper.epochs,
        learning_rate=paper.learning_rate,
        warmup_steps=0,
        weight_decay=0.0,
        select=Highest(metric="rougeL"),
    )
    generation = GenerationSettings(beams=paper.beams)
    run = replace(
        pretrained(),
        name="tune",
        model=None,
        train=train,
        batch_size=paper.batch_size,
        label_smoothing=0.0,
        generation=generation,
    )
    if task_name is not None:
        known = task(task_name)
        decoding = replace(known.generation, beams=paper.beams)
        run = replace(run, max_source=known.max_source, max_target=known.max_target, generation=decoding)
    wanted = dict(changes or {})
    if select is not None:
        wanted["train.select"] = metric_to_select(select)
    return with_overrides(with_changes(run, wanted), assignments)
