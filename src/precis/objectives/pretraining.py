"""What pre-training learns: each objective says which model it trains, from which batches, by which loss.

A new objective is a subclass of `PreTrainingObjective` in a file of `precis.objectives`, and one more type in
`precis.recipes.pretraining_runs.PreTrainingObjectives`. The phase, its validation and the memory plan ask an objective
for what they need and know none of them by name.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Required, Self, TypedDict, Unpack, final

from transformers import PreTrainedModel

from precis.config import Settings
from precis.data.batches.bucketed import Batch
from precis.data.batches.corruption import CorruptionIds
from precis.data.batches.pretraining_batches import Corruption, MassBatches, PreTrainingBatches, Rows
from precis.errors import UserError
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration
from precis.models.zcodepp.config import ZCodePPConfig
from precis.models.zcodepp.model import ZCodePPForConditionalGeneration
from precis.objectives.future_tokens import Alphas, FutureTokens
from precis.objectives.losses import BatchSource, InTurn, Objective


class Share(TypedDict, total=False):
    """Which blocks a process takes: row `rank`, `rank + world_size`, ... of each `batch_size`."""

    batch_size: Required[int]
    rank: int
    world_size: int


@dataclass(frozen=True, kw_only=True)
class PreTrainingObjective(Settings, ABC):
    """One way of pre-training. Its fields are what a user may set under `objective`.

    The methods that are not abstract suit an objective that trains the plain encoder-decoder and nothing beside it.

    Attributes:
        title: what is learnt, as errors name it.
        trains: the encoder-decoder that is exported.
        needs_sentinels: whether hidden spans are marked by the tokenizer's sentinels.
    """

    title: ClassVar[str]
    trains: ClassVar[type[PreTrainedModel]] = ZCodePPForConditionalGeneration
    needs_sentinels: ClassVar[bool] = True

    @abstractmethod
    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Corrupted blocks, this process's share of them."""

    @abstractmethod
    def loss(self) -> Objective | InTurn:
        """What a training step minimises."""

    @abstractmethod
    def measure(self) -> Objective:
        """What validation measures: all losses at once, without smoothing."""

    def check(self, corruption: Corruption) -> None:
        """Refuse settings of the corruption that the batches would not read.

        Raises:
            UserError: if one of them is set.
        """

    def model(self, config: ZCodePPConfig | ProphetNetConfig, *, block_length: int) -> PreTrainedModel:
        """A new model to train on blocks of `block_length` tokens.

        Raises:
            UserError: if its shape is impossible.
        """
        return self.trains(config)

    def around(self, plain: PreTrainedModel, *, block_length: int) -> PreTrainedModel:
        """The model to train, with the given encoder-decoder in it."""
        return plain

    def resumed(self, folder: Path, *, block_length: int) -> PreTrainedModel | None:
        """The model that an earlier pre-training kept in `folder` beside its export; None if it keeps none.

        Raises:
            UserError: if it has another shape than this objective asks for.
        """
        return None

    def plain(self, model: PreTrainedModel) -> PreTrainedModel:
        """The encoder-decoder to export; if it is not `model` itself, `model` is kept beside it."""
        return model

    @property
    def own_layers(self) -> int:
        """Layers of the model besides those of its encoder and its decoder."""
        return 0

    def with_own_layers(self, count: int) -> Self:
        """The same objective with another number of `own_layers`."""
        return self


@final
@dataclass(frozen=True, kw_only=True)
class SpansAlone(PreTrainingObjective):
    """Span recovery without a generator: the ablation "without RTD", and what T5 and PEGASUS learn."""

    title: ClassVar[str] = "spans behind sentinels"

    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Pairs: the text without its spans, and the spans."""
        return _SpanBatches(PreTrainingBatches(rows, words, corruption=corruption, **share))

    def loss(self) -> Objective:
        """The decoder's cross-entropy, over its streams if it has several."""
        return FutureTokens(label_smoothing=0.0)

    def measure(self) -> Objective:
        """The decoder's cross-entropy, as in training."""
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

    Its streams predict no token beyond a span's end.

    Attributes:
        block: tokens that share a span; 64 in the paper.
        label_smoothing: of every stream; 0.1 in the released scripts.
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
            raise UserError(f"objective.block={self.block}: use 1 or more; the paper has 64")
        if not 0.0 <= self.label_smoothing < 1.0:
            raise UserError(f"objective.label_smoothing={self.label_smoothing} is outside [0, 1)")

    def check(self, corruption: Corruption) -> None:
        """Refuse settings that MASS does not read: all but the share of hidden tokens."""
        usual = Corruption()
        for name in ("masked", "mean_span", "unit"):
            value = getattr(corruption, name)
            if value != getattr(usual, name):
                raise UserError(
                    f"corruption.{name}={value}: MASS hides one span in every {self.block} tokens and reads "
                    "corruption.recovered alone; leave it out"
                )

    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Blocks with their spans hidden, and the spans with their places in the text."""
        return MassBatches(rows, words, rate=corruption.recovered, block=self.block, **share)

    def loss(self) -> Objective:
        """The streams' weighted losses (Eq. 3)."""
        weights = None if self.stream_weights is None else Alphas(values=self.stream_weights)
        return FutureTokens(label_smoothing=self.label_smoothing, weights=weights).of_spans

    def measure(self) -> Objective:
        """The streams' losses without smoothing."""
        return FutureTokens(label_smoothing=0.0).of_spans
