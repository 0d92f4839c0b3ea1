"""How large each study is, as data: its settings at every scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from precis.config import Settings
from precis.recipes.tuning import LOW_RESOURCE, TunePlan, settings_for
from precis.tuning import MethodSettings, Prefix
from precis.tuning.prefix import Direct, Reparametrized

CORPORA = ("pretrain_gutenberg", "pretrain_scotus_oral", "pretrain_wikitext2", "pretrain_wikinews")
FACTS, DIALOGUES = "e2e", "samsum"
FINE_TUNING = "fine-tuning"


@dataclass(frozen=True, kw_only=True)
class Scale(Settings):
    """How large a reproduction is.

    Attributes:
        recipe: size of the model, by the name of its pre-training and fine-tuning recipes.
        vocab_size: of the tokenizer, trained on the corpora.
        shape: what else of the recipe's model is changed, by name: a CPU is spared random numbers and position keys.
        corpora: folders of unlabelled English text under the data folder; those that are there are packed.
        phase1_steps: of the model that is tuned; `ablation_steps` of each one that is compared.
        grounding_tasks, grounding_cap, grounding_steps, grounding_batch_tokens: phase 2; SAMSum is always left out.
        invented_pairs: of the project's own synthetic corpus, one more set of phase 2.
        examples: sizes of the few-shot sets; each is drawn with every one of `sampling_seeds`.
        few_shot_steps, validate_every, dev_rows: few-shot fine-tuning ends after that many steps at the latest, and is
            validated that often, by loss and by ROUGE on that many dev rows.
        learning_rate: of fine-tuning, the same for every start.
        full_epochs: passes over all of SAMSum.
        test_rows: how many test dialogues are summarized.
    """

    name: str
    recipe: str
    vocab_size: int
    shape: tuple[tuple[str, int | float], ...] = ()
    corpora: tuple[str, ...] = CORPORA
    phase1_steps: int
    ablation_steps: int
    grounding_tasks: tuple[str, ...] = ("dialogsum", "cnndm", "aeslc", "scitldr", "reuters21578")
    grounding_cap: int = 4000
    grounding_steps: int
    grounding_batch_tokens: int = 4096
    invented_pairs: int
    examples: tuple[int, ...] = (10, 100, 1000)
    sampling_seeds: tuple[int, ...] = (0, 1, 2)
    ablation_seeds: tuple[int, ...] = (0, 1)
    few_shot_steps: int = 2000
    validate_every: int = 100
    dev_rows: int = 100
    learning_rate: float
    full_epochs: float
    batch_tokens: int = 4096
    test_rows: int = 819
    beams: int = 1

    @property
    def model_changes(self) -> dict[str, int | float]:
        """`shape` by dotted name."""
        return {f"model.{name}": value for name, value in self.shape}


SCALES: Mapping[str, Scale] = {
    scale.name: scale
    for scale in (
        Scale(
            name="smoke",
            recipe="zcodepp-micro",
            vocab_size=1000,
            corpora=("pretrain_wikinews",),
            phase1_steps=4,
            ablation_steps=2,
            grounding_tasks=("dialogsum", "aeslc"),
            grounding_cap=40,
            grounding_steps=4,
            invented_pairs=40,
            examples=(10,),
            sampling_seeds=(0,),
            ablation_seeds=(0,),
            few_shot_steps=2,
            validate_every=2,
            dev_rows=4,
            learning_rate=1e-3,
            full_epochs=0.005,
            test_rows=8,
        ),
        Scale(
            name="micro",
            recipe="zcodepp-micro",
            vocab_size=4000,
            shape=(("attention_dropout", 0.0), ("position_buckets", 32), ("max_relative_positions", 256)),
            phase1_steps=1600,
            ablation_steps=800,
            grounding_tasks=("dialogsum", "scitldr"),
            grounding_cap=40_000,
            grounding_steps=3500,
            grounding_batch_tokens=3000,
            invented_pairs=40_000,
            few_shot_steps=250,
            validate_every=50,
            dev_rows=64,
            learning_rate=1e-3,
            full_epochs=1,
        ),
        Scale(
            name="mini",
            recipe="zcodepp-mini",
            vocab_size=16_000,
            phase1_steps=50_000,
            ablation_steps=15_000,
            grounding_cap=10_000,
            grounding_steps=10_000,
            grounding_batch_tokens=12_288,
            invented_pairs=20_000,
            learning_rate=5e-4,
            full_epochs=12,
            batch_tokens=12_288,
            beams=4,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class ProphetScale(Settings):
    """How large the comparisons are.

    Attributes:
        recipe: of ProphetNet, by name.
        vocab_size: of the tokenizer, trained on the corpora.
        corpora: folders of unlabelled English text under the data folder; those that are there are packed.
        task: whose pairs the systems are compared on.
        pretraining_steps, task_steps, question_steps: optimizer steps of each run.
        seeds: of fine-tuning.
        task_tokens, question_tokens: in a batch of fine-tuning.
        learning_rate: of fine-tuning, the same for all.
        dev_rows: for validation, by loss and by ROUGE.
        test_rows: how many test documents are written for at most, evenly spaced; of questions as many of each split.
    """

    name: str
    recipe: str
    vocab_size: int
    corpora: tuple[str, ...] = CORPORA
    task: str = "reuters21578"
    pretraining_steps: int
    task_steps: int
    question_steps: int
    seeds: tuple[int, ...] = (0, 1, 2)
    task_tokens: int = 4096
    question_tokens: int = 4096
    learning_rate: float = 1e-3
    dev_rows: int = 100
    test_rows: int = 1000


PROPHET_SCALES: Mapping[str, ProphetScale] = {
    scale.name: scale
    for scale in (
        ProphetScale(
            name="smoke",
            recipe="prophetnet-micro",
            vocab_size=1000,
            corpora=("pretrain_wikinews",),
            pretraining_steps=2,
            task_steps=2,
            question_steps=2,
            seeds=(0,),
            dev_rows=4,
            test_rows=4,
        ),
        ProphetScale(
            name="micro",
            recipe="prophetnet-micro",
            vocab_size=4000,
            task="e2e",
            pretraining_steps=1000,
            task_steps=600,
            question_steps=1500,
            task_tokens=2048,
            dev_rows=64,
            test_rows=1000,
        ),
        ProphetScale(
            name="mini",
            recipe="prophetnet-mini",
            vocab_size=16_000,
            pretraining_steps=30_000,
            task_steps=6_000,
            question_steps=20_000,
            task_tokens=12_288,
            question_tokens=12_288,
            learning_rate=5e-4,
            test_rows=5000,
        ),
    )
}


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
