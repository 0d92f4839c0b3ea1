"""Results of the encoder-decoders: outputs, masks of targets, and the loss that the models compute themselves."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput

from precis.models.family import FamilyConfig
from precis.nn.attention_weights import ByLayer, in_order
from precis.nn.streams import attenuated
from precis.nn.vocabulary_scores import VocabularyScores
from precis_text.errors import UserError

IGNORE_LABEL = -100


@dataclass
class FutureStatesOutput(Seq2SeqModelOutput):
    """Hidden states of the decoder; those of the predicting streams are None unless requested.

    Attributes:
        future_states: (b n t d) the last hidden states of the streams.
        decoder_ngram_attentions: (b n h t j+1) per layer, the weights of their self-attentions; each state's own key
            comes last.
        ngram_cross_attentions: (b n h t s) per layer.
    """

    future_states: Tensor | None = None
    decoder_ngram_attentions: tuple[Tensor, ...] | None = None
    ngram_cross_attentions: tuple[Tensor, ...] | None = None


@dataclass
class FutureTokensOutput(Seq2SeqLMOutput):
    """Logits of the next token as `logits` (b t v), and of the predicting streams at the places that they predict.

    Attributes:
        future_logits: (b n t v) of the model's `future_streams`, in order: stream k at place i predicts token i
            from the tokens before i - k. Its first k places are guesses from the start token only. None unless
            requested.
        scores: (b n t v) of stream 0 and the predicting streams; replaces logits with `make_logits=False`.
        decoder_ngram_attentions, ngram_cross_attentions: see `FutureStatesOutput`.
    """

    future_logits: Tensor | None = None
    scores: VocabularyScores | None = None
    decoder_ngram_attentions: tuple[Tensor, ...] | None = None
    ngram_cross_attentions: tuple[Tensor, ...] | None = None


def predicting_states(output: FutureStatesOutput, config: FamilyConfig) -> Float[Tensor, "b n t d"]:
    """Return the states from which the head predicts: stream 0, and the predicting streams that were computed."""
    future = output.future_states
    if config.future_streams.start == 0:
        assert future is not None
        return future
    main = output.last_hidden_state[:, None]
    return main if future is None else torch.cat([main, future], dim=1)


def chosen(config: PreTrainedConfig, name: str, given: bool | None) -> bool:
    """Return the option of a call, or the configuration's value if None."""
    return bool(getattr(config, name)) if given is None else given


def shifted_right(labels: Int[Tensor, "b t"], *, start: int | None, padding: int) -> Int[Tensor, "b t"]:
    """Shift labels behind the start token; ignored positions become padding."""
    shifted = F.pad(labels[:, :-1], (1, 0), value=start)
    return shifted.masked_fill(shifted == IGNORE_LABEL, padding)


def as_output(encoded: BaseModelOutput | tuple[Tensor, ...] | list[Tensor]) -> BaseModelOutput:
    """Return the output of an encoder; a caller may have stored it as a tuple."""
    return BaseModelOutput(*encoded) if isinstance(encoded, tuple | list) else encoded


def new_cache(config: PreTrainedConfig) -> EncoderDecoderCache:
    """Return an empty cache that grows."""
    return EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))


def target_mask(mask: Tensor | None) -> Tensor | None:
    """Convert a mask of targets to a boolean (b 1 t|1 j).

    Args:
        mask: (b j) of real tokens or (b 1 t j); boolean, 0/1, or additive. An additive mask is 0 or less.
    """
    if mask is None:
        return None
    if mask.dim() == 4:
        if not mask.is_floating_point():
            return mask.bool()
        # 0 and 1, or 0 and less: only the first kind has values above 0
        return torch.where((mask > 0).any(), mask != 0, mask >= 0)
    return mask.bool()[:, None, None, :]


def future_loss(
    logits: Sequence[Float[Tensor, "b t v"]],
    labels: Int[Tensor, "b t"],
    *,
    gamma: float,
    items: Tensor | int | None,
) -> Float[Tensor, ""]:
    """Compute the future n-gram loss (ProphetNet Eqs. 3, 10, 11) of streams 0, 1, ..., over `items` or real targets.
    `precis finetune` uses `precis.objectives.future_tokens` instead, which can also smooth labels.
    """
    total = torch.zeros((), device=labels.device)
    for stream, (weight, scores) in enumerate(zip(attenuated(len(logits), gamma), logits, strict=True)):
        total = total + weight * F.cross_entropy(
            scores[:, stream:].float().flatten(0, 1),
            labels[:, stream:].flatten(),
            ignore_index=IGNORE_LABEL,
            reduction="sum",
        )
    return total / ((labels != IGNORE_LABEL).sum() if items is None else items)


def by_stream(weights: ByLayer, streams: int) -> tuple[Tensor, ...] | None:
    """Reshape weights of predicting states from (b h n*t j) per layer to (b n h t j); None if there are none."""
    made = in_order(weights)
    return None if made is None else tuple(w.unflatten(-2, (streams, -1)).movedim(2, 1) for w in made)


def refuse_a_loss_elsewhere(items: Tensor | int | None, all_streams: bool | None) -> None:
    """Refuse a Trainer that computes a loss from `logits` only. It removes the labels, but still passes the number of
    targets.

    Raises:
        UserError: if it does so and `all_streams` is not set.
    """
    if items is not None and all_streams is None:
        raise UserError(
            "num_items_in_batch without labels: the Trainer computes the loss itself (label_smoothing_factor or "
            "compute_loss_func), and the predicting streams would learn nothing; omit both (`precis finetune` "
            "smooths the labels of every stream), or pass all_streams=True for your own loss on future_logits"
        )
