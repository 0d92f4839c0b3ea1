"""Labels go with their texts, whatever the order of the batches."""

import numpy as np
import torch

from precis.data.batches.labelled_texts import LabelledBatches, labelled_in_order
from precis.data.batches.length_buckets import BucketedBatches
from precis.data.batches.token_arrays import Ragged, TokenizedPairs


def rows(count: int) -> TokenizedPairs:
    """Row i holds the token 10 + i, once or more."""
    lengths = np.random.default_rng(0).integers(1, 9, size=count).tolist()
    return TokenizedPairs(
        sources=Ragged.of([[10 + i] * n for i, n in enumerate(lengths)]), targets=Ragged.of([[0]] * count)
    )


def test_each_text_has_its_own_label() -> None:
    found = rows(23)
    labels = torch.arange(23) * 2
    batches = LabelledBatches(BucketedBatches(found, batch_size=4, seed=3, pad_token_id=0), labels)
    given = [batches.batch(step) for step in range(batches.batches_per_epoch)]
    given += labelled_in_order(found, labels, batch_size=5, pad_token_id=0)
    for batch in given:
        assert torch.equal(batch.labels, (batch.input_ids[:, 0] - 10) * 2)
    assert sum(len(batch.labels) for batch in given) == 2 * 23


def test_a_process_without_a_row_gets_one_that_counts_for_nothing() -> None:
    for labels in (torch.arange(3), torch.arange(3.0)):
        bucketed = BucketedBatches(rows(3), batch_size=2, seed=0, pad_token_id=0, rank=1, world_size=2)
        given = [LabelledBatches(bucketed, labels).batch(step).labels for step in range(2)]
        assert sorted(label.dtype == labels.dtype for label in given) == [True, True]
        real = [float(label) for label in given if (label >= 0).all()]
        assert len(real) == 1  # two rows and one are dealt to two processes
