"""Attention masks. Boolean, True = may attend, combined with `&`; shapes broadcast to (b h i j)."""

import torch
from jaxtyping import Bool
from torch import Tensor


def padding_mask(valid: Bool[Tensor, "b j"]) -> Bool[Tensor, "b 1 1 j"]:
    """Every query may see the keys of real tokens."""
    return valid[:, None, None, :]


def causal_mask(
    query_length: int, key_length: int, *, first_query: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "1 1 i j"]:
    """Query i stands at position `first_query + i` and sees keys at its own position and before it."""
    queries = torch.arange(query_length, device=device) + first_query
    keys = torch.arange(key_length, device=device)
    return (keys[None, :] <= queries[:, None])[None, None]
