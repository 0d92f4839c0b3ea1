"""The loss of a causal language model is on the summary alone, at the positions of generation."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from precis.objectives.causal import CausalSummary, join
from tests.objectives.test_sequence_to_sequence import Batch

_PAD = 0
_PAIRS = [([5, 6, 7], [20, 2]), ([8], [21, 22, 2]), ([9] * 9, [3])]
_SHAPE = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
}


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def model(request: pytest.FixtureRequest) -> LlamaForCausalLM | Qwen2ForCausalLM:
    torch.manual_seed(0)
    if request.param == "llama":
        return LlamaForCausalLM(LlamaConfig(**_SHAPE, head_dim=8)).double().eval()
    return Qwen2ForCausalLM(Qwen2Config(**_SHAPE, tie_word_embeddings=True)).double().eval()


def _batch(pairs: list[tuple[list[int], list[int]]]) -> Batch:
    def padded(rows: list[list[int]], value: int) -> torch.Tensor:
        width = max(map(len, rows))
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])

    prompts, summaries = [p for p, _ in pairs], [s for _, s in pairs]
    mask = padded([[1] * len(row) for row in prompts], 0)
    return Batch(input_ids=padded(prompts, _PAD), attention_mask=mask, labels=padded(summaries, -100))


def test_the_summary_follows_its_prompt_without_padding_between() -> None:
    joined = join(_batch([([5, 6, 7], [20, 2]), ([8], [21, 22, 2])]))
    assert joined.input_ids.tolist() == [[5, 6, 7, 20, 2], [8, 21, 22, 2, 0]]
    assert joined.attention_mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    assert joined.next_tokens.tolist() == [[-100, -100, 20, 2, -100], [21, 22, 2, -100, -100]]


def test_the_loss_is_the_sum_over_rows_read_alone(model: LlamaForCausalLM) -> None:
    loss = CausalSummary()(model, _batch(_PAIRS))
    expected = 0.0
    for prompt, summary in _PAIRS:
        scores = model(torch.tensor([prompt + summary])).logits[0].log_softmax(-1)
        expected -= sum(scores[len(prompt) - 1 + i, token].item() for i, token in enumerate(summary))
    assert loss.total.item() == pytest.approx(expected, rel=1e-6)  # the softmax is in fp32
    assert loss.num_tokens is not None
    assert (int(loss.num_targets), int(loss.num_tokens)) == (6, 19)


def test_gradients_equal_those_of_all_logits(model: LlamaForCausalLM) -> None:
    batch = _batch(_PAIRS)
    CausalSummary()(model, batch).total.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    joined = join(batch)
    logits = model(input_ids=joined.input_ids, attention_mask=joined.attention_mask).logits
    torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), joined.next_tokens.flatten(), ignore_index=-100, reduction="sum"
    ).backward()
    for name, parameter in model.named_parameters():
        assert torch.allclose(found[name], parameter.grad, atol=1e-6, rtol=1e-5), name
    model.zero_grad()


def test_states_that_predict_prompt_tokens_carry_no_gradient(model: LlamaForCausalLM) -> None:
    seen: list[torch.Tensor] = []

    def keep(_module: object, given: tuple[torch.Tensor]) -> None:
        given[0].retain_grad()
        seen.append(given[0])

    handle = model.lm_head.register_forward_pre_hook(keep)
    CausalSummary()(model, _batch([([5, 6, 7], [20, 2]), ([8], [21, 22, 2])])).total.backward()
    handle.remove()
    model.zero_grad()
    assert seen[0].grad is not None
    has_gradient = seen[0].grad.abs().sum(-1) > 0
    assert has_gradient.tolist() == [[False, False, True, True, False], [True, True, True, False, False]]


def test_the_head_scores_nothing_but_the_summary_and_keeps_no_hook(model: LlamaForCausalLM) -> None:
    rows: list[int] = []
    handle = model.lm_head.register_forward_hook(lambda _module, _given, made: rows.append(made.shape[1]))
    CausalSummary()(model, _batch(_PAIRS))
    handle.remove()
    assert rows == [6]
    assert not model.lm_head._forward_pre_hooks


def test_a_row_without_a_prompt_is_refused() -> None:
    batch = _batch([([5], [20]), ([6], [21])])
    batch.attention_mask[1] = 0
    with pytest.raises(ValueError, match="a prompt without tokens"):
        join(batch)
