"""What the encoder-decoders of precis have in common besides their parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput

from precis.errors import UserError
from precis.nn.attention_weights import ByLayer, in_order
from precis.nn.streams import attenuated
from precis.nn.vocabulary_scores import VocabularyScores

IGNORE_LABEL = -100


@dataclass
class FutureStatesOutput(Seq2SeqModelOutput):
    """What the predicting streams did beside the main one; None: they were not asked for.

    Attributes:
        future_states: (b n t d) their last states.
        decoder_ngram_attentions: by layer (b n h t j+1), the weights of their self-attentions; each state's own key
            comes last.
        ngram_cross_attentions: by layer (b n h t s).
    """

    future_states: Tensor | None = None
    decoder_ngram_attentions: tuple[Tensor, ...] | None = None
    ngram_cross_attentions: tuple[Tensor, ...] | None = None


@dataclass
class FutureTokensOutput(Seq2SeqLMOutput):
    """Logits of the next token as `logits` (b t v), and of the predicting streams at the places they predict.

    Attributes:
        future_logits: (b n t v) of the model's `future_streams`, in their order: stream k at place i predicts token i
            from the tokens before i - k. Its first k places are guesses from the start token alone. None where they
            were not asked for.
        scores: (b s t v) of stream 0 and the predicting streams, in place of logits where these were not to be made.
        decoder_ngram_attentions, ngram_cross_attentions: see `FutureStatesOutput`.
    """

    future_logits: Tensor | None = None
    scores: VocabularyScores | None = None
    decoder_ngram_attentions: tuple[Tensor, ...] | None = None
    ngram_cross_attentions: tuple[Tensor, ...] | None = None


class OpensWholeModels:
    """For an encoder by itself, whose weights are also found in the folder of a whole model."""

    _keys_to_ignore_on_load_unexpected = (
        r"^(model\.)?decoder\.",
        r"^lm_head\.",
        r"^pooler\.",
        r"^classifier\.",
    )

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As of transformers; what else a whole model has is left out."""
        kwargs.setdefault("key_mapping", {r"^model\.encoder\.": "", r"^encoder\.": ""})
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)  # type: ignore[misc]


class TiedHead:
    """What every model with `model` (encoder and decoder) and a language-model head `lm_head` answers alike.

    Attributes:
        leaves_logits: `forward` takes `make_logits=False` and then gives `scores`.
    """

    leaves_logits = True
    config: PreTrainedConfig
    model: Any
    lm_head: nn.Linear

    def get_input_embeddings(self) -> nn.Module:
        return self.model.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.model.set_input_embeddings(value)

    def get_output_embeddings(self) -> nn.Linear:
        return self.lm_head

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.lm_head = value

    def get_encoder(self, modality: str | None = None) -> Any:
        return self.model.encoder

    def get_decoder(self) -> Any:
        return self.model.decoder

    def prepare_decoder_input_ids_from_labels(self, labels: Int[Tensor, "b t"]) -> Int[Tensor, "b t"]:
        """Labels shifted right behind the start token; ignored positions become padding."""
        start = self.config.decoder_start_token_id
        return shifted_right(labels, start=start, padding=self.config.pad_token_id or 0)


def shifted_right(labels: Int[Tensor, "b t"], *, start: int | None, padding: int) -> Int[Tensor, "b t"]:
    """Labels behind the start token; ignored positions become padding."""
    shifted = F.pad(labels[:, :-1], (1, 0), value=start)
    return shifted.masked_fill(shifted == IGNORE_LABEL, padding)


def as_output(encoded: BaseModelOutput | tuple[Tensor, ...]) -> BaseModelOutput:
    """What an encoder gave, or what a caller kept of it as a tuple."""
    return BaseModelOutput(*encoded) if isinstance(encoded, tuple | list) else encoded


def new_cache(config: PreTrainedConfig) -> EncoderDecoderCache:
    """An empty cache that grows."""
    return EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))


def target_mask(mask: Tensor | None) -> Tensor | None:
    """(b j) of real tokens or (b 1 t j), boolean, 0/1 or additive, as a boolean (b 1 t|1 j). An additive mask holds
    nothing above 0.
    """
    if mask is None:
        return None
    if mask.dim() == 4:
        if not mask.is_floating_point():
            return mask.bool()
        # 0 and 1, or 0 and less: only the first kind holds something above 0
        return torch.where((mask > 0).any(), mask != 0, mask >= 0)
    return mask.bool()[:, None, None, :]


def future_loss(
    logits: Sequence[Float[Tensor, "b t v"]],
    labels: Int[Tensor, "b t"],
    *,
    gamma: float,
    items: Tensor | int | None,
) -> Float[Tensor, ""]:
    """Future n-gram loss (ProphetNet Eqs. 3, 10, 11), divided by `items` or the real targets; `logits` are those of
    streams 0, 1, ... See `precis.objectives.future_tokens`, which smooths labels too.
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
    """Weights of predicting states (b h n*t j), by layer, as (b n h t j); None if there are none."""
    made = in_order(weights)
    return None if made is None else tuple(w.unflatten(-2, (streams, -1)).movedim(2, 1) for w in made)


def refuse_a_loss_elsewhere(items: Tensor | int | None, all_streams: bool | None) -> None:
    """A Trainer that takes the labels away computes a loss of `logits` alone, but still says how many targets there
    are.

    Raises:
        ValueError: it does that, and nobody has said whether the predicting streams are to be computed.
    """
    if items is not None and all_streams is None:
        raise UserError(
            "num_items_in_batch without labels: the Trainer computes the loss itself (label_smoothing_factor or "
            "compute_loss_func), and the predicting streams would learn nothing; leave both out (`precis finetune` "
            "smooths the labels of every stream), or say all_streams=True for a loss of your own on future_logits"
        )
