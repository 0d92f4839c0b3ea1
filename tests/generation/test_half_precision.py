"""Models held in half precision are decoded in it, by every loop, and write tokens that fp32 finds good."""

from functools import cache

import pytest
import torch
from transformers import PreTrainedModel

from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Weights
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from tests.fast_cases import (
    Called,
    Uncaptured,
    config,
    inputs,
    model,
    prophet,
    prophet_documents,
    prophet_settings,
)

TOKENS = 16


@cache
def made(kind: str, dtype: torch.dtype) -> PreTrainedModel:
    """With streams that draft."""
    if kind == "prophetnet":
        return prophet(1, ngram=3).to(dtype)
    torch.manual_seed(4)
    shape = {**model().config.to_diff_dict(), "future_tokens": 2}
    return ZCodePPForConditionalGeneration(type(model().config)(**shape)).eval().to(dtype)


def written(way: str, kind: str, dtype: torch.dtype, weights: Weights) -> tuple[torch.Tensor, torch.Tensor]:
    """One document's ids, and what was written."""
    options: dict[str, object] = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS}
    options |= {"no_repeat_ngram_size": 0, "num_beams": 3 if way == "beams" else 1}
    asked = config(**options) if kind == "zcodepp" else prophet_settings(**options)
    given = inputs(1) if kind == "zcodepp" else prophet_documents(1)
    given = {name: value[:1] for name, value in given.items()}
    loop = FastDecoder(made(kind, dtype), weights, capture=Called() if way == "static" else Uncaptured())
    if way == "drafts":
        return given["input_ids"], torch.tensor([loop.draft(given["input_ids"], asked).tokens])
    return given["input_ids"], torch.tensor(loop(given, asked))


@pytest.mark.parametrize("weights", [AsGiven(), BFloat16()], ids=["as given", "bf16 weights"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("way", ["greedy", "static", "beams", "drafts"])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_tokens_are_good_ones(kind: str, way: str, dtype: torch.dtype, weights: Weights) -> None:
    source, rows = written(way, kind, dtype, weights)
    assert rows.shape == (1, TOKENS + 1)
    exact = made(kind, torch.float32)
    with torch.no_grad():
        logits = exact(input_ids=source, decoder_input_ids=rows[:, :-1]).logits
    end = exact.config.eos_token_id
    logits[..., end] = -torch.inf  # held back until the last token
    short = logits.amax(-1) - logits.gather(-1, rows[:, 1:, None]).squeeze(-1)
    spread = logits[logits.isfinite()].std()
    assert (short / spread).median() < 0.1
    assert (short / spread).mean() < (0.5 if way == "beams" else 0.1)
