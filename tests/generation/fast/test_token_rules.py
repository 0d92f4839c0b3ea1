"""Repeated n-grams, and tokens that may not come first, are forbidden as transformers does."""

import pytest
import torch
from transformers import GenerationConfig, NoRepeatNGramLogitsProcessor

from precis.generation.fast.token_rules import TokenRules, block_repeated_ngrams


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


@pytest.mark.parametrize(("forced", "first"), [(None, 0), (5, 1)])
def test_a_first_token_is_that_after_a_forced_one(forced: int | None, first: int) -> None:
    config = GenerationConfig(
        decoder_start_token_id=0, eos_token_id=1, max_new_tokens=9, forced_bos_token_id=forced,
        begin_suppress_tokens=[7, 8],
    )  # fmt: skip
    rules = TokenRules.of(config, [], device=torch.device("cpu"))
    for place in range(3):
        scores = rules.apply(torch.zeros(2, place + 1, dtype=torch.long), place, torch.zeros(2, 9))
        assert (scores[:, [7, 8]] == -torch.inf).all().item() is (
            place == first or (place == 0 and forced is not None)
        )
        assert (scores[:, 6] == 0).all().item() is (place > 0 or forced is None)
