"""Masks, and what the host knows about a batch's padding, so that a pass need not wait for a GPU.

A mask is on the device; the host decides from it which positions to compute. The producer of a batch
knows the lengths of its rows. Without them the mask is copied to the host, once per pass.

Masks are boolean, True = may attend, and combined with `&`; their shapes broadcast to (b h i j).

A traced pass (torch.compile, torch.export) reads no values: the program must work for every mask.
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
    """Return a mask that lets every query attend to the keys of real tokens."""
    return valid[:, None, None, :]


def causal_mask(
    query_length: int, key_length: int, *, first_query: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "1 1 i j"]:
    """Return a mask that lets query i, at position `first_query + i`, attend to keys up to its own position."""
    queries = torch.arange(query_length, device=device) + first_query
    keys = torch.arange(key_length, device=device)
    return (keys[None, :] <= queries[:, None])[None, None]


def host_mask(
    valid: Bool[Tensor, "b s"], *, padded: bool | None = None, lengths: Sequence[int] | None = None
) -> NDArray[np.bool_] | None:
    """Return `valid` in host memory, or None if all of it is True.

    It is computed from known lengths, else copied from the device, which waits for a GPU.

    Args:
        padded: if False, all of it is True.
        lengths: real tokens of each row, from its first position on.

    Raises:
        ValueError: the number of lengths differs from the number of rows, or a length exceeds the width.
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
    """Return whether a row is shorter than the batch's width; None if the lengths are unknown."""
    return None if lengths is None else min(lengths, default=width) < width


def mask_if_padded(valid: Bool[Tensor, "b s"] | None, padded: bool | None) -> Bool[Tensor, "b 1 1 s"] | None:
    """Return the mask of padded keys, or None if it would hide nothing: fused kernels are faster without one.

    Args:
        padded: whether some of `valid` is False; if None, it is read from the device, which waits for a GPU. A traced
            pass reads nothing and keeps the mask.
    """
    if valid is None or padded is False:
        return None
    if padded is None and not is_traced() and bool(valid.all()):
        return None
    return padding_mask(valid)


def is_traced() -> bool:
    """Return whether torch.compile or torch.export traces the pass, so that mask values are unavailable."""
    return torch.compiler.is_compiling()


def sent(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy a small array to the device without waiting for its queued work."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


@final
@dataclass(frozen=True)
class Documents:
    """The bounds of documents in the packed tokens; the filler of a group's row counts as a separate document.

    Args:
        bounds: int32: the start of each, then the end of the last.
        longest: tokens of the longest document.
    """

    bounds: Int[Tensor, " s"]
    longest: int
