"""`precis convert` as a user meets it: a model folder that `precis summarize` takes, or one line of what is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import ProphetNetConfig, ProphetNetForConditionalGeneration

from tests.tiny_models import documents, our_tokenizer

Precis = Callable[..., Any]


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of transformers without a tokenizer."""
    torch.manual_seed(0)
    ids = {
        "eos_token_id": 2,
        "bos_token_id": 2,
        "decoder_start_token_id": 2,
        "vocab_size": len(our_tokenizer()),
    }
    heads = {"num_encoder_attention_heads": 2, "num_decoder_attention_heads": 2, "hidden_size": 16}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    model = ProphetNetForConditionalGeneration(ProphetNetConfig(**ids, **heads, **layers, init_std=0.2))
    model.generation_config.max_new_tokens = 6
    model.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_a_converted_model_summarizes(precis: Precis, theirs: Path, tmp_path: Path) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    (tmp_path / "a.txt").write_text(documents(1)[0])
    outcome = precis("convert", theirs, "--out", tmp_path / "out", "--tokenizer", tmp_path / "words")
    assert outcome.code == 0, outcome.err
    assert "2 predicting streams" in outcome.out
    assert f"precis summarize FILE --model {tmp_path / 'out'}" in outcome.out
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"model.safetensors", "tokenizer.json"}
    summarized = precis("summarize", tmp_path / "a.txt", "--model", tmp_path / "out")
    assert summarized.code == 0, summarized.err
    assert "read all" in summarized.err


def test_without_a_tokenizer_it_says_what_is_missing(precis: Precis, theirs: Path, tmp_path: Path) -> None:
    outcome = precis("convert", theirs, "--out", tmp_path / "out")
    assert outcome.code == 0
    assert [
        line for line in outcome.err.splitlines() if "lacks a tokenizer" in line and "--tokenizer" in line
    ]
    (tmp_path / "a.txt").write_text("Ann sings.")
    refused = precis("summarize", tmp_path / "a.txt", "--model", tmp_path / "out")
    assert refused.code == 2
    assert "no tokenizer" in refused.error
