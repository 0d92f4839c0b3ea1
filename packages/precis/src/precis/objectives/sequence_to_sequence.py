"""Teacher-forced training of an encoder-decoder on pairs.

Our own models skip the logits on request. Models of transformers always compute them. Where logits would be large, the
head gets no rows, and its input states are recorded. This works for the listed families, which only add a constant to
the logits. Every other model computes its logits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from precis.nn.vocabulary_scores import VocabularyScores, rows_at_once
from precis.objectives.losses import Loss, smoothed_cross_entropy
from precis_text.config import Settings

#: Families by `model_type` whose `forward` ends with the logits, `lm_head(states)`.
_HEAD_IS_LAST = frozenset({"longt5", "m2m_100", "mt5", "pegasus_x", "switch_transformers", "t5", "umt5"})
#: The same, with the buffer `final_logits_bias` (1 v) added.
_BIAS_FOLLOWS = frozenset(
    {"bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "led", "marian", "mbart", "mvp", "pegasus", "plbart"}
)  # fmt: skip


@runtime_checkable
class PairBatch(Protocol):
    """The tensors of a batch of pairs: see `precis.data.batches.length_buckets.Batch`."""

    @property
    def input_ids(self) -> Tensor: ...
    @property
    def attention_mask(self) -> Tensor: ...
    @property
    def labels(self) -> Tensor: ...


def source_facts(batch: PairBatch) -> dict[str, Any]:
    """Return the source arguments other than ids and mask: segments, and lengths known on the host."""
    lengths: tuple[int, ...] | None = getattr(batch, "source_lengths", None)
    return {**segments_of(batch), **({} if lengths is None else {"source_lengths": lengths})}


def segments_of(batch: PairBatch) -> dict[str, Tensor]:
    """Return the source's segments as an argument, for a blocked prefix; empty if segments are equal parts."""
    found: Tensor | None = getattr(batch, "source_segments", None)
    return {} if found is None else {"source_segments": found}


def unwrapped(model: nn.Module) -> Any:
    """Return the model itself, without the wrapper for several processes."""
    return model.module if isinstance(model, DistributedDataParallel) else model


@dataclass(frozen=True, kw_only=True)
class SequenceToSequence(Settings):
    """Predict each target token from the document and the target tokens before it.

    The model does not receive the labels, since its own loss is a mean without smoothing. Its
    ``prepare_decoder_input_ids_from_labels`` shifts them to decoder inputs, so every model keeps its own
    start token.
    """

    label_smoothing: float = 0.1

    def __call__(self, model: nn.Module, batch: PairBatch) -> Loss:
        """Return the summed loss of one batch, with the parts of `smoothed_cross_entropy`."""
        owner = unwrapped(model)
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


def scores_of(
    model: nn.Module, owner: Any, inputs: Mapping[str, Any], *, targets: int
) -> VocabularyScores | Tensor:
    """Compute the scores (b t v) of each target: logits, or, if these would be large, the states and table.

    Args:
        model: the model to call, with its wrapper.
        owner: the encoder-decoder itself.
        inputs: arguments of its `forward`.
        targets: number of targets, b * t.
    """
    if getattr(owner, "leaves_logits", False):
        output: VocabularyScores = model(**inputs, make_logits=False).scores
        states, made = output.states[:, 0], output.made
        return VocabularyScores(
            states=states, table=output.table, bias=output.bias, made=None if made is None else made[:, 0]
        )
    head = _last_linear(model, owner)
    if head is None or targets <= rows_at_once(head.out_features):
        logits: Tensor = model(**inputs).logits
        return logits
    return _without_logits(model, owner, head, inputs)


def _last_linear(model: nn.Module, owner: Any) -> nn.Linear | None:
    """Return the head, if its output equals the logits up to a constant. Return None for other families, and for a
    compiled model, which would ignore a hook added later.
    """
    if owner.config.model_type not in _HEAD_IS_LAST | _BIAS_FOLLOWS:
        return None
    if any(is_compiled(module) for module in (model, owner)):
        return None
    head = owner.get_output_embeddings()
    return head if type(head) is nn.Linear else None  # a wrapped head may do more than multiply


def is_compiled(module: Any) -> bool:
    """Return whether torch compiles a module as a whole, so that hooks added later do nothing."""
    return isinstance(module, torch._dynamo.OptimizedModule) or module._compiled_call_impl is not None


def _without_logits(
    model: nn.Module, owner: Any, head: nn.Linear, inputs: Mapping[str, Any]
) -> VocabularyScores:
    kept: list[VocabularyScores] = []

    def keep(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # Within the model's forward a sharded table is whole.
        bias: Tensor | None = head.bias
        if owner.config.model_type in _BIAS_FOLLOWS:
            constant: Tensor = owner.final_logits_bias.flatten()
            bias = constant if bias is None else bias + constant
        kept.append(VocabularyScores(states=given[0], table=head.weight, bias=bias))
        return (given[0][:, :0],)

    handle = head.register_forward_pre_hook(keep)
    try:
        model(**inputs)
    finally:
        handle.remove()
    (scores,) = kept
    return scores
