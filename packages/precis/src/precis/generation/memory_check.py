"""Estimates whether an input fits in memory, before the model encodes it.

Encoders of transformers store the scores of every pair of positions for each head: 38,000 tokens and 8 heads take 43
GiB a layer. The system kills a process that allocates too much without a message, so precis estimates the need first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedModel

from precis.models.family import FamilyConfig
from precis_text.errors import UserError

_HELD = 3  # scores, weights and the position table are in memory at the same time
_LINEAR = ("led", "longt5", "bigbird_pegasus", "pegasus_x")  # model types with windowed attention
_CHEAP = 2048  # tokens that need no check
_ADVICE = "use --long chunk or a smaller --max-source or --batch-size"


def refuse_too_much(model: PreTrainedModel, *, rows: int, length: int) -> None:
    """Raise `UserError` if a batch of `rows` inputs of `length` tokens needs more memory than is free."""
    if length <= _CHEAP:
        return
    need, free = scores_bytes(model, rows=rows, length=length), free_bytes(model.device)
    if free is not None and need > free:
        raise UserError(
            f"attention over an input of {length:,} tokens needs about {need / 2**30:.1f} GiB of memory and only "
            f"{free / 2**30:.1f} GiB are free; {_ADVICE}"
        )


def scores_bytes(model: PreTrainedModel, *, rows: int, length: int) -> int:
    """Return the bytes that one encoder layer needs for the scores of all pairs of positions.

    They are 0 for models with windowed attention, and for models of precis, which compute their scores in tiles.
    """
    config = model.config
    if isinstance(config, FamilyConfig) or config.model_type in _LINEAR:
        return 0
    heads = getattr(config, "encoder_attention_heads", None) or getattr(config, "num_heads", None) or 1
    return _HELD * rows * heads * length**2 * (4 if model.dtype is torch.float32 else 2)


def free_bytes(device: torch.device) -> int | None:
    """Return the bytes that the process can still allocate; None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    known = [found for found in (_free_of_machine(), _free_of_group()) if found is not None]
    return min(known, default=None)


@contextmanager
def too_much_is_one_line(*, rows: int, length: int) -> Iterator[None]:
    """Turn torch's out-of-memory errors into a `UserError`."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(error):
            batch = "an input" if rows == 1 else f"a batch of {rows} inputs"
            raise UserError(f"not enough memory for {batch} of {length:,} tokens; {_ADVICE}") from None
        raise


def _free_of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _free_of_group() -> int | None:
    """Return the bytes that the container can still allocate; None without a limit."""
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return max(0, limit - used)
