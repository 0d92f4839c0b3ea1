"""How many threads torch gets."""

from __future__ import annotations

import os

from precis_text.cores import default_threads

_DECIDED: set[int] = set()  # processes; a forked one has another number


def use_threads(count: int | None) -> None:
    """Limit torch to `count` threads; if None, to the default of this process.

    Torch does not see the quota of a container, or the other processes of a pool. The default applies once in a
    process, unless a number was given before. So `torch.set_num_threads` holds after a model is loaded.
    """
    if count is None and os.getpid() in _DECIDED:
        return
    _DECIDED.add(os.getpid())
    import torch

    torch.set_num_threads(min(default_threads(), torch.get_num_threads()) if count is None else count)
