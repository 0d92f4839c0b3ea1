"""The best of a vocabulary found by blocks are those of topk."""

import pytest
import torch

from precis.generation.fast.token_search import highest


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
