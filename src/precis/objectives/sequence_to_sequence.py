"""Teacher-forced training of an encoder-decoder on pairs."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from precis.config import Settings
from precis.objectives.head_inputs import scores_of
from precis.objectives.losses import Loss, smoothed_cross_entropy


class PairBatch(Protocol):
    """The tensors of a batch of pairs: see `precis.data.batches.bucketed.Batch`."""

    @property
    def input_ids(self) -> Tensor: ...
    @property
    def attention_mask(self) -> Tensor: ...
    @property
    def labels(self) -> Tensor: ...


def source_facts(batch: PairBatch) -> dict[str, Any]:
    """What a model is told of the source besides its ids and mask: segments, and lengths known on the host."""
    lengths: tuple[int, ...] | None = getattr(batch, "source_lengths", None)
    return {**segments_of(batch), **({} if lengths is None else {"source_lengths": lengths})}


def segments_of(batch: PairBatch) -> dict[str, Tensor]:
    """What a model with a blocked prefix is told of the source; nothing where its segments are equal parts."""
    found: Tensor | None = getattr(batch, "source_segments", None)
    return {} if found is None else {"source_segments": found}


@dataclass(frozen=True, kw_only=True)
class SequenceToSequence(Settings):
    """Predict each target token from the document and the target tokens before it.

    The labels are not given to the model, since its own loss is a mean without smoothing; they are shifted
    to decoder inputs by the model's ``prepare_decoder_input_ids_from_labels``, so every model keeps its own
    start token.
    """

    label_smoothing: float = 0.1

    def __call__(self, model: nn.Module, batch: PairBatch) -> Loss:
        """The summed loss of one batch, with the parts of `smoothed_cross_entropy`."""
        owner: Any = model.module if isinstance(model, DistributedDataParallel) else model
        inputs = {
            "input_ids": batch.input_ids,
            "attention_mask": batch.attention_mask,
            "decoder_input_ids": owner.prepare_decoder_input_ids_from_labels(batch.labels),
            "use_cache": False,
            **source_facts(batch),
        }
        scores = scores_of(model, owner, inputs, targets=batch.labels.numel())
        loss = smoothed_cross_entropy(scores, batch.labels, smoothing=self.label_smoothing)
        return replace(loss, num_tokens=batch.attention_mask.sum() + loss.num_targets)
