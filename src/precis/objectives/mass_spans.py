"""ProphetNet's pre-training (section 3.1): one span of every 64 tokens is hidden, and all streams predict in it."""

from dataclasses import dataclass
from typing import ClassVar, Unpack, final

from transformers import PreTrainedModel

from precis.data.batches.corruption import CorruptionIds
from precis.data.batches.pretraining_batches import Corruption, MassBatches, Rows
from precis.errors import UserError
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration
from precis.objectives.future_tokens import Alphas, FutureTokens
from precis.objectives.losses import BatchSource, Objective
from precis.objectives.pretraining import PreTrainingObjective, Share


@final
@dataclass(frozen=True, kw_only=True)
class MassSpans(PreTrainingObjective):
    """The decoder writes one hidden span of every `block` tokens; its streams predict no token beyond a span's end.

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
        """Only the share of hidden tokens is read."""
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
