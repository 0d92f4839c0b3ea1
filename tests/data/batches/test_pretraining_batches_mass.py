"""What a ProphetNet is pre-trained on."""

from typing import Any

import numpy as np
import torch

from precis.data.batches.corruption import CorruptionIds
from precis.data.batches.pretraining_batches import MassBatch, MassBatches
from precis.phases.train.memory_plan import RandomRows

VOCABULARY = 400
WORDS = CorruptionIds(pad=0, cls=1, sep=2, mask=299, first_sentinel=300, sentinels=100, pieces=range(4, 299))


def batches(**options: Any) -> MassBatches:
    return MassBatches(
        RandomRows(130, VOCABULARY), WORDS, rate=0.15, block=64, **{"batch_size": 4, **options}
    )


def text(step: int, size: int = 4) -> torch.Tensor:
    ids, _ = RandomRows(130, VOCABULARY).rows(np.arange(step * size, (step + 1) * size))
    return torch.from_numpy(ids)


def test_targets_and_what_stands_before_them_are_the_texts_own() -> None:
    batch, ids = batches().batch(3), text(3)
    rows = torch.arange(4)[:, None]
    assert torch.equal(batch.labels, ids[rows, batch.decoder_position_ids + 1])
    assert torch.equal(batch.decoder_input_ids, ids[rows, batch.decoder_position_ids])


def test_only_hidden_places_are_changed_and_the_text_keeps_its_length() -> None:
    batch, ids = batches().batch(0), text(0)
    hidden = torch.zeros_like(ids, dtype=torch.bool).scatter(1, batch.decoder_position_ids + 1, True)
    assert torch.equal(batch.input_ids[~hidden], ids[~hidden])
    assert (batch.input_ids[hidden] == WORDS.mask).float().mean() > 0.5
    assert batch.attention_mask.all()
    assert batch.source_lengths == tuple(batch.attention_mask.sum(-1).tolist())


def test_random_words_are_never_control_tokens() -> None:
    drawn = torch.cat([batches().batch(step).input_ids[:, 1:-1].flatten() for step in range(20)])
    assert set(drawn.tolist()) & {0, 1, 2, 3} == set()
    assert int(drawn.max()) <= WORDS.mask


def test_random_words_come_from_all_pieces_wherever_the_mask_is() -> None:
    pieces = [5, *range(120, 390)]  # in BERT's manner: pad, unused entries, the mask, and then the words
    words = CorruptionIds(pad=0, cls=101, sep=102, mask=103, pieces=pieces)
    rows = RandomRows(130, VOCABULARY)
    source = MassBatches(rows, words, rate=0.15, block=64, batch_size=4)
    changed = []
    for step in range(40):
        batch, (ids, _) = source.batch(step), rows.rows(np.arange(step * 4, step * 4 + 4))
        new = batch.input_ids.numpy()[batch.input_ids.numpy() != ids]
        changed += [token for token in new.tolist() if token != 103]
    assert set(changed) <= set(pieces)
    assert min(changed) < 150
    assert max(changed) > 360


def test_ranks_count_from_the_start_of_each_span() -> None:
    batch = batches().batch(0)
    assert batch.labels.shape == (4, 19)  # 0.15 * 128
    assert batch.ranks.tolist() == [[*range(10), *range(9)]]
    within = batch.ranks[0, 1:] > 0
    steps = batch.decoder_position_ids[:, 1:] - batch.decoder_position_ids[:, :-1]
    assert (steps[:, within] == 1).all()


class NumberedRows(RandomRows):
    """Every position has a text and random numbers of its own."""

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids = [super(NumberedRows, self).rows(np.array([p]))[0] for p in positions]
        return np.concatenate(ids), np.zeros(len(positions), np.int64)

    def uniforms(self, positions: np.ndarray, width: int) -> np.ndarray:
        drawn = [super(NumberedRows, self).uniforms(np.array([p]), width) for p in positions]
        return np.concatenate(drawn)


def test_two_processes_share_the_batch_of_one() -> None:
    def make(**options: int) -> MassBatch:
        rows = NumberedRows(130, VOCABULARY)
        return MassBatches(rows, WORDS, rate=0.15, block=64, batch_size=4, **options).batch(1)

    whole, parts = make(), [make(rank=rank, world_size=2) for rank in (0, 1)]
    for rank, part in enumerate(parts):
        assert torch.equal(part.input_ids, whole.input_ids[rank::2])
        assert torch.equal(part.labels, whole.labels[rank::2])
        assert torch.equal(part.decoder_position_ids, whole.decoder_position_ids[rank::2])
