"""Rows and tokens a second of each way to corrupt text, on rows of 512 tokens.

    python benchmarks/corruption.py [--rows 64] [--length 512] [--seconds 2]

The random numbers are made beforehand: their cost is the corpus's, not the corruption's. Sentences have 8 to 40 tokens.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from precis.data.batches.corruption import (
    CorruptionIds,
    corrupt_spans,
    gap_sentences,
    mask_tokens,
    mass_spans,
)

PAD, CLS, SEP = 0, 1, 2
PIECES = range(260, 7900)
MASK, SENTINEL, SENTINELS = 7900, 7901, 100


def sentence_starts(length: int, rng: np.random.Generator) -> np.ndarray:
    starts = 1 + np.concatenate([[0], np.cumsum(rng.integers(8, 41, length))])
    return starts[starts < length - 1]


def functions(rows: int, length: int) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    ids = rng.zipf(1.3, (rows, length)) % len(PIECES) + PIECES.start  # a few pieces are frequent, as in text
    ids[:, 0], ids[:, -1] = CLS, SEP
    uniforms = rng.random((rows, length))
    starts = [sentence_starts(length, rng) for _ in range(rows)]
    words = CorruptionIds(
        pad=PAD, cls=CLS, sep=SEP, mask=MASK, first_sentinel=SENTINEL, sentinels=SENTINELS, pieces=PIECES
    )
    return {
        "masked tokens": lambda: mask_tokens(ids, uniforms, words),
        "spans": lambda: corrupt_spans(ids, uniforms, words),
        "gap sentences": lambda: gap_sentences(ids, starts, uniforms, words),
        "MASS spans": lambda: mass_spans(ids, uniforms, words),
    }


def seconds_a_call(function: Callable[[], object], *, budget: float) -> float:
    """Median of as many calls as fit into the budget, five at least."""
    function()
    times: list[float] = []
    while len(times) < 5 or sum(times) < budget:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=64, help="rows in a batch")
    parser.add_argument("--length", type=int, default=512, help="tokens in a row")
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, for each function")
    arguments = parser.parse_args()
    print(f"{'':<15}{'rows/s':>10}{'tokens/s':>14}")
    for name, function in functions(arguments.rows, arguments.length).items():
        seconds = seconds_a_call(function, budget=arguments.seconds)
        rows = arguments.rows / seconds
        print(f"{name:<15}{rows:>10,.0f}{rows * arguments.length:>14,.0f}")


if __name__ == "__main__":
    main()
