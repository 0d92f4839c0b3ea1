"""The contender of `benchmarks.pages`: its vectors are transformers' means of states, and its summary fits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel

from benchmarks.minilm import MiniLM

WORDS = [
    "the", "mill", "turns", "again", "a", "new", "bridge", "opened", "on", "monday", "and", "rye", "is", "cheap",
    "[UNK]", ".",
]  # fmt: skip
TEXTS = ["The mill turns again.", "A new bridge opened on Monday and the mill turns again.", "Rye is cheap."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(tmp_path)
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_vector_is_the_mean_of_the_states_in_any_company(folder: Path) -> None:
    model = BertModel.from_pretrained(folder).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found = MiniLM(folder, threads=1).vectors(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        ids = torch.tensor([tokenizer.encode(text).ids])
        with torch.no_grad():
            mean = model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_the_summary_is_the_sentences_nearest_to_the_mean_that_fit(folder: Path) -> None:
    encoder = MiniLM(folder, threads=1)
    document, short = " ".join(TEXTS), [TEXTS[0], TEXTS[2]]
    assert encoder.summarize(document, 8) == "\n".join(short)
    vectors = encoder.vectors(TEXTS)
    near = vectors @ vectors.mean(0)
    assert encoder.summarize(document, 4) == max(short, key=lambda text: near[TEXTS.index(text)])
