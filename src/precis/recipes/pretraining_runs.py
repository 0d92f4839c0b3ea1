"""Pre-training, Z-Code++'s first phase and ProphetNet's, in several sizes: each a function that returns a run.

Z-Code++ gives for its large model: 6 generator layers, batches of 2,048 rows, 1 M steps, AdamW, loss weights 1/30/1.
It does not give the learning rate or the length of a row; base and large take those of DeBERTa's published command
(1e-4, 512 tokens, 10,000 steps of warm-up). Micro's settings have been run (docs/experiments.md); those between are
interpolated and have not.

ProphetNet gives for its large model: 3e-4, batches of 1,024, 500,000 steps (section 3.1); for base 125,000 steps (3.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from precis.config import Settings, nearest
from precis.data.batches.pretraining_batches import Corruption
from precis.errors import UserError
from precis.objectives.pretraining import MassSpans, SpansAlone
from precis.objectives.replaced_tokens import ReplacedTokens
from precis.recipes.catalogue import CONFIGS
from precis.recipes.prophetnet import (
    prophetnet_base,
    prophetnet_large,
    prophetnet_micro,
    prophetnet_mini,
)
from precis.recipes.runs import ProphetNetShape, ZCodePPShape, native_precision
from precis.recipes.zcodepp import (
    zcodepp_base,
    zcodepp_large,
    zcodepp_micro,
    zcodepp_mini,
    zcodepp_small,
)
from precis.training.settings import TrainSettings

PreTrainingObjectives = ReplacedTokens | SpansAlone | MassSpans
"""The objectives that a run may name: a new one is entered here."""


@dataclass(frozen=True, kw_only=True)
class PreTrainRun(Settings):
    """All that decides about a pre-training run, apart from its corpora.

    Attributes:
        model: shape of a new model; `vocab_size` is the corpus's tokenizer's.
        train: the loop's settings.
        batch_size: blocks that a step takes, over all processes; times `train.gradient_accumulation`, which is 1 in
            every recipe.
        rows_at_once: blocks that one process computes at a time at most: a larger batch becomes several micro-batches
            of the same step (gradient accumulation). If None, all that `batch_size` gives it.
        block_length: tokens in a block, [CLS] and [SEP] included.
        corruption: what is hidden from whom.
        objective: what is learnt.
        validation_blocks: held-out blocks that are measured at each validation.
        gradient_checkpointing: keep a layer's input only and compute the rest again: less memory, more time.
    """

    name: str
    model: ZCodePPShape | ProphetNetShape
    train: TrainSettings
    batch_size: int
    rows_at_once: int | None = None
    block_length: int = 512
    corruption: Corruption = field(default_factory=Corruption)
    objective: PreTrainingObjectives = field(default_factory=ReplacedTokens)
    validation_blocks: int = 256
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        for name, least in {"batch_size": 1, "block_length": 16, "validation_blocks": 1}.items():
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)} is too small; it must be at least {least}")
        if self.rows_at_once is not None and self.rows_at_once < 1:
            raise UserError(f"rows_at_once={self.rows_at_once}: use 1 or more, or none for whole batches")
        if (
            isinstance(self.model, ProphetNetShape)
            and self.block_length >= self.model.max_position_embeddings
        ):
            raise UserError(
                f"block_length={self.block_length}: this ProphetNet has positions for "
                f"{self.model.max_position_embeddings - 1} tokens; use shorter blocks or raise "
                "model.max_position_embeddings"
            )
        family, trained = CONFIGS[type(self.model)].model_type, self.objective.trains.config_class.model_type
        if family != trained:
            raise UserError(
                f"{self.name}: {self.objective.title} train a {trained}, and this recipe's model is a {family}; choose "
                "another --recipe"
            )
        self.objective.check(self.corruption)


def pretrain_micro() -> PreTrainRun:
    """2 M parameters: on a CPU, a million tokens in two or three minutes."""
    return PreTrainRun(
        name="zcodepp-micro",
        model=zcodepp_micro().shape,
        train=_train(learning_rate=1e-3, warmup_steps=500, epochs=2),
        batch_size=16,
        block_length=256,
        objective=ReplacedTokens(generator_layers=1),
    )


def pretrain_mini() -> PreTrainRun:
    """13 M parameters: a GPU, or patience."""
    return PreTrainRun(
        name="zcodepp-mini",
        model=zcodepp_mini().shape,
        train=_train(learning_rate=7e-4, warmup_steps=1000, epochs=4),
        batch_size=32,
        objective=ReplacedTokens(generator_layers=2),
    )


def pretrain_small() -> PreTrainRun:
    """61 M parameters: one GPU."""
    return PreTrainRun(
        name="zcodepp-small",
        model=zcodepp_small().shape,
        train=_train(learning_rate=5e-4, warmup_steps=10_000, epochs=10),
        batch_size=64,
        objective=ReplacedTokens(generator_layers=3),
    )


def pretrain_base() -> PreTrainRun:
    """297 M parameters: several GPUs."""
    return PreTrainRun(
        name="zcodepp-base",
        model=zcodepp_base().shape,
        train=_train(learning_rate=1e-4, warmup_steps=10_000, steps=1_000_000),
        batch_size=256,
        rows_at_once=32,
        objective=ReplacedTokens(generator_layers=6),
    )


def pretrain_large() -> PreTrainRun:
    """837 M parameters, the paper's: 1 M steps of 2,048 rows (128 A100s for 20 days)."""
    return PreTrainRun(
        name="zcodepp-large",
        model=zcodepp_large().shape,
        train=_train(learning_rate=1e-4, warmup_steps=10_000, steps=1_000_000),
        batch_size=2048,
        rows_at_once=8,
        objective=ReplacedTokens(generator_layers=6),
    )


