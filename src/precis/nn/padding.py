"""Masks, and what the host knows of a batch's padding, so that no pass has to ask a GPU for it and wait.

A mask lies on the device; whether it hides anything, and where, decides what is computed at all, and that is decided
on the host. Whoever made the batch knows the lengths of its rows. Without them the mask is copied back, once a pass.

Masks are boolean, True = may attend, and combined with `&`; their shapes broadcast to (b h i j).

Where a pass is traced (torch.compile, torch.export) nothing is looked at: the program has to hold for every mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
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


def host_mask(
    valid: Bool[Tensor, "b s"], *, padded: bool | None = None, lengths: Sequence[int] | None = None
) -> NDArray[np.bool_] | None:
    """Return `valid` in the host's memory, or None if all of it is True.

    It is made from what is known, else copied from the device, which waits for a GPU.

    Args:
        padded: if False, all of it is True.
        lengths: real tokens of each row, from its first position on.

    Raises:
        ValueError: there is not one length for each row, or one is longer than the row.
    """
    if padded is False:
        return None
    if lengths is None:
        seen: NDArray[np.bool_] = valid.cpu().numpy()
        return None if seen.all() else seen
    rows, width = valid.shape
    if len(lengths) != rows or max(lengths, default=0) > width:
        raise ValueError(f"lengths={list(lengths)} do not fit a batch of {rows} rows of {width}")
    if not is_padded(width, lengths):
        return None
    return np.arange(width) < np.asarray(lengths, dtype=np.int64)[:, None]


def is_padded(width: int, lengths: Sequence[int] | None) -> bool | None:
    """Whether a row is shorter than the batch is wide; None if the lengths are not known."""
    return None if lengths is None else min(lengths, default=width) < width


def mask_if_padded(valid: Bool[Tensor, "b s"] | None, padded: bool | None) -> Bool[Tensor, "b 1 1 s"] | None:
    """Return the mask of padded keys, or None if it would hide nothing: fused kernels are faster without one.

    Args:
        padded: whether some of `valid` is False; if None, it is looked at, which waits for a GPU. A traced pass looks
            at nothing and keeps the mask.
    """
    if valid is None or padded is False:
        return None
    if padded is None and not is_traced() and bool(valid.all()):
        return None
    return padding_mask(valid)


def is_traced() -> bool:
    """Whether torch.compile or torch.export traces the pass, in which a mask has no values to look at."""
    return torch.compiler.is_compiling()


def sent(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy a small array to the device without waiting for the work that is queued there."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


@final
@dataclass(frozen=True)
class Documents:
    """Where each document lies among the packed tokens; what fills a group's row up counts as a document of its own.

    Args:
        bounds: int32: the start of each, then the end of the last.
        longest: tokens of the longest.
    """

    bounds: Int[Tensor, " s"]
    longest: int
