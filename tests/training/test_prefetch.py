"""Claims about batches that are made ahead."""

import pytest
from training import tiny

from precis.training.prefetch import Prefetched


def test_the_same_batches_come_in_any_order_of_asking() -> None:
    ahead, plain = Prefetched(tiny.RowSource()), tiny.RowSource()
    for step in (0, 1, 2, 7, 8, 3, 3):
        assert ahead.batch(step).labels.equal(plain.batch(step).labels)
    assert ahead.batches_per_epoch == plain.batches_per_epoch


def test_the_next_batch_is_begun_and_not_made_twice() -> None:
    source = tiny.RowSource()
    ahead = Prefetched(source)
    for step in range(5):
        ahead.batch(step)
    ahead._pool.shutdown()
    assert source.asked == [0, 1, 2, 3, 4, 5]


def test_an_error_is_raised_where_the_batch_is_asked_for() -> None:
    class Broken(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            if step == 2:
                raise ValueError("no batch 2")
            return super().batch(step)

    ahead = Prefetched(Broken())
    ahead.batch(0)
    ahead.batch(1)
    with pytest.raises(ValueError, match="no batch 2"):
        ahead.batch(2)
