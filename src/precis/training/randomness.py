"""Randomness as a pure function of where we are, so that nothing about it needs to be saved.

Before each micro-batch, PyTorch's generators are seeded from (seed, step, rank, micro-batch). Resuming at a
step, or validating between two, cannot change what follows. Rejected: saving generator states, which are
many (one a device and process) and are disturbed by whatever else draws from them.
"""

import torch

_MASK = 2**64 - 1
VALIDATION = 2**32 - 1  # the micro-batch number that stands for validation


def mixed_seed(*numbers: int) -> int:
    """A 63-bit seed from any integers; nearby inputs give unrelated seeds (splitmix64, Steele et al.
    2014).
    """
    state = 0
    for number in numbers:
        state = (state + (number & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state >> 1


def seed_position(*, seed: int, step: int, rank: int, micro_batch: int) -> None:
    """Seed the generators of PyTorch on all devices for one micro-batch."""
    torch.manual_seed(mixed_seed(seed, step, rank, micro_batch))
