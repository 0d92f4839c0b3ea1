"""Claims about batches for pre-training: pure functions of a step, whatever the number of processes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from precis.data.batches.corruption import CorruptionIds
from precis.data.batches.pretraining_batches import Corruption, PreTrainingBatch, PreTrainingBatches
from precis_text.errors import UserError
from tests.restored_spans import restore_spans

WORDS = CorruptionIds(pad=0, cls=1, sep=2, mask=599, first_sentinel=600, sentinels=100)


class Rows:
    """Row p is a pure function of p."""

    num_blocks, length = 50, 64

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids = np.stack([np.random.default_rng(p).integers(5, 599, 64) for p in positions.tolist()])
        ids[:, 0], ids[:, -1] = 1, 2
        return ids, np.zeros(len(ids), np.int64)

    def uniforms(self, positions: np.ndarray, width: int) -> np.ndarray:
        return np.stack([np.random.default_rng([p, 1]).random(width) for p in positions.tolist()])

    def sentence_starts(self, positions: np.ndarray) -> list[np.ndarray]:
        return [np.arange(1, 63, 7 + p % 3) for p in positions.tolist()]


def batches(**more: Any) -> PreTrainingBatches:
    return PreTrainingBatches(Rows(), WORDS, **{"corruption": Corruption(), "batch_size": 6, **more})


def tensors(batch: PreTrainingBatch) -> list[torch.Tensor]:
    mine = [batch.original_ids, batch.masked_ids, batch.places, batch.draws, batch.input_ids]
    return [*mine, batch.decoder_input_ids, batch.span_labels]


def test_a_batch_is_a_function_of_its_step() -> None:
    for one, two in zip(tensors(batches().batch(7)), tensors(batches().batch(7)), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(batches().batch(7).original_ids, batches().batch(8).original_ids)


@pytest.mark.parametrize("unit", ["spans", "sentences"])
def test_processes_share_out_the_rows_of_the_same_batch(unit: Any) -> None:
    corruption = Corruption(unit=unit)
    whole = batches(corruption=corruption).batch(3)
    parts = [batches(corruption=corruption, rank=r, world_size=3).batch(3) for r in range(3)]
    for index, tensor in enumerate(tensors(whole)):
        for rank, part in enumerate(parts):
            own = tensors(part)[index]
            shared = tensor[rank::3, : own.shape[1]]  # sentences: a narrower batch needs less padding
            assert torch.equal(shared, own)


def test_masked_places_and_spans_belong_to_the_same_text() -> None:
    batch = batches().batch(0)
    assert (batch.masked_ids.gather(1, batch.places) == WORDS.mask).all()
    assert torch.equal(
        batch.masked_ids.scatter(1, batch.places, batch.original_ids.gather(1, batch.places)),
        batch.original_ids,
    )
    restored = restore_spans(batch.input_ids.numpy(), batch.span_labels.numpy(), WORDS)
    assert restored == batch.original_ids.tolist()
    assert batch.attention_mask is None  # full blocks need none


def test_decoder_inputs_are_the_labels_behind_the_start_token() -> None:
    batch = batches(corruption=Corruption(unit="sentences")).batch(0)
    assert (batch.decoder_input_ids[:, 0] == WORDS.cls).all()
    shifted = batch.span_labels[:, :-1].masked_fill(batch.span_labels[:, :-1] == -100, WORDS.pad)
    assert torch.equal(batch.decoder_input_ids[:, 1:], shifted)
    assert batch.attention_mask is not None
    assert torch.equal(batch.attention_mask, batch.input_ids != WORDS.pad)


def test_spans_alone_are_the_same_spans() -> None:
    alone, whole = batches().span_batch(5), batches().batch(5)
    assert alone.source_lengths == whole.source_lengths == tuple(alone.attention_mask.sum(-1).tolist())
    assert torch.equal(alone.input_ids, whole.input_ids)
    assert torch.equal(alone.labels, whole.span_labels)


def test_masking_and_spans_use_different_random_numbers() -> None:
    hidden = np.zeros((2, 600, 64), bool)
    source = batches(batch_size=600)
    batch = source.batch(0)
    hidden[0][np.arange(600)[:, None], batch.places.numpy()] = True
    for row, (ids, kept) in enumerate(zip(batch.original_ids, batch.input_ids, strict=True)):
        text, rest = ids.tolist(), [t for t in kept.tolist() if t < 600]
        place = 0
        for position, token in enumerate(text):
            if place < len(rest) and rest[place] == token:
                place += 1
            else:
                hidden[1, row, position] = True
    assert abs(np.corrcoef(hidden[0].ravel(), hidden[1].ravel())[0, 1]) < 0.03


@pytest.mark.parametrize(
    "wrong", [{"masked": 0.0}, {"recovered": 0.9}, {"mean_span": 0.5}, {"unit": "words"}]
)
def test_impossible_corruption_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        replace(Corruption(), **wrong)


def test_a_batch_too_small_for_the_processes_is_refused() -> None:
    with pytest.raises(UserError, match="batch_size=2 leaves some of 3 processes"):
        batches(batch_size=2, world_size=3)


class ShortDocuments(Rows):
    """A border after every fifth token."""

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids, documents = super().rows(positions)
        ids[:, 5::5] = WORDS.sep
        return ids, documents


@pytest.mark.parametrize("unit", ["spans", "sentences"])
def test_a_target_ends_where_its_end_mark_stands(unit: Any) -> None:
    """A border of documents that is hidden is not written as the end mark."""
    batch = PreTrainingBatches(
        ShortDocuments(), WORDS, corruption=Corruption(unit=unit), batch_size=40
    ).batch(0)
    borders = 0
    for labels in batch.span_labels:
        real = labels[labels >= 0]
        assert (real == WORDS.sep).nonzero().flatten().tolist() == [len(real) - 1]
        borders += int((real == WORDS.cls).sum())
    assert borders