def pretrain_prophetnet_micro() -> PreTrainRun:
    """2.1 M parameters."""
    return _mass(
        "prophetnet-micro",
        prophetnet_micro().shape,
        _train(learning_rate=1e-3, warmup_steps=500, epochs=2),
        batch_size=16,
        block_length=256,
    )


def pretrain_prophetnet_mini() -> PreTrainRun:
    """14 M parameters."""
    return _mass(
        "prophetnet-mini",
        prophetnet_mini().shape,
        _train(learning_rate=7e-4, warmup_steps=1000, epochs=4),
        batch_size=32,
    )


def pretrain_prophetnet_base() -> PreTrainRun:
    """The model of section 3.6, whose n is compared in Table 7: 125,000 steps."""
    train = _train(learning_rate=3e-4, warmup_steps=10_000, steps=125_000)
    return _mass("prophetnet-base", prophetnet_base().shape, train, batch_size=1024, rows_at_once=64)


def pretrain_prophetnet_large() -> PreTrainRun:
    """The released model: 500,000 steps of 1,024 rows (16 V100s)."""
    train = _train(learning_rate=3e-4, warmup_steps=10_000, steps=500_000)
    return _mass("prophetnet-large", prophetnet_large().shape, train, batch_size=1024, rows_at_once=32)


def _mass(
    name: str,
    model: ZCodePPShape | ProphetNetShape,
    train: TrainSettings,
    *,
    batch_size: int,
    rows_at_once: int | None = None,
    block_length: int = 512,
) -> PreTrainRun:
    return PreTrainRun(
        name=name,
        model=model,
        train=train,
        batch_size=batch_size,
        rows_at_once=rows_at_once,
        block_length=block_length,
        objective=MassSpans(),
    )


def in_passes(run: PreTrainRun, processes: int) -> PreTrainRun:
    """The same steps in micro-batches that so many processes can hold: fewer rows a batch, more batches a step.

    Raises:
        UserError: the batch cannot be divided so.
    """
    if run.rows_at_once is None:
        return run
    most = run.rows_at_once * processes
    if run.batch_size <= most:
        return run
    sizes = [size for size in range(processes, most + 1) if run.batch_size % size == 0]
    if not sizes:
        raise UserError(
            f"batch_size={run.batch_size} has no equal parts of {processes} to {most} blocks, which {processes} "
            f"processes with rows_at_once={run.rows_at_once} need; use a batch_size with more divisors"
        )
    passes = run.batch_size // sizes[-1]
    train = replace(run.train, gradient_accumulation=passes * run.train.gradient_accumulation)
    return replace(run, batch_size=sizes[-1], train=train)


PRETRAINING: Mapping[str, Callable[[], PreTrainRun]] = MappingProxyType(
    {
        "zcodepp-micro": pretrain_micro,
        "zcodepp-mini": pretrain_mini,
        "zcodepp-small": pretrain_small,
        "zcodepp-base": pretrain_base,
        "zcodepp-large": pretrain_large,
        "prophetnet-micro": pretrain_prophetnet_micro,
        "prophetnet-mini": pretrain_prophetnet_mini,
        "prophetnet-base": pretrain_prophetnet_base,
        "prophetnet-large": pretrain_prophetnet_large,
    }
)


def pretraining_run(name: str) -> PreTrainRun:
    """The run of that name.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    if name not in PRETRAINING:
        raise UserError(f"unknown pre-training recipe {name!r}{nearest(name, PRETRAINING)}")
    return PRETRAINING[name]()


def _train(
    *, learning_rate: float, warmup_steps: int, epochs: float | None = None, steps: int | None = None
) -> TrainSettings:
    return TrainSettings(
        epochs=epochs,
        steps=steps,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        precision=native_precision(),
        save_every=1000,
        log_every=20,
    )
