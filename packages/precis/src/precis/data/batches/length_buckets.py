"""Batches of pairs of similar length, with random access by training step.

`BucketedBatches.batch(step)` is a pure function of (data, seed, step) and keeps no position. A resumed run therefore
continues at its step and does not replay earlier batches. An epoch is a permutation split into windows. Each window is
sorted by length and split into batches, and all batches are shuffled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from precis.data.batches.corruption import IGNORE
from precis.data.batches.token_arrays import Ids, Indices, TokenizedPairs
from precis_text.errors import UserError

_WINDOW = 64  # batches in a window, which is sorted by length
_SHORT = 8  # tokens of a target


def on_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return the tensor on `device`; a copy does not block the host.

    A copy from pageable memory to a GPU waits for all work queued there. A copy from pinned memory is only queued in
    the stream. Torch keeps a pinned block until its copies are done, so this function need not hold on to it.
    """
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class Moves:
    """Base of batches: dataclasses whose tensors move to a device together."""

    def to(self, device: torch.device | str) -> Self:
        """Return this batch on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        tensors = {name: on_device(t, device) for name, t in values.items() if isinstance(t, Tensor)}
        return type(self)(**values | tensors)


@dataclass(frozen=True)
class Batch(Moves):
    """Right-padded rows: b rows, s source positions, t target positions.

    Attributes:
        input_ids: (b s) long.
        attention_mask: (b s) long, 1 on the document, 0 on padding.
        labels: (b t) long, `IGNORE` on padding.
        source_segments: (b s) long, the prefix segment of each token for a blocked prefix; if None, equal parts.
        source_lengths: (b) tokens of each document, for models that choose by it what to compute; None if the model
            does not use it.
        indices: (b) rows of the data set; empty for a placeholder batch.
    """

    input_ids: Tensor
    attention_mask: Tensor
    labels: Tensor
    indices: tuple[int, ...] = ()
    source_segments: Tensor | None = None
    source_lengths: tuple[int, ...] | None = None


def collate(
    dataset: TokenizedPairs,
    indices: Sequence[int] | Indices,
    *,
    pad_token_id: int,
    tell_lengths: bool = False,
) -> Batch:
    """Put the rows `indices` into one batch, right-padded to its longest row; `tell_lengths` sets `source_lengths`."""
    chosen = tuple(int(i) for i in indices)
    sources = [dataset.sources[i] for i in chosen]
    input_ids, mask = _pad(sources, pad_token_id)
    labels, _ = _pad([dataset.targets[i] for i in chosen], IGNORE)
    segments = None
    if dataset.segments is not None:
        segments, _ = _pad([dataset.segments[i] for i in chosen], 0)
    lengths = tuple(len(source) for source in sources) if tell_lengths else None
    return Batch(input_ids, mask, labels, indices=chosen, source_segments=segments, source_lengths=lengths)


def _pad(rows: list[Ids], value: int) -> tuple[Tensor, Tensor]:
    width = max(len(row) for row in rows)
    padded = np.full((len(rows), width), value, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return torch.from_numpy(padded), torch.from_numpy(mask)


def in_order(dataset: TokenizedPairs, *, batch_size: int, pad_token_id: int) -> Iterator[Batch]:
    """Yield every row once, in batches sorted by length; `Batch.indices` holds the row numbers."""
    order = np.lexsort((dataset.targets.lengths, dataset.sources.lengths))
    for start in range(0, len(order), batch_size):
        yield collate(dataset, order[start : start + batch_size], pad_token_id=pad_token_id)


@final
class BucketedBatches:
    """An endless, random-access sequence of shuffled batches of rows of similar length.

    All ranks build the same global batches. Each takes every world_size-th row of a batch, starting at row `rank`.
    Training thus sees the same batches with any number of processes.

    Args:
        batch_size: rows in a batch; give either this or `batch_tokens`.
        batch_tokens: limit on rows x (widest source + widest target).
        tell_lengths: set `Batch.source_lengths`, for models that use it.

    Raises:
        UserError: both sizes or neither are given, one is too small, or there are zero rows.
    """

    def __init__(
        self,
        dataset: TokenizedPairs,
        *,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        seed: int,
        pad_token_id: int,
        rank: int = 0,
        world_size: int = 1,
        tell_lengths: bool = False,
    ) -> None:
        if (batch_size is None) == (batch_tokens is None):
            raise UserError("give either batch_size (rows) or batch_tokens, not both")
        if batch_size is not None and batch_size < 1:
            raise UserError(f"batch_size={batch_size} must be 1 or more")
        if not len(dataset):
            raise UserError("the data set is empty; batches need at least one row")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank={rank} is not below world_size={world_size}")
        lengths = dataset.sources.lengths + dataset.targets.lengths
        if batch_tokens is not None and batch_tokens < lengths.max():
            raise UserError(
                f"batch_tokens={batch_tokens} cannot hold the longest row; use {lengths.max()} or more"
            )
        self._rows_a_batch = batch_size or max(1, int((batch_tokens or 0) / float(lengths.mean())))
        self._dataset, self._seed, self._pad = dataset, seed, pad_token_id
        self._batch_size, self._batch_tokens = batch_size, batch_tokens
        self._rank, self._world_size, self._tell_lengths = rank, world_size, tell_lengths
        self._cached: tuple[int, list[Indices]] = (-1, [])
        self._starts = [0]  # first step of each epoch planned so far, used with batch_tokens

    @property
    def batches_per_epoch(self) -> int:
        """Batches in an epoch; with `batch_tokens`, in the first epoch (others differ slightly)."""
        if self._batch_size is not None:
            return -(-len(self._dataset) // self._batch_size)
        return self.first_step(1)

    def first_step(self, epoch: int) -> int:
        """Return the first step of `epoch`, which equals the number of batches in all earlier epochs."""
        if self._batch_size is not None:
            return epoch * self.batches_per_epoch
        while len(self._starts) <= epoch:
            self._starts.append(self._starts[-1] + len(self.epoch_plan(len(self._starts) - 1)))
        return self._starts[epoch]

    def locate(self, step: int) -> tuple[int, int]:
        """Return (epoch, position in it) of a step; with `batch_tokens`, plan the epochs up to it once."""
        if step < 0:
            raise ValueError(f"step={step} is negative")
        if self._batch_size is not None:
            return divmod(step, self.batches_per_epoch)
        while self._starts[-1] <= step:
            self.first_step(len(self._starts))
        epoch = int(np.searchsorted(self._starts, step, side="right")) - 1
        return epoch, step - self._starts[epoch]

    def epoch_plan(self, epoch: int) -> list[Indices]:
        """Return the global batches of an epoch as row numbers; each row is in exactly one batch."""
        if self._cached[0] != epoch:
            self._cached = (epoch, self._plan(epoch))
        return self._cached[1]

    def batch(self, step: int) -> Batch:
        """Return this rank's share of the batch at `step`, counted from the start of training.

        If a small batch has too few rows for a rank, that rank gets one padding row with all labels ignored.
        """
        epoch, position = self.locate(step)
        mine = self.epoch_plan(epoch)[position][self._rank :: self._world_size]
        if len(mine):
            return collate(self._dataset, mine, pad_token_id=self._pad, tell_lengths=self._tell_lengths)
        # The mask is 1: a row without a visible position would make attention divide by zero.
        row = torch.full((1, 1), self._pad)
        segments = None if self._dataset.segments is None else torch.zeros_like(row)
        lengths = (1,) if self._tell_lengths else None
        labels = torch.full((1, 1), IGNORE)
        return Batch(row, torch.ones_like(row), labels, source_segments=segments, source_lengths=lengths)

    def _plan(self, epoch: int) -> list[Indices]:
        rng = np.random.default_rng([self._seed, epoch])
        order = rng.permutation(len(self._dataset))
        window = _WINDOW * self._rows_a_batch
        starts = range(0, len(order), window)
        batches = [batch for start in starts for batch in self._cut(order[start : start + window])]
        return [batches[i] for i in rng.permutation(len(batches))]

    def _cut(self, rows: Indices) -> Iterator[Indices]:
        """Yield the batches of one window."""
        sources, targets = self._dataset.sources.lengths[rows], self._dataset.targets.lengths[rows]
        rows = rows[_by_length(sources, targets, batches=len(rows) / self._rows_a_batch)]
        if self._batch_size is not None:
            yield from (rows[i : i + self._batch_size] for i in range(0, len(rows), self._batch_size))
            return
        limit = self._batch_tokens or 0
        sources = self._dataset.sources.lengths[rows].tolist()
        targets = self._dataset.targets.lengths[rows].tolist()
        start, widest_source, widest_target = 0, 0, 0
        for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
            wider = max(widest_source, source), max(widest_target, target)
            if (i + 1 - start) * sum(wider) > limit:
                yield rows[start:i]
                start, wider = i, (source, target)
            widest_source, widest_target = wider
        yield rows[start:]


def _by_length(sources: Indices, targets: Indices, *, batches: float) -> Indices:
    """Order rows so that neighbours have similar sources and, within that, similar targets.

    The rows are sorted by source and split into groups of a few batches. Each group is sorted by target, in ascending
    and descending order alternately, so that target lengths do not jump between groups. The number of groups,
    1.5 sqrt(batches), needs the least padding on chat summaries and on short structured inputs. Short targets are not
    sorted: they need little padding. They may also be label words, and whole batches would then hold a single label.
    """
    by_source = np.argsort(sources, kind="stable")
    if targets.max() <= _SHORT:
        return by_source
    groups = np.array_split(by_source, max(1, round(1.5 * batches**0.5)))
    ordered = [group[np.argsort(targets[group], kind="stable")] for group in groups if len(group)]
    return np.concatenate([group[:: -1 if i % 2 else 1] for i, group in enumerate(ordered)])
