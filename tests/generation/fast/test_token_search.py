"""The best of a vocabulary found by blocks are those of topk."""

import pytest
import torch

from precis.generation.fast.token_search import highest, log_softmax_


@pytest.mark.parametrize("vocabulary", [50, 4096, 5003])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_blocks_find_what_topk_finds(vocabulary: int, count: int) -> None:
    scores = torch.randn(6, vocabulary)
    scores[2, -1], scores[3, 0] = 9.0, 9.0
    scores[4, : vocabulary // 2] = -torch.inf
    values, columns = highest(scores, count)
    expected = scores.topk(count)
    assert torch.equal(values, expected.values)
    assert torch.equal(columns, expected.indices)


def test_of_equal_scores_the_first_is_the_best_as_with_argmax() -> None:
    scores = torch.randint(0, 3, (8, 4099)).float()
    assert torch.equal(highest(scores, 1)[1].squeeze(1), scores.argmax(-1))


def test_log_probabilities_by_row_are_torchs_and_start_no_parallel_region() -> None:
    logits = torch.randn(5, 32_000, generator=torch.Generator().manual_seed(0))
    expected = torch.log_softmax(logits, dim=-1)
    with torch.profiler.profile() as profile:
        found = log_softmax_(logits)
    assert torch.equal(found, expected)
    assert found is logits
    shapes = [event.count for event in profile.key_averages() if event.key == "aten::_log_softmax"]
    assert shapes == [5]  # torch shares out rows, so that a call with one row has one thread
