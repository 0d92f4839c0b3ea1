"""Attention by its definition: all scores, softmax, values."""

import torch


def attention_weights(q, k, *, scores=None, mask=None, scale=1.0):
    """Softmax of scale * q.k + scores over the keys that the mask shows."""
    total = (q * scale) @ k.transpose(-1, -2)
    if scores is not None:
        total = total + scores
    if mask is not None:
        total = total.masked_fill(~mask, torch.finfo(total.dtype).min)
    return torch.softmax(total, -1)
