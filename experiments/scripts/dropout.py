"""Dropout of states and of attention weights, forward and backward: torch's time over ours, in turn.

    python -m experiments.scripts.dropout [--rounds 30] [--threads 1]

The interval holds the ratios of 95% of the rounds.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from precis.nn.dropout import dropout

RATE = 0.1
SHAPES = {"states of 16 x 512 x 256": (16, 512, 256), "weights of 16 x 4 x 256 x 256": (16, 4, 256, 256)}


def seconds(drop: Callable[[Tensor], Tensor], states: Tensor, gradient: Tensor) -> float:
    """Of one pass forward and backward."""
    start = time.perf_counter()
    torch.autograd.grad(drop(states), states, gradient)
    return time.perf_counter() - start


def ratios(shape: tuple[int, ...], dtype: torch.dtype, *, rounds: int) -> np.ndarray:
    """torch's seconds over ours in each round."""
    states, gradient = torch.randn(shape, dtype=dtype).requires_grad_(), torch.randn(shape, dtype=dtype)

    def ours(x: Tensor) -> Tensor:
        return dropout(x, RATE, training=True)

    def theirs(x: Tensor) -> Tensor:
        return F.dropout(x, RATE)

    found = [seconds(theirs, states, gradient) / seconds(ours, states, gradient) for _ in range(rounds + 2)]
    return np.array(found[2:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    for name, shape in SHAPES.items():
        for dtype in (torch.float32, torch.bfloat16):
            found = ratios(shape, dtype, rounds=arguments.rounds)
            low, middle, high = np.percentile(found, [2.5, 50, 97.5])
            print(f"{name}, {str(dtype).removeprefix('torch.')}: {middle:.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
