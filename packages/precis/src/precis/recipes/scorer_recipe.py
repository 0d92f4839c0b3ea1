"""The plan for training a unit scorer on top of a frozen encoder."""

from __future__ import annotations

from dataclasses import dataclass, field

from precis.recipes.run_plan import native_precision
from precis.training.training_settings import TrainSettings
from precis_text.config import Settings
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ScorerShape(Settings):
    """The scorer's own sizes; see `precis.models.unit_scorer.UnitScorerShape`."""

    width: int = 256
    layers: int = 2
    heads: int = 4
    dropout: float = 0.2


@dataclass(frozen=True, kw_only=True)
class ExtractPlan(Settings):
    """The settings for training a scorer.

    Attributes:
        train: the loop's settings; the encoder reads documents in the same precision.
        max_source: the most tokens of a document to read in training; truncated documents are counted.
        batch_units: padded units in a batch.
        length_weight: see `precis.objectives.classification.UnitChoice`.
    """

    name: str = "extract"
    scorer: ScorerShape = field(default_factory=ScorerShape)
    train: TrainSettings = field(
        default_factory=lambda: TrainSettings(
            epochs=6,
            learning_rate=5e-4,
            warmup_steps=100,
            weight_decay=0.05,
            precision=native_precision(),
            log_every=50,
        )
    )
    max_source: int = 4096
    batch_units: int = 2048
    length_weight: float = 0.2

    def __post_init__(self) -> None:
        for name, least in {"max_source": 32, "batch_units": 64}.items():
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)} is too small; it must be at least {least}")
