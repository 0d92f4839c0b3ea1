"""The loss of a causal language model is on the summary alone, at the positions of generation."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from precis.objectives.causal import CausalSummary, join
from tests.objectives.test_sequence_to_sequence import Batch

_PAD = 0


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=32,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def _batch(prompts: list[list[int]], summaries: list[list[int]]) -> Batch:
    def padded(rows: list[list[int]], value: int) -> torch.Tensor:
        width = max(map(len, rows))
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])

    ids = padded(prompts, _PAD)
    mask = padded([[1] * len(row) for row in prompts], 0)
    return Batch(input_ids=ids, attention_mask=mask, labels=padded(summaries, -100))


def test_the_summary_follows_its_prompt_without_padding_between() -> None:
    joined = join(_batch([[5, 6, 7], [8]], [[20, 2], [21, 22, 2]]))
    assert joined.input_ids.tolist() == [[5, 6, 7, 20, 2], [8, 21, 22, 2, 0]]
    assert joined.attention_mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    assert joined.next_tokens.tolist() == [[-100, -100, 20, 2, -100], [21, 22, 2, -100, -100]]


def test_the_loss_is_the_sum_over_rows_read_alone(model: LlamaForCausalLM) -> None:
    pairs = [([5, 6, 7], [20, 2]), ([8], [21, 22, 2]), ([9] * 9, [3])]
    loss = CausalSummary()(model, _batch([p for p, _ in pairs], [s for _, s in pairs]))
    expected = 0.0
    for prompt, summary in pairs:
        scores = model(torch.tensor([prompt + summary])).logits[0].log_softmax(-1)
        expected -= sum(scores[len(prompt) - 1 + i, token].item() for i, token in enumerate(summary))
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert (int(loss.num_targets), int(loss.num_tokens)) == (6, 19)


def test_scores_of_prompt_tokens_carry_no_gradient(model: LlamaForCausalLM) -> None:
    seen: list[torch.Tensor] = []

    def keep(_module: object, _given: object, made: torch.Tensor) -> None:
        made.retain_grad()
        seen.append(made)

    handle = model.lm_head.register_forward_hook(keep)
    CausalSummary()(model, _batch([[5, 6, 7], [8]], [[20, 2], [21, 22, 2]])).total.backward()
    handle.remove()
    gradient = seen[0].grad
    assert gradient is not None
    has_gradient = gradient.abs().sum(-1) > 0
    assert has_gradient.tolist() == [[False, False, True, True, False], [True, True, True, False, False]]


def test_a_row_without_a_prompt_is_refused() -> None:
    batch = _batch([[5], [6]], [[20], [21]])
    batch.attention_mask[1] = 0
    with pytest.raises(ValueError, match="a prompt without tokens"):
        join(batch)
