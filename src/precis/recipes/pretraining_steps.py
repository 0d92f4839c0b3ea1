"""What a pre-training step does, and a batch to try it on without a corpus."""

from __future__ import annotations

from typing import Any

import numpy as np

from precis.data.batches import Batch
from precis.data.pretraining_batches import PreTrainingBatch, PreTrainingBatches, Words
from precis.data.tokenizer import SENTINELS
from precis.objectives.losses import InTurn, Objective
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.recipes.pretraining_runs import PreTrainRun, ReplacedTokens


def measure_of(run: PreTrainRun) -> Objective:
    """What validation measures: all losses at once."""
    if isinstance(run.objective, ReplacedTokens):
        return run.objective.weights
    return SequenceToSequence(label_smoothing=0.0)


def objective_of(run: PreTrainRun) -> Objective | InTurn:
    """How steps are made."""
    if isinstance(run.objective, ReplacedTokens) and run.objective.updates == "in-turn":
        return run.objective.weights.in_turn()
    return measure_of(run)


def generator_of(run: PreTrainRun) -> dict[str, Any]:
    """The `generator_*` values of the model's configuration."""
    assert isinstance(run.objective, ReplacedTokens)
    return {
        "generator_layers": run.objective.generator_layers,
        "generator_mask_decoder": run.objective.mask_decoder,
        "generator_positions": run.block_length,
    }


class RandomRows:
    """Blocks of random ids, for measuring; nothing is to be learnt from them."""

    num_blocks = 10_000

    def __init__(self, length: int, vocabulary: int, *, seed: int = 0) -> None:
        self.length = length
        self._vocabulary, self._seed = vocabulary, seed

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(b n) ids between control tokens and sentinels, (b) zeros."""
        rng = np.random.default_rng([self._seed, int(positions[0])])
        ids = rng.integers(5, self._vocabulary - SENTINELS - 1, (len(positions), self.length))
        ids[:, 0], ids[:, -1] = 1, 2
        return ids, np.zeros(len(positions), np.int64)

    def uniforms(self, positions: np.ndarray, width: int) -> np.ndarray:
        """(b w) random numbers."""
        return np.random.default_rng([self._seed, int(positions[0]), 1]).random((len(positions), width))

    def sentence_starts(self, positions: np.ndarray) -> list[np.ndarray]:
        """A sentence every 20 tokens."""
        return [np.arange(1, self.length - 1, 20)] * len(positions)


def random_batches(run: PreTrainRun, vocabulary: int, *, rows: int) -> PreTrainingBatches:
    """Batches of random ids as the run would see them."""
    words = Words(
        pad=0,
        cls=1,
        sep=2,
        mask=vocabulary - SENTINELS - 1,
        first_sentinel=vocabulary - SENTINELS,
        sentinels=SENTINELS,
    )
    source = RandomRows(run.block_length, vocabulary)
    return PreTrainingBatches(source, words, corruption=run.corruption, batch_size=rows)


def random_batch(run: PreTrainRun, vocabulary: int, *, rows: int) -> PreTrainingBatch | Batch:
    """One of them, of the kind that the run's objective takes."""
    batches = random_batches(run, vocabulary, rows=rows)
    return batches.batch(0) if isinstance(run.objective, ReplacedTokens) else batches.span_batch(0)
