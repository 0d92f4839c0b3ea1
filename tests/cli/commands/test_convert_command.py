"""`precis convert` as a user meets it: a model folder that `precis summarize` takes, or one line of what is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DebertaV2Config, DebertaV2Model, ProphetNetConfig, ProphetNetForConditionalGeneration

from precis.generation.model_loader import load_model
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


def test_a_deberta_becomes_the_encoder_of_a_model_to_train(precis: Precis, tmp_path: Path) -> None:
    torch.manual_seed(1)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    v3 = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "share_att_key": True}
    more = {"position_buckets": 256, "norm_rel_ebd": "layer_norm", "position_biased_input": False}
    config = DebertaV2Config(vocab_size=len(our_tokenizer()) + 3, type_vocab_size=0, **shape, **v3, **more)
    theirs = DebertaV2Model(config).eval()
    theirs.save_pretrained(tmp_path / "deberta")
    our_tokenizer().save_pretrained(tmp_path / "deberta")
    outcome = precis("convert", tmp_path / "deberta", "--out", tmp_path / "out", "--decoder-layers", "1")
    assert outcome.code == 0, outcome.err
    assert f"precis finetune --model {tmp_path / 'out'} --data PAIRS" in outcome.out
    ours = load_model(str(tmp_path / "out"), device="cpu").model
    assert (ours.config.encoder_layers, ours.config.decoder_layers) == (2, 1)
    assert ours.config.eos_token_id == our_tokenizer().sep_token_id
    ids = torch.arange(4, 20)[None]
    with torch.inference_mode():
        expected, found = (one.last_hidden_state for one in (theirs(ids), ours.eval().get_encoder()(ids)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_a_decoder_depth_is_for_a_deberta(precis: Precis, theirs: Path, tmp_path: Path) -> None:
    outcome = precis("convert", theirs, "--out", tmp_path / "out", "--decoder-layers", "1")
    assert outcome.code == 2
    assert "--decoder-layers is for a DeBERTa" in outcome.err
