"""Training order of blocks of text: a keyed permutation for each epoch, and mixtures of corpora.

Everything is a pure function of a position, in O(1) time and memory. A resumed run continues at its position. Any
number of processes can share the positions. A corpus of a billion blocks needs no index in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from precis.data.keyed_hash import scrambled
from precis.data.packs.packed_text import Blocks
from precis_text.errors import UserError

Positions = NDArray[np.int64]

_ROUNDS = 6  # rounds of the Feistel network; four already look random, and more cost little
_CYCLE = 1000  # positions in which a mixture keeps its weights


@final
class Order:
    """A permutation of range(size) for every epoch.

    It is a Feistel network on the smallest even number of bits that hold `size`. A value outside the range goes through
    it again until it is inside (Black and Rogaway 2002, cycle walking), so the result stays a permutation.
    """

    def __init__(self, size: int, *, seed: int) -> None:
        if size < 1:
            raise ValueError(f"size={size} must be 1 or more")
        self._size, self._seed = size, seed
        self._half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))  # bits in each half

    def at(self, positions: Positions) -> Positions:
        """Return the item at each position; position p is in epoch p // size."""
        epochs, within = np.divmod(np.asarray(positions, np.int64), self._size)
        items = self._mix(within.astype(np.uint64), epochs.astype(np.uint64))
        outside = items >= self._size
        while outside.any():
            items[outside] = self._mix(items[outside], epochs[outside].astype(np.uint64))
            outside = items >= self._size
        return items.astype(np.int64)

    def _mix(self, values: NDArray[np.uint64], epochs: NDArray[np.uint64]) -> NDArray[np.uint64]:
        low = (np.uint64(1) << self._half) - np.uint64(1)
        left, right = values >> self._half, values & low
        for number in range(_ROUNDS):
            left, right = right, left ^ (scrambled(self._seed, number, epochs, right) & low)
        return (left << self._half) | right


@final
class Mixture:
    """A corpus for each position, and the position within that corpus.

    Every cycle of 1,000 positions gives each corpus its share, rounded by largest remainders, in a new order. Rounding
    may leave a share below 1/2000 without any position.
    """

    def __init__(self, weights: Sequence[float], *, seed: int) -> None:
        if not weights or min(weights) <= 0:
            raise UserError(f"the weights of a mixture must be above 0, not {list(weights)}")
        self._seed = seed
        shares = _CYCLE * np.asarray(weights, np.float64) / np.sum(weights)
        self.counts = np.floor(shares).astype(np.int64)
        missing = _CYCLE - int(self.counts.sum())
        self.counts[np.argsort(self.counts - shares, kind="stable")[:missing]] += 1
        if (self.counts == 0).any():
            smallest = float(min(weights)) / float(np.sum(weights))
            raise UserError(f"a corpus has {smallest:.2%} of the mixture's weight; it needs at least 0.1%")
        self._deck = np.repeat(np.arange(len(weights)), self.counts)

    def at(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return (corpus, position within that corpus) of each position."""
        if len(self.counts) == 1:
            return np.zeros_like(positions), positions
        cycles, within = np.divmod(np.asarray(positions, np.int64), _CYCLE)
        corpora, before = np.empty_like(cycles), np.empty_like(cycles)
        for cycle in np.unique(cycles):
            here = cycles == cycle
            deck = self._deck[Order(_CYCLE, seed=self._seed).at(cycle * _CYCLE + np.arange(_CYCLE))]
            corpora[here] = deck[within[here]]
            before[here] = cycle * self.counts[corpora[here]] + _earlier(deck)[within[here]]
        return corpora, before


def _earlier(deck: Positions) -> Positions:
    """Count how often each item occurred earlier in the deck."""
    by_item = np.argsort(deck, kind="stable")
    firsts = np.searchsorted(deck[by_item], deck[by_item])
    earlier = np.empty_like(deck)
    earlier[by_item] = np.arange(len(deck)) - firsts
    return earlier


@final
class PackedRows:
    """Blocks of one or several corpora in training order, each with its own random numbers.

    Args:
        corpora: the blocks of each corpus, and its weight in the mixture.

    Raises:
        UserError: a corpus lacks a full block, or a weight is not above 0.
        ValueError: the corpora's blocks differ in length.
    """

    def __init__(self, corpora: Sequence[tuple[Blocks, float]], *, seed: int) -> None:
        self._blocks = [blocks for blocks, _ in corpora]
        if not all(len(blocks) for blocks in self._blocks):
            raise UserError("a corpus does not fill a single block; use shorter blocks or more text")
        if len({blocks.length for blocks in self._blocks}) != 1:
            raise ValueError("the corpora's blocks differ in length")
        self._seed = seed
        self._mixture = Mixture([weight for _, weight in corpora], seed=seed)
        self._orders = [
            Order(len(blocks), seed=int(scrambled(seed, number)))
            for number, blocks in enumerate(self._blocks)
        ]

    @property
    def length(self) -> int:
        """Tokens in a block."""
        return self._blocks[0].length

    @property
    def num_blocks(self) -> int:
        """Blocks in all corpora together, equal to the number of positions in an epoch."""
        return sum(len(blocks) for blocks in self._blocks)

    def rows(self, positions: Positions) -> tuple[NDArray[np.int64], Positions]:
        """Return the blocks at these positions: (b n) ids, and (b) the index of each block's corpus."""
        corpora, indices = self._locate(positions)
        ids = np.empty((len(positions), self.length), np.int64)
        for number in np.unique(corpora):
            here = corpora == number
            ids[here] = self._blocks[number].rows(indices[here])
        return ids, corpora

    def sentence_starts(self, positions: Positions) -> list[NDArray[np.int64]]:
        """Return the positions in each block at which sentences begin, counted from its [CLS]."""
        corpora, indices = self._locate(positions)
        return [
            self._blocks[number].sentence_starts(index)
            for number, index in zip(corpora.tolist(), indices.tolist(), strict=True)
        ]

    def uniforms(self, positions: Positions, width: int) -> NDArray[np.float64]:
        """Return (b width) numbers in [0, 1), a pure function of seed and position."""
        columns = np.arange(width, dtype=np.uint64)[None, :]
        bits = scrambled(self._seed, np.asarray(positions).astype(np.uint64)[:, None], columns)
        return np.asarray((bits >> np.uint64(11)) * 2.0**-53, np.float64)

    def _locate(self, positions: Positions) -> tuple[Positions, Positions]:
        corpora, within = self._mixture.at(np.asarray(positions, np.int64))
        indices = np.empty_like(within)
        for number in np.unique(corpora):
            here = corpora == number
            indices[here] = self._orders[number].at(within[here])
        return corpora, indices
