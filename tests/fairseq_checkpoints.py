"""A small ProphetNet as fairseq stores it, and a tokenizer in BERT's manner, for tests."""

import re
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration

_NAMES = {
    "model.encoder.tokens": "encoder.embed_tokens",
    "model.encoder.stack.positions.rows": "encoder.embed_positions",
    "model.encoder.stack.norm": "encoder.emb_layer_norm",
    "model.encoder.stack.layers.0.attention_norm": "encoder.layers.0.self_attn_layer_norm",
    "model.encoder.stack.layers.0.attention": "encoder.layers.0.self_attn",
    "model.encoder.stack.layers.0": "encoder.layers.0",
    "model.decoder.positions.rows": "decoder.embed_positions",
    "model.decoder.norm": "decoder.emb_layer_norm",
    "model.decoder.streams": "decoder.ngram_input_embed",
    "model.decoder.layers.0.self_attention": "decoder.layers.0.ngram_self_attn",
    "model.decoder.layers.0.position_scores": "decoder.layers.0.ngram_self_attn.relative_linear",
    "model.decoder.layers.0.self_norm": "decoder.layers.0.self_attn_layer_norm",
    "model.decoder.layers.0.cross_attention": "decoder.layers.0.encoder_attn",
    "model.decoder.layers.0.cross_norm": "decoder.layers.0.encoder_attn_layer_norm",
    "model.decoder.layers.0": "decoder.layers.0",
    "feed_forward_norm": "final_layer_norm",
    "feed_forward.up": "fc1",
    "feed_forward.down": "fc2",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
"""Our names of parameters -> fairseq's."""


def bert_like(
    texts: Iterable[str],
    *,
    entries: int | None = None,
    marks: tuple[str, ...] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
) -> PreTrainedTokenizerFast:
    """A word tokenizer with BERT's control tokens and template."""
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    vocabulary = [marks[0], "[unused0]", "[unused1]", *marks[1:], *words]
    vocabulary += [f"[unused{i + 2}]" for i in range((entries or len(vocabulary)) - len(vocabulary))]
    backend = Tokenizer(models.WordLevel({name: i for i, name in enumerate(vocabulary)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = {"[PAD]": "pad", "[UNK]": "unk", "[CLS]": "cls", "[SEP]": "sep", "[MASK]": "mask"}
    if {"[CLS]", "[SEP]"} <= set(marks):
        ids = [(name, vocabulary.index(name)) for name in ("[CLS]", "[SEP]")]
        backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ids)
    special = {f"{names[mark]}_token": mark for mark in marks}
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **special)


def save_released(file: Path) -> Path:
    """Write a small model of 400 entries under fairseq's names."""
    torch.manual_seed(0)
    shape = {
        "vocab_size": 400,
        "hidden_size": 64,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 32,
    }
    shape |= {
        "decoder_ffn_dim": 32,
        "encoder_attention_heads": 1,
        "decoder_attention_heads": 1,
        "init_std": 0.3,  # type: ignore[dict-item]
    }
    shape |= {"max_position_embeddings": 513, "decoder_positions": 514}
    model = ProphetNetForConditionalGeneration(ProphetNetConfig(**shape))
    state = {}
    for name, tensor in model.state_dict().items():
        for ours, other in _NAMES.items():
            name = name.replace(f"{ours}.", f"{other}.")
        state[name] = tensor.clone()
    del state["lm_head.weight"]
    torch.save({"model": state}, file)
    return file
