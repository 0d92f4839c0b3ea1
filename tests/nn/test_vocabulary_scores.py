"""Scores over a vocabulary, whole and in pieces, and the heads of replaced-token detection."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from precis.nn import vocabulary_scores
from precis.nn.blocks import EncoderLayer
from precis.nn.vocabulary_scores import (
    EnhancedMaskDecoder,
    MaskedTokenHead,
    ReplacedTokenHead,
    VocabularyScores,
    rows_at_once,
)


@pytest.mark.parametrize("rows", [1, 4, 21, 100])
def test_scores_in_pieces_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    assert rows_at_once(vocabulary_scores.LOGITS_BYTES) == 1  # one row at least
    monkeypatch.setattr(vocabulary_scores, "LOGITS_BYTES", 4 * 50 * rows)
    assert rows_at_once(50) == rows
    states, table, bias = torch.randn(3, 7, 8), torch.randn(50, 8), torch.randn(50)
    scores = VocabularyScores.of(states, table, bias)
    expected = F.linear(states, table, bias)
    assert (scores.made is not None) == (rows >= 21)
    torch.testing.assert_close(scores.logits(), expected)
    pieces = list(scores.in_pieces())
    assert scores.made is not None or max(len(piece) for piece in pieces) <= rows
    torch.testing.assert_close(torch.cat(pieces), expected.flatten(0, 1))


def test_what_is_handed_on_is_a_view_and_never_the_parameter() -> None:
    """A data-parallel wrapper passes over parameters that are a model's output themselves."""
    table = torch.nn.Parameter(torch.randn(50, 8))
    scores = VocabularyScores.of(torch.randn(1, 8), table)
    assert scores.table is not table
    assert scores.table.data_ptr() == table.data_ptr()
    scores.logits().sum().backward()
    assert table.grad is not None
    assert table.grad.any()


def test_the_masked_token_head_is_berts() -> None:
    torch.manual_seed(0)
    head, states, table = MaskedTokenHead(8, 50, norm_eps=1e-5), torch.randn(2, 3, 8), torch.randn(50, 8)
    with torch.no_grad():
        head.bias.normal_()
    expected = head.norm(F.gelu(head.dense(states))) @ table.T + head.bias
    torch.testing.assert_close(head(states, table).logits(), expected)


def test_a_token_is_judged_by_itself_and_the_first_token() -> None:
    torch.manual_seed(0)
    head, states = ReplacedTokenHead(8, norm_eps=1e-5), torch.randn(2, 5, 8)
    found = head(states)
    assert found.shape == (2, 5)
    changed = states.clone()
    changed[:, 3] = torch.randn(8)
    assert torch.equal((head(changed) != found).any(0), torch.tensor([False, False, False, True, False]))
    changed[:, 0] = torch.randn(8)
    assert (head(changed) != found).all()


class Noted(EncoderLayer):
    """A layer that notes what it is given and adds one to its queries."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        self.given: list[tuple[Any, ...]] = []

    def forward(
        self,
        states: torch.Tensor,
        mask: torch.Tensor | None,
        positions: Any,
        query_states: Any = None,
        prefix: object = None,
        packing: object = None,
    ) -> torch.Tensor:
        self.given.append((states, mask, positions, query_states))
        return query_states + 1


def test_the_enhanced_mask_decoder_asks_twice_with_absolute_positions() -> None:
    layer, states, mask = Noted(), torch.randn(2, 3, 8), torch.ones(2, 1, 1, 3, dtype=torch.bool)
    decoder = EnhancedMaskDecoder(layer, width=8, longest=3)
    first = states + decoder.absolute.weight
    torch.testing.assert_close(decoder(states, mask, None), first + 2)
    assert [given[0] is states and given[1] is mask and given[2] is None for given in layer.given] == [
        True
    ] * 2
    torch.testing.assert_close(
        torch.stack([given[3] for given in layer.given]), torch.stack([first, first + 1])
    )
    torch.testing.assert_close(decoder(states[:, :2], None, None), first[:, :2] + 2)
    with pytest.raises(ValueError, match="4 tokens, but the enhanced mask decoder has 3 positions"):
        decoder(torch.randn(1, 4, 8), None, None)
