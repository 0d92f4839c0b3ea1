"""The number of torch's threads, and the time that they wait awake for work."""

from __future__ import annotations

import os

_DECIDED: set[int] = set()  # processes; a forked one has another number

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # how long OpenMP's threads wait awake
_SPINS = "3000"  # docs/benchmarks/decoding.md: fewer are slower alone, more are slower beside other work


def bound_waiting() -> None:
    """Let the threads of OpenMP sleep soon when they lack work, unless the user says how they wait.

    GNU's OpenMP, which torch for Linux contains, lets a thread spin 300,000 times before it sleeps. If other processes
    use the same core, a spinning thread takes the time that the thread it waits for needs. A decoding step waits many
    times (`benchmarks.compare busy`). OpenMP reads the variable once, so this works only before torch is imported.
    """
    if not any(os.environ.get(name) for name in _WAITING):
        os.environ["GOMP_SPINCOUNT"] = _SPINS


def use_threads(count: int | None) -> None:
    """Limit torch to `count` threads; if None, to the default of this process.

    Torch does not see the quota of a container, or the other processes of a pool. The default applies once in a
    process, unless a number was given before. So `torch.set_num_threads` holds after a model is loaded.
    """
    if count is None and os.getpid() in _DECIDED:
        return
    _DECIDED.add(os.getpid())
    import torch

    from precis_text.cores import default_threads

    torch.set_num_threads(min(default_threads(), torch.get_num_threads()) if count is None else count)
