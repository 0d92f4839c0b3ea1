"""Batches of documents as units."""

from pathlib import Path

import numpy as np
import pytest

from precis.data.batches.unit_batches import UnitBatches, UnitDocuments
from precis_text.errors import UserError


def documents(sizes: list[int]) -> UnitDocuments:
    total = sum(sizes)
    rng = np.random.default_rng(0)
    return UnitDocuments(
        vectors=rng.random((total, 4)).astype(np.float16),
        facts=rng.random((total, 2)).astype(np.float32),
        wanted=rng.integers(0, 2, total).astype(np.uint8),
        bounds=np.cumsum([0, *sizes]),
        words=np.arange(1, len(sizes) + 1).astype(np.float32),
    )


def test_every_document_comes_once_an_epoch_and_batches_keep_their_bound() -> None:
    batches = UnitBatches(documents([3, 9, 1, 4, 4, 2, 7]), units=12, seed=0)
    words = []
    for step in range(batches.batches_per_epoch):
        batch = batches.batch(step)
        words += batch.log_words.exp().round().tolist()
        assert batch.valid.numel() <= 12
    assert sorted(words) == [1, 2, 3, 4, 5, 6, 7]


def test_an_epoch_has_its_own_order_and_a_step_is_always_the_same() -> None:
    found = documents([2] * 40)
    batches, again = UnitBatches(found, units=4, seed=1), UnitBatches(found, units=4, seed=1)
    count = batches.batches_per_epoch
    first = [batches.batch(step).log_words.tolist() for step in range(count)]
    assert first == [again.batch(step).log_words.tolist() for step in range(count)]
    assert first != [batches.batch(step).log_words.tolist() for step in range(count, 2 * count)]


def test_a_document_larger_than_the_bound_is_alone() -> None:
    batches = UnitBatches(documents([30, 2]), units=8, seed=0)
    assert batches.batches_per_epoch == 2


def test_saved_documents_come_back(tmp_path: Path) -> None:
    made = documents([2, 3])
    made.save(tmp_path)
    batch, again = made.batch([1, 0]), UnitDocuments.load(tmp_path).batch([1, 0])
    assert batch.vectors.equal(again.vectors)
    assert batch.wanted.equal(again.wanted)
    assert batch.valid.sum(1).tolist() == [3, 2]


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    documents([2, 3]).save(tmp_path)
    np.save(tmp_path / "words.npy", np.ones(1, dtype=np.float32))
    with pytest.raises(UserError, match="do not belong together"):
        UnitDocuments.load(tmp_path)
