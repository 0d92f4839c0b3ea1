"""What a pre-training step does, and a batch to try it on without a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from precis.data.batches.bucketed import Batch
from precis.data.batches.mass import MassBatches
from precis.data.batches.pretraining_batches import CorruptionIds, PreTrainingBatches, Rows
from precis.data.text.tokenizer import SENTINELS
from precis.objectives.future_tokens import Alphas, FutureTokens
from precis.objectives.losses import InTurn, Objective
from precis.recipes.pretraining_runs import MassSpans, PreTrainRun, ReplacedTokens
from precis.training.updates import BatchSource


def measure_of(run: PreTrainRun) -> Objective:
    """What validation measures: all losses at once, without smoothing."""
    if isinstance(run.objective, ReplacedTokens):
        return run.objective.weights
    if isinstance(run.objective, MassSpans):
        return FutureTokens(label_smoothing=0.0).of_spans
    return FutureTokens(label_smoothing=0.0)


def objective_of(run: PreTrainRun) -> Objective | InTurn:
    """How steps are made."""
    if isinstance(run.objective, ReplacedTokens) and run.objective.updates == "in-turn":
        return run.objective.weights.in_turn()
    if isinstance(run.objective, MassSpans):
        given = run.objective.stream_weights
        weights = None if given is None else Alphas(values=given)
        return FutureTokens(label_smoothing=run.objective.label_smoothing, weights=weights).of_spans
    return measure_of(run)


def batches_of(
    run: PreTrainRun, rows: Rows, words: CorruptionIds, *, batch_size: int, rank: int = 0, world_size: int = 1
) -> BatchSource:
    """Batches of the kind that the run's objective takes."""
    share = {"batch_size": batch_size, "rank": rank, "world_size": world_size}
    if isinstance(run.objective, MassSpans):
        return MassBatches(rows, words, rate=run.corruption.recovered, block=run.objective.block, **share)
    whole = PreTrainingBatches(rows, words, corruption=run.corruption, **share)
    return whole if isinstance(run.objective, ReplacedTokens) else _SpanBatches(whole)


@dataclass(frozen=True)
class _SpanBatches:
    """The same batches for span recovery alone."""

    whole: PreTrainingBatches

    @property
    def batches_per_epoch(self) -> int:
        return self.whole.batches_per_epoch

    def batch(self, step: int) -> Batch:
        return self.whole.span_batch(step)


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


def random_batches(run: PreTrainRun, vocabulary: int, *, rows: int) -> BatchSource:
    """Batches of random ids as the run would see them."""
    words = CorruptionIds(
        pad=0,
        cls=1,
        sep=2,
        mask=vocabulary - SENTINELS - 1,
        first_sentinel=vocabulary - SENTINELS,
        sentinels=SENTINELS,
        pieces=range(4, vocabulary - SENTINELS - 1),
    )
    source = RandomRows(run.block_length, vocabulary)
    return batches_of(run, source, words, batch_size=rows)
