"""Random models of a few thousand numbers with their tokenizer, made on the spot."""

from functools import cache
from pathlib import Path

import torch
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedModel, PreTrainedTokenizerBase

from precis.data.synthetic.corpus import make_pairs
from precis.data.text.unigram_tokenizer import train_tokenizer
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration


@cache
def words() -> PreTrainedTokenizerBase:
    """Train a tokenizer of 600 entries."""
    texts = [text for pair in make_pairs(40, seed=5) for text in (pair.document, pair.summary)]
    return train_tokenizer(texts, vocab_size=600)


def make(kind: str, *, seed: int = 0, scale: int = 1) -> PreTrainedModel:
    """Build a "zcodepp" or a "bart"; `scale` makes it wider and deeper."""
    torch.manual_seed(seed)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if kind == "zcodepp":
        shape = ZCodePPConfig(
            vocab_size=600 if scale == 1 else 30_000,
            hidden_size=32 * scale,
            num_attention_heads=2,
            intermediate_size=64 * scale,
            encoder_layers=2 if scale == 1 else 6,
            decoder_layers=1 if scale == 1 else 6,
            position_buckets=16,
            max_relative_positions=32,
            decoder_start_token_id=1,
            **ids,
        )
        return ZCodePPForConditionalGeneration(shape).eval()
    bart = BartConfig(
        vocab_size=600,
        d_model=32,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        **ids,
    )
    return BartForConditionalGeneration(bart).eval()


def save(kind: str, folder: Path, *, seed: int = 0, scale: int = 1) -> Path:
    """Write a model of this kind with its tokenizer as a Hugging Face folder, without a seal."""
    model = make(kind, seed=seed, scale=scale)
    generation = model.generation_config
    assert generation is not None
    generation.min_new_tokens, generation.max_new_tokens = 3, 6
    special = [*range(260), *words().all_special_ids]  # control tokens and bytes, which may not be text
    generation.suppress_tokens = sorted(set(special) - {2})
    model.save_pretrained(folder)
    words().save_pretrained(folder)
    return folder
