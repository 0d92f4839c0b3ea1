"""How large the comparisons of the discourse-aware prefixes are: `precis.studies.prefixes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from precis.config import Settings
from precis.recipes.tuning import LOW_RESOURCE, TunePlan, settings_for
from precis.studies.reproduction import SCALES, Scale
from precis.tuning import MethodSettings, Prefix
from precis.tuning.prefix import Direct, Reparametrized

FACTS, DIALOGUES = "e2e", "samsum"
FINE_TUNING = "fine-tuning"


@dataclass(frozen=True, kw_only=True)
class PrefixScale(Settings):
    """How large the comparisons are.

    Attributes:
        base: how the base is pre-trained; its settings of fine-tuning are not read.
        facts_steps, dialogues_steps: optimizer steps on all pairs of E2E and of SAMSum.
        facts_seeds, dialogues_seeds: of training.
        shares, pool, low_steps, sampling_seeds: of the low-resource curves; a share is one of `pool` pairs, and a
            draw's seed is its training's seed too.
        fine_tuning_rates, prefix_rates, temperatures: what is tried, for `rate_steps` each.
        keys: how the prefixes' keys and values are made.
        settings: of the methods.
        beams: of the search for test texts; 1 is greedy.
        cost_rounds: processes a system in which a step is measured, in turn.
    """

    name: str
    base: Scale
    facts_steps: int
    dialogues_steps: int
    facts_seeds: tuple[int, ...] = (0, 1, 2)
    dialogues_seeds: tuple[int, ...] = (0,)
    shares: tuple[float, ...] = (*LOW_RESOURCE, 1.0)
    pool: int = 4000
    low_steps: int = 200
    sampling_seeds: tuple[int, ...] = (0, 1, 2)
    fine_tuning_rates: tuple[float, ...] = (3e-4, 1e-3, 2e-3, 4e-3)
    prefix_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3)
    temperatures: tuple[float, ...] = (1.0, 0.1)
    rate_steps: int = 200
    keys: Direct | Reparametrized = field(default_factory=Reparametrized)
    settings: MethodSettings = field(
        default_factory=lambda: MethodSettings(encoder_segments=2, decoder_segments=2)
    )
    batch_tokens: int = 4096
    dev_rows: int = 64
    test_rows: int = 1000
    beams: int = 1
    cost_rounds: int = 3

    @property
    def low_pairs(self) -> tuple[int, ...]:
        """Training pairs of the low-resource curves."""
        return tuple(round(share * self.pool) for share in self.shares)

    def plan(self, system: str, task_name: str, *, temperature: float = 1.0) -> TunePlan | None:
        """What a system attaches for a task; None: nothing, the model is fine-tuned."""
        if system == FINE_TUNING:
            return None
        prefix = Prefix(length=settings_for(task_name).prefix_length, keys=self.keys)
        settings = replace(self.settings, temperature=temperature) if "softsa" in system else self.settings
        return TunePlan(method=system, prefix=prefix, attention=settings)

    def steps_on(self, task_name: str, pairs: int | None = None) -> int:
        """Optimizer steps on so many pairs of a task; None: on all."""
        if pairs is not None:
            return self.low_steps
        return self.facts_steps if task_name == FACTS else self.dialogues_steps


PREFIX_SCALES: Mapping[str, PrefixScale] = {
    scale.name: scale
    for scale in (
        PrefixScale(
            name="smoke",
            base=SCALES["smoke"],
            facts_steps=2,
            dialogues_steps=2,
            facts_seeds=(0,),
            shares=(0.05,),
            pool=200,
            low_steps=1,
            sampling_seeds=(0,),
            fine_tuning_rates=(1e-3,),
            prefix_rates=(1e-3, 1e-2),
            rate_steps=1,
            dev_rows=4,
            test_rows=4,
            cost_rounds=1,
        ),
        PrefixScale(
            name="micro",
            base=SCALES["micro"],
            facts_steps=1000,
            dialogues_steps=500,
            fine_tuning_rates=(1e-3, 2e-3, 4e-3, 8e-3),
            keys=Direct(std=0.02),  # its figures are from before benchmarks/prefix_init.py
            prefix_rates=(1e-2, 3e-2, 1e-1, 3e-1, 1.0),
            batch_tokens=2048,
        ),
        PrefixScale(
            name="mini",
            base=SCALES["mini"],
            facts_steps=8000,
            dialogues_steps=8000,
            dialogues_seeds=(0, 1, 2),
            pool=42_061,  # all of E2E
            low_steps=2000,
            fine_tuning_rates=(1e-4, 3e-4, 1e-3, 2e-3),
            rate_steps=1500,
            batch_tokens=12_288,
            dev_rows=200,
            beams=5,
        ),
    )
}
