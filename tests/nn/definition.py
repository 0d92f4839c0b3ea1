"""Attention by its definition: all scores, softmax, values."""

import torch


def attention_weights(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    scores: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    scale: float = 1.0,
) -> torch.Tensor:
    """Softmax of scale * q.k + scores over the keys that the mask shows."""
    total = (q * scale) @ k.transpose(-1, -2)
    if scores is not None:
        total = total + scores
    if mask is not None:
        total = total.masked_fill(~mask, torch.finfo(total.dtype).min)
    return torch.softmax(total, -1)
