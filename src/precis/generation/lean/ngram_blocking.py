"""No n-gram twice: the tokens that would repeat one are found for all rows at once."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def block_repeated_ngrams(
    scores: Float[Tensor, "b v"], written: Int[Tensor, "b t"], *, size: int
) -> Float[Tensor, "b v"]:
    """Set to minus infinity, in place, every token that would complete an n-gram that its row already has.

    The last `size - 1` tokens are held against every window of the row; where they match, the window's last token is
    forbidden. Only the t tokens of a row are touched, not the whole vocabulary.

    Args:
        size: n, 1 or more; with 1 no token occurs twice. The start token counts as a token, as in transformers.
    """
    length = written.shape[1]
    if length < size:
        return scores
    windows = written.unfold(1, size, 1)  # (b t-n+1 n)
    suffix = written[:, length + 1 - size :]
    repeats = (windows[..., :-1] == suffix[:, None]).all(-1)
    # amin: a token that ends two windows is forbidden if either of them matches
    limits = torch.where(repeats, -torch.inf, torch.inf).to(scores.dtype)
    return scores.scatter_reduce_(1, windows[..., -1], limits, "amin")


def block_repeated_ngrams_at(
    scores: Float[Tensor, "b v"], written: Int[Tensor, "b t"], place: Int[Tensor, " 1"], *, size: int
) -> Float[Tensor, "b v"]:
    """The same where only the device knows how many tokens are written; nothing here depends on it but numbers.

    Args:
        written: room for t tokens; those after `place` are any ids of the vocabulary.
        place: of the last token that is written.
    """
    length = written.shape[1]
    if length < size:
        return scores
    windows = written.unfold(1, size, 1)  # (b t-n+1 n)
    back = torch.arange(2 - size, 1, device=written.device)  # n-1 places, the last one is `place`
    suffix = written.index_select(1, (place + back).clamp_(min=0))
    ends = torch.arange(size - 1, length, device=written.device)
    repeats = (windows[..., :-1] == suffix[:, None]).all(-1) & (ends <= place)
    limits = torch.full(repeats.shape, torch.inf, dtype=scores.dtype, device=scores.device)
    return scores.scatter_reduce_(1, windows[..., -1], limits.masked_fill_(repeats, -torch.inf), "amin")
