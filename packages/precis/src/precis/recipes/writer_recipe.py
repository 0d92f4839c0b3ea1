"""The plan of a low-rank adapter of a causal language model: the recipe for such models with a larger learning rate.

Hu et al. (2022) train GPT-2 at 2e-4, linearly decayed, and GPT-3 at 2e-4 or less; `precis tune` starts from that rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from precis.data.tasks.tasks import task
from precis.recipes.catalogue import FOR_WRITERS, recipe
from precis.recipes.overrides import as_asked, with_overrides
from precis.recipes.prefix_recipes import split_assignments
from precis.recipes.run_plan import RunPlan
from precis.tuning.low_rank import LowRank
from precis_text.config import Settings
from precis_text.errors import UserError

LORA = "lora"
"""The method of `precis tune` for causal language models."""


@dataclass(frozen=True, kw_only=True)
class _Named(Settings):
    """The names of an adapter's settings, such as `lora.rank`."""

    lora: LowRank = field(default_factory=LowRank)


def resolve_low_rank(
    task_name: str | None,
    *,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> tuple[LowRank, RunPlan]:
    """Return the adapter and the training plan that options describe.

    Args:
        changes, assignments, select: the user's options, which win; see `precis.recipes.overrides.as_asked`.

    Raises:
        UserError: an unknown task or setting, a value of another type, or a setting of a prefix.
    """
    of_prefix, others = split_assignments(assignments)
    if of_prefix:
        raise UserError(f"--set {of_prefix[0]} is for a prefix; --method {LORA} has lora.rank and lora.alpha")
    of_adapter = [text for text in others if text.partition(".")[0].strip() == LORA]
    of_run = [text for text in others if text not in of_adapter]
    plan = recipe(FOR_WRITERS)
    train = replace(plan.train, learning_rate=2e-4, precision="fp32")
    plan = replace(plan, name="tune", model=None, train=train)
    if task_name is not None:
        known = task(task_name)
        plan = replace(plan, max_source=known.max_source, max_target=known.max_target)
    adapter = with_overrides(_Named(), of_adapter).lora
    return adapter, as_asked(plan, changes=changes, assignments=of_run, select=select)
