"""Pre-training objectives: each defines the model that it trains, its batches and its loss.

To add an objective, subclass `PreTrainingObjective` in a file of `precis.objectives`, and add the type to
`precis.recipes.pretraining_runs.PreTrainingObjectives`. The phase, its validation and the memory plan use only this
interface and know no objective by name.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Required, Self, TypedDict, Unpack, final

from transformers import PreTrainedModel

from precis.data.batches.corruption import CorruptionIds
from precis.data.batches.length_buckets import Batch
from precis.data.batches.pretraining_batches import Corruption, MassBatches, PreTrainingBatches, Rows
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.objectives.future_tokens import Alphas, FutureTokens
from precis.objectives.losses import BatchSource, InTurn, Objective
from precis_text.config import Settings
from precis_text.errors import UserError


class Share(TypedDict, total=False):
    """The share of one process: row `rank`, `rank + world_size`, ... in each `batch_size` of blocks."""

    batch_size: Required[int]
    rank: int
    world_size: int


@dataclass(frozen=True, kw_only=True)
class PreTrainingObjective(Settings, ABC):
    """A pre-training method. Its fields are the settings under `objective`.

    The methods that are not abstract suit an objective that trains only the plain encoder-decoder.

    Attributes:
        title: the objective's name in error messages.
        trains: class of the exported encoder-decoder.
        needs_sentinels: whether the tokenizer's sentinels mark hidden spans.
    """

    title: ClassVar[str]
    trains: ClassVar[type[PreTrainedModel]] = ZCodePPForConditionalGeneration
    needs_sentinels: ClassVar[bool] = True

    @abstractmethod
    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Return this process's share of the corrupted blocks."""

    @abstractmethod
    def loss(self) -> Objective | InTurn:
        """Return the training loss."""

    @abstractmethod
    def measure(self) -> Objective:
        """Return the validation loss: all losses at once, without smoothing."""

    def check(self, corruption: Corruption) -> None:
        """Raise `UserError` if a corruption setting that the batches would ignore is set."""

    def model(self, config: ZCodePPConfig | ProphetNetConfig, *, block_length: int) -> PreTrainedModel:
        """Build a new model for blocks of `block_length` tokens; raise `UserError` if its shape is impossible."""
        return self.trains(config)

    def around(self, plain: PreTrainedModel, *, block_length: int) -> PreTrainedModel:
        """Build the model to train around the given encoder-decoder."""
        return plain

    def resumed(self, folder: Path, *, block_length: int) -> PreTrainedModel | None:
        """Load the model that an earlier pre-training saved in `folder`, next to its export; None if it saves none.

        Raises:
            UserError: if its shape differs from the one that this objective requires.
        """
        return None

    def plain(self, model: PreTrainedModel) -> PreTrainedModel:
        """Return the encoder-decoder to export; if it is not `model` itself, `model` is saved next to it."""
        return model

    @property
    def own_layers(self) -> int:
        """Layers of the model other than those of its encoder and its decoder."""
        return 0

    def with_own_layers(self, count: int) -> Self:
        """Return the same objective with another number of `own_layers`."""
        return self


@final
@dataclass(frozen=True, kw_only=True)
class SpansAlone(PreTrainingObjective):
    """Span recovery without a generator: the ablation "without RTD", and the objective of T5 and PEGASUS."""

    title: ClassVar[str] = "spans behind sentinels"

    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Return pairs: the text without its spans, and the spans."""
        return _SpanBatches(PreTrainingBatches(rows, words, corruption=corruption, **share))

    def loss(self) -> Objective:
        """Return the decoder's cross-entropy, over all of its streams."""
        return FutureTokens(label_smoothing=0.0)

    def measure(self) -> Objective:
        """Return the decoder's cross-entropy, as in training."""
        return self.loss()


@dataclass(frozen=True)
class _SpanBatches:
    """The pairs of span recovery as a `BatchSource`."""

    whole: PreTrainingBatches

    @property
    def batches_per_epoch(self) -> int:
        return self.whole.batches_per_epoch

    def batch(self, step: int) -> Batch:
        return self.whole.span_batch(step)


@final
@dataclass(frozen=True, kw_only=True)
class MassSpans(PreTrainingObjective):
    """ProphetNet's pre-training (section 3.1): the decoder writes one hidden span of every `block` tokens.

    No stream predicts a token beyond its span's end.

    Attributes:
        block: tokens per hidden span; 64 in the paper.
        label_smoothing: label smoothing of every stream; 0.1 in the released scripts.
        stream_weights: weight of each stream's loss (alpha_n of Eq. 3); if None, `model.attenuation` decides.
    """

    title: ClassVar[str] = "MASS spans"
    trains: ClassVar[type[PreTrainedModel]] = ProphetNetForConditionalGeneration
    needs_sentinels: ClassVar[bool] = False

    block: int = 64
    label_smoothing: float = 0.1
    stream_weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.block < 1:
            raise UserError(f"objective.block={self.block}: use 1 or more; the paper uses 64")
        if not 0.0 <= self.label_smoothing < 1.0:
            raise UserError(f"objective.label_smoothing={self.label_smoothing} is outside [0, 1)")

    def check(self, corruption: Corruption) -> None:
        """Refuse settings that MASS does not read: all except the share of hidden tokens."""
        usual = Corruption()
        for name in ("masked", "mean_span", "unit"):
            value = getattr(corruption, name)
            if value != getattr(usual, name):
                raise UserError(
                    f"corruption.{name}={value}: MASS hides one span in every {self.block} tokens and reads only "
                    "corruption.recovered; leave it out"
                )

    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Return blocks with their spans hidden, and the spans with their positions in the text."""
        return MassBatches(rows, words, rate=corruption.recovered, block=self.block, **share)

    def loss(self) -> Objective:
        """Return the weighted losses of the streams (Eq. 3)."""
        weights = None if self.stream_weights is None else Alphas(values=self.stream_weights)
        return FutureTokens(label_smoothing=self.label_smoothing, weights=weights).of_spans

    def measure(self) -> Objective:
        """Return the losses of the streams without smoothing."""
        return FutureTokens(label_smoothing=0.0).of_spans
