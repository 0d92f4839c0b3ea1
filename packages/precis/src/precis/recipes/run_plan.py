"""The plan of a run: the shape of a model, and the settings for training on pairs. Recipes provide the values."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Literal

from precis.training.training_settings import TrainSettings
from precis_text.config import Settings
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ZCodePPShape(Settings):
    """The settings of a `ZCodePPConfig` that a recipe determines; see that class for the names.

    `vocab_size` is the size of a new tokenizer; a given tokenizer brings its own.
    """

    vocab_size: int
    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    encoder_layers: int
    decoder_layers: int
    decoder_feed_forward: str = "relu"
    encoder_positions: str = "disentangled"
    position_buckets: int = 256
    max_relative_positions: int = 512
    future_tokens: int = 0
    attenuation: float = 1.0
    chunk_length: int | None = None
    global_layers: int = 1
    dropout: float = 0.1
    attention_dropout: float = 0.1

    def __post_init__(self) -> None:
        _check_shape(self, may_be_zero=("future_tokens", "global_layers"))

    @property
    def longest_source(self) -> int | None:
        """The most tokens that the encoder has positions for; if None, unlimited."""
        return None


@dataclass(frozen=True, kw_only=True)
class ProphetNetShape(Settings):
    """The settings of a `ProphetNetConfig` that a recipe determines; see that class for the names.

    `attenuation` also weights the streams in training.
    """

    vocab_size: int
    hidden_size: int
    encoder_layers: int
    decoder_layers: int
    encoder_attention_heads: int
    decoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_ffn_dim: int
    ngram: int = 2
    attenuation: float = 1.0
    max_position_embeddings: int = (
        514  # the released code's decoder table; its encoder table has one row fewer
    )
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    init_std: float = 0.02
    position_std: float | None = None

    def __post_init__(self) -> None:
        _check_shape(self)

    @property
    def longest_source(self) -> int | None:
        """The most tokens that the encoder has positions for; if None, unlimited."""
        return self.max_position_embeddings - 1


Shape = ZCodePPShape | ProphetNetShape


@dataclass(frozen=True, kw_only=True)
class Fusion(Settings):
    """The reading of a given Z-Code++: fusion-in-encoder (Z-Code++ 2.3), which adds no weight to a dense model.

    Attributes:
        chunk_length: tokens that a local layer sees together; if None, every layer sees the whole input.
        global_layers: number of last encoder layers that see the whole input.
    """

    chunk_length: int | None = 256
    global_layers: int = 1

    def __post_init__(self) -> None:
        if self.chunk_length is not None and self.chunk_length < 1:
            raise UserError(f"model.chunk_length={self.chunk_length} is too small; it must be at least 1")
        if self.global_layers < 0:
            raise UserError(f"model.global_layers={self.global_layers} is too small; it must be at least 0")


LONGEST_DENSE = 8192
"""The most tokens that a new plan reads with dense layers: arXiv and PubMed are longer, the other sets of Z-Code++'s
Table 2 are not, and the paper reads only these two by fusion-in-encoder."""


def _check_shape(shape: Shape, *, may_be_zero: tuple[str, ...] = ()) -> None:
    """Raise `UserError` for a count below 1, or a dropout outside [0, 1)."""
    for name, value in vars(shape).items():
        least = 0 if name in may_be_zero else 1
        if type(value) is int and value < least:
            raise UserError(f"model.{name}={value} is too small; it must be at least {least}")
        if name.endswith("dropout") and not 0.0 <= value < 1.0:
            raise UserError(f"model.{name}={value} is outside [0, 1)")


@dataclass(frozen=True, kw_only=True)
class RunPlan(Settings):
    """The settings of a training on pairs.

    Attributes:
        model: shape of a new model, or how a given Z-Code++ is to read; None if a given model stays as it is.
        train: the loop's settings.
        batch_size, batch_tokens: rows of a batch, or the most source and target tokens in it; one of the two.
        max_source, max_target: longest document and summary in tokens; longer ones are truncated and counted.
        label_smoothing: share of the target's probability that is spread over the vocabulary.
        stream_weights: the loss weight of each predicting stream, if the model has any: ProphetNet's alpha_n (Eq. 3),
            the next token's first; ``1,0`` is plain teacher forcing. If None, the model's `attenuation` decides.
        generation: the finished model's default decoding.
        generated_rows: number of dev rows to summarize at each validation (0: none, only the loss).
    """

    name: str
    model: ZCodePPShape | ProphetNetShape | Fusion | None
    train: TrainSettings
    batch_size: int | None = None
    batch_tokens: int | None = None
    max_source: int = 512
    max_target: int = 128
    label_smoothing: float = 0.1
    stream_weights: tuple[float, ...] | None = None
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    generated_rows: int = 200

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise UserError(
                f"give either batch_size or batch_tokens, not batch_size={self.batch_size} and "
                f"batch_tokens={self.batch_tokens}"
            )
        for name, least in {"max_source": 4, "max_target": 2, "generated_rows": 0}.items():
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)} is too small; it must be at least {least}")
        if not 0.0 <= self.label_smoothing < 1.0:
            raise UserError(f"label_smoothing={self.label_smoothing} is outside [0, 1)")
        if self.stream_weights is not None and not all(
            math.isfinite(weight) and weight >= 0 for weight in self.stream_weights
        ):
            raise UserError(
                f"stream_weights={self.stream_weights}: each must be a finite number of at least 0"
            )

    @property
    def shape(self) -> Shape:
        """The shape of a new model.

        Raises:
            UserError: the run is for a given model.
        """
        if self.model is None or isinstance(self.model, Fusion):
            raise UserError(f"{self.name}: needs an existing model; name it with --model")
        return self.model


PRECISION = "PRECIS_PRECISION"
"""The environment variable that overrides `native_precision`."""


def native_precision() -> Literal["bf16", "fp32"]:
    """Return bf16 if the hardware supports it natively (a recent GPU; a CPU with AVX512-BF16 or AMX), else fp32.

    `PRECIS_PRECISION=bf16` or `=fp32` in the environment overrides the detection.

    Raises:
        UserError: the variable names another precision.
    """
    import torch

    match os.environ.get(PRECISION, ""):
        case "bf16":
            return "bf16"
        case "fp32":
            return "fp32"
        case "":
            pass
        case other:
            raise UserError(f"{PRECISION}={other}: must be bf16 or fp32; unset it to detect the precision")
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    # Check both processor and oneDNN: oneDNN may be configured to use fewer instructions, and it also returns true
    # where bf16 is only converted.
    able = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    multiplied = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return "bf16" if able and multiplied else "fp32"


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
        length_weight: see `precis.objectives.encoder_heads.UnitChoice`.
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
