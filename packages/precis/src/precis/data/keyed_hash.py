"""A hash that makes random numbers a function of seed, step, row and the like."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MASK = np.uint64(0xFFFFFFFFFFFFFFFF)


def scrambled(*numbers: NDArray[np.uint64] | int) -> NDArray[np.uint64]:
    """Hash integers to 64 random-looking bits, element by element (splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        state: NDArray[np.uint64] = np.zeros((), np.uint64)
        for number in numbers:
            value = number if isinstance(number, np.ndarray) else np.asarray(number & int(_MASK), np.uint64)
            state = np.asarray(state + value + np.uint64(0x9E3779B97F4A7C15))
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return np.asarray(state, np.uint64)
