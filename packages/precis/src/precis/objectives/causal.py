"""Teacher-forced training of a causal language model on pairs, with the loss on the summary only.

A row of a batch is a prompt, which contains the document, and its summary. Both are joined without padding between
them, so that the positions of the summary equal those at generation:

    prompt   p1 p2 p3 _      input   p1 p2 p3 s1 s2      labels   _ _ s1 s2 _
    summary  s1 s2           (the state of p3 predicts s1; `_` has loss 0)

The head scores only the states that predict the summary, since most positions belong to the prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from precis.data.batches.corruption import IGNORE
from precis.objectives.losses import Loss, smoothed_cross_entropy
from precis.objectives.sequence_to_sequence import PairBatch, is_compiled, unwrapped
from precis_text.config import Settings


@dataclass(frozen=True, kw_only=True)
class CausalSummary(Settings):
    """Predict each token of the summary from the prompt and the summary's tokens before it."""

    label_smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: PairBatch) -> Loss:
        """Return the summed loss of one batch, with the parts of `smoothed_cross_entropy`."""
        joined = join(batch)
        predicts = joined.next_tokens != IGNORE
        loss = smoothed_cross_entropy(
            _scores(model, joined, predicts),
            joined.next_tokens[predicts][None],
            smoothing=self.label_smoothing,
        )
        return replace(loss, num_tokens=joined.attention_mask.sum())


@dataclass(frozen=True)
class Joined:
    """Prompts with their summaries: b rows, n positions.

    Attributes:
        input_ids: (b n) long, the prompt, then the summary, then padding.
        attention_mask: (b n) long, 1 on prompt and summary.
        next_tokens: (b n) long, the token that each position predicts; `IGNORE` where it is not the summary's.
    """

    input_ids: Tensor
    attention_mask: Tensor
    next_tokens: Tensor


def join(batch: PairBatch) -> Joined:
    """Return each prompt with its summary directly after it.

    Raises:
        ValueError: if a prompt is empty, so that nothing predicts the summary's first token.
    """
    prompts, written = batch.attention_mask.sum(1), batch.labels != IGNORE
    if bool((prompts == 0).any()):
        raise ValueError("a prompt without tokens cannot predict a summary; give each row a prompt")
    total = prompts + written.sum(1)
    position = torch.arange(int(total.max()), device=total.device)[None]
    in_prompt, is_used = position < prompts[:, None], position < total[:, None]
    summary = _at(batch.labels, position - prompts[:, None])
    ids = torch.where(in_prompt, _at(batch.input_ids, position.expand_as(summary)), summary)
    following = _at(batch.labels, position - prompts[:, None] + 1)
    predicts = (position >= prompts[:, None] - 1) & (position < total[:, None] - 1)
    return Joined(torch.where(is_used, ids, 0), is_used.long(), torch.where(predicts, following, IGNORE))


def _at(rows: Tensor, columns: Tensor) -> Tensor:
    """Return the entries (b n) of rows (b m) at columns (b n); columns outside are clamped."""
    return rows.gather(1, columns.clamp(0, rows.shape[1] - 1))


def _scores(model: nn.Module, joined: Joined, predicts: Tensor) -> Tensor:
    """Return the logits (1 t v) of the positions that predict the summary."""
    owner = unwrapped(model)
    inputs = {"input_ids": joined.input_ids, "attention_mask": joined.attention_mask, "use_cache": False}
    if any(is_compiled(module) for module in (model, owner)):
        made: Tensor = model(**inputs).logits  # a compiled model ignores hooks
        return made[predicts][None]
    handle = owner.get_output_embeddings().register_forward_pre_hook(
        lambda _, given: (given[0][predicts][None],)
    )
    try:
        logits: Tensor = model(**inputs).logits
    finally:
        handle.remove()
    return logits
