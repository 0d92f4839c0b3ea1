"""Plans for pre-training, Z-Code++'s first phase and ProphetNet's, in several sizes; see `recipes.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from precis.data.batches.pretraining_batches import Corruption
from precis.objectives.pretraining_objectives import MassSpans, SpansAlone
from precis.objectives.replaced_tokens import ReplacedTokens
from precis.recipes.catalogue import CONFIGS, PRETRAINING, recipe, record
from precis.recipes.run_plan import ProphetNetShape, ZCodePPShape
from precis.training.training_settings import TrainSettings
from precis_text.config import Settings, nearest
from precis_text.errors import UserError

PreTrainingObjectives = ReplacedTokens | SpansAlone | MassSpans
"""The objectives that a run may name; add a new one here."""


@dataclass(frozen=True, kw_only=True)
class PreTrainRun(Settings):
    """The settings of a pre-training run, apart from its corpora.

    Attributes:
        model: shape of a new model; the corpus's tokenizer determines `vocab_size`.
        train: the loop's settings.
        batch_size: blocks per step, over all processes; times `train.gradient_accumulation`, which is 1 in every
            recipe.
        rows_at_once: the most blocks that one process computes at a time: a larger batch is split into micro-batches
            of the same step (gradient accumulation). If None, its whole share of `batch_size`.
        block_length: tokens in a block, including [CLS] and [SEP].
        corruption: how text is corrupted.
        objective: the training objective.
        validation_blocks: held-out blocks to measure at each validation.
        gradient_checkpointing: keep only a layer's input and recompute the rest: less memory, more time.
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
        longest = self.model.longest_source
        if longest is not None and self.block_length > longest:
            raise UserError(
                f"block_length={self.block_length}: this ProphetNet has positions for {longest} tokens; use shorter "
                "blocks or raise model.max_position_embeddings"
            )
        family, trained = CONFIGS[type(self.model)].model_type, self.objective.trains.config_class.model_type
        if family != trained:
            raise UserError(
                f"{self.name}: {self.objective.title} train a {trained}, but this recipe's model is a {family}; choose "
                "another --recipe"
            )
        self.objective.check(self.corruption)


def in_passes(run: PreTrainRun, processes: int) -> PreTrainRun:
    """Split steps into micro-batches that the processes can hold: fewer rows per batch, more batches per step.

    Raises:
        UserError: the batch cannot be divided evenly.
    """
    if run.rows_at_once is None:
        return run
    most = run.rows_at_once * processes
    if run.batch_size <= most:
        return run
    sizes = [size for size in range(processes, most + 1) if run.batch_size % size == 0]
    if not sizes:
        raise UserError(
            f"batch_size={run.batch_size} cannot be split into equal parts of {processes} to {most} blocks, which "
            f"{processes} processes with rows_at_once={run.rows_at_once} need; use a batch_size with more divisors"
        )
    passes = run.batch_size // sizes[-1]
    train = replace(run.train, gradient_accumulation=passes * run.train.gradient_accumulation)
    return replace(run, batch_size=sizes[-1], train=train)


def pretraining_run(name: str) -> PreTrainRun:
    """Return a pre-training run; raise `UserError`, which suggests the nearest names, if `name` is unknown."""
    if name not in PRETRAINING:
        raise UserError(f"unknown pre-training recipe {name!r}{nearest(name, PRETRAINING)}")
    values = record("pretraining", name)
    train = {"save_every": 1000, "log_every": 20, **values["train"]}
    model = recipe(name).to_dict()["model"]
    return PreTrainRun.from_dict({**values, "model": model, "train": train})
