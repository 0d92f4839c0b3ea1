"""Repeated n-grams are blocked as transformers does."""

import pytest
import torch
from transformers import NoRepeatNGramLogitsProcessor

from precis.generation.fast.token_rules import block_repeated_ngrams


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 30])
def test_the_same_tokens_are_blocked_as_in_transformers(size: int, length: int) -> None:
    written = torch.randint(0, 4, (7, length))
    scores = torch.randn(7, 9)
    expected = NoRepeatNGramLogitsProcessor(size)(written, scores.clone())
    assert torch.equal(block_repeated_ngrams(scores.clone(), written, length - 1, size=size), expected)
    with_room = torch.cat([written, torch.randint(0, 4, (7, 5))], dim=1)  # ids after the place do not count
    for place in (length - 1, torch.tensor([length - 1])):
        assert torch.equal(block_repeated_ngrams(scores.clone(), with_room, place, size=size), expected)
