"""Future n-gram prediction: each place predicts the next token and those after it (ProphetNet Eqs. 3, 10 and 11).

    L = sum over streams k of a_k * (sum over the places i >= k of -log p(y_i | y_<i-k, x))

Stream 0 is teacher forcing; with one stream the loss equals that of `SequenceToSequence`. The first k places of stream
k see only the start token and are left out, as in Eq. 3. The released code leaves them out in pre-training and counts
them in fine-tuning. We follow the paper, since drafting never uses these places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from precis.data.batches.corruption import IGNORE
from precis.nn.streams import attenuated
from precis.nn.vocabulary_scores import VocabularyScores
from precis.objectives.losses import Loss, TokenLosses, token_losses
from precis.objectives.sequence_to_sequence import PairBatch, source_facts, unwrapped
from precis_text.config import Settings
from precis_text.errors import UserError

if TYPE_CHECKING:  # importing batches imports transformers
    from precis.data.batches.pretraining_batches import MassBatch


@dataclass(frozen=True, kw_only=True)
class Attenuated(Settings):
    """Weights gamma^k, normalised to sum to one (Eq. 10); the paper takes 1.0 for 2 streams and 0.5 for 3. With 0
    only the next token counts.
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.gamma <= 1.0:
            raise UserError(f"gamma={self.gamma} is outside [0, 1]; the paper takes 1.0 and 0.5")

    def of(self, streams: int) -> list[float]:
        """Return the weights of the given number of streams."""
        return attenuated(streams, self.gamma)


@dataclass(frozen=True, kw_only=True)
class Alphas(Settings):
    """The weights alpha_n of Eq. 3, given one by one; they need not sum to one."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or min(self.values) < 0.0 or not self.values[0] > 0.0:
            raise UserError(f"values={self.values}: give weights of 0 or more, the first above 0")

    def of(self, streams: int) -> list[float]:
        """Return the weights of the given number of streams; raise `UserError` if the number of weights differs."""
        if len(self.values) != streams:
            raise UserError(
                f"values={self.values}: the model predicts {streams} tokens at a place; give {streams} weights"
            )
        return [*self.values]


@dataclass(frozen=True, kw_only=True)
class FutureTokens(Settings):
    """The loss of a model with predicting streams (`ProphetNetForConditionalGeneration`, or a Z-Code++ with
    `future_tokens`) on pairs.

    Attributes:
        weights: weights of the streams; if None, the gamma of the model's configuration determines them.

    Parts: ``nll`` and ``accuracy`` of the next token, comparable with teacher forcing, and ``nll_1``, ``accuracy_1``,
    ... for the streams that predict later tokens.
    """

    label_smoothing: float = 0.1
    weights: Attenuated | Alphas | None = None

    def __call__(self, model: nn.Module, batch: PairBatch) -> Loss:
        """Return the loss of one batch, summed over its real targets."""
        start = unwrapped(model).prepare_decoder_input_ids_from_labels(batch.labels)
        ranks = torch.arange(batch.labels.shape[1], device=batch.labels.device)[None]
        return self._loss(model, batch, ranks, {"decoder_input_ids": start})

    def of_spans(self, model: nn.Module, batch: MassBatch) -> Loss:
        """Return the summed loss for a target of spans: no stream predicts beyond the end of its span (section 2.5)."""
        target = {
            "decoder_input_ids": batch.decoder_input_ids,
            "decoder_position_ids": batch.decoder_position_ids,
        }
        return self._loss(model, batch, batch.ranks, target)

    def _loss(self, model: nn.Module, batch: PairBatch, ranks: Tensor, target: dict[str, Tensor]) -> Loss:
        output = model(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, **target, **source_facts(batch),
            all_streams=True, make_logits=False, use_cache=False,
        )  # fmt: skip
        scores: VocabularyScores = output.scores  # (b s t v)
        targets = at_streams(batch.labels, ranks, scores.states.shape[1])
        own = Attenuated(gamma=unwrapped(model).config.attenuation) if self.weights is None else self.weights
        shares = own.of(targets.shape[1])
        weights = stream_weights(targets, shares) if len(shares) > 1 else None
        losses = token_losses(scores, targets, weights=weights, smoothing=self.label_smoothing)
        parts, counts = _by_stream(losses, targets)
        return Loss(
            total=losses.total,
            num_targets=counts["nll"],
            parts=parts,
            counts=counts,
            num_tokens=batch.attention_mask.sum() + counts["nll"],
        )


def at_streams(labels: Tensor, ranks: Tensor, streams: int) -> Tensor:
    """Return (b t) labels as (b s t) targets; stream k ignores the first k places, which see only the start token.

    Args:
        ranks: (b t) or (1 t), the position of each target in its text or span.
    """
    early = ranks[:, None] < torch.arange(streams, device=ranks.device)[:, None]
    return labels[:, None].masked_fill(early, IGNORE)


def stream_weights(targets: Tensor, shares: Sequence[float | Tensor]) -> Tensor:
    """Return the weight of each target (b s t) from one share per stream: a number, or (b 1)."""
    weights = torch.empty_like(targets, dtype=torch.float32)
    for stream, share in enumerate(shares):  # a tensor of shares would make the host wait for a GPU
        weights[:, stream] = share
    return weights


def _by_stream(losses: TokenLosses, targets: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parts and their counts; names of the next token are plain, those of stream k end in its number."""
    parts: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    sums = {"nll": losses.nll.sum((0, 2)), "accuracy": losses.hits.sum((0, 2)).to(losses.total.dtype)}
    found = (targets != IGNORE).sum((0, 2))  # (s)
    for stream in range(targets.shape[1]):
        for part, values in sums.items():
            name = f"{part}_{stream}" if stream else part
            parts[name], counts[name] = values[stream], found[stream]
    return parts, counts
