"""Small random language models in GGUF files, written with the package `gguf`, for tests."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}
CHAT = (
    "{% for m in messages %}<|start|>{{ m['role'] }}: {{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant:{% endif %}"
)
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ċ", "Ċ")]
_CONTROL = ["<|start|>", "<|end|>", "<|turn|>"]
TOKENS = [*_CONTROL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *(left + right for left, right in MERGES)]


def random_model(kind: str = "llama") -> PreTrainedModel:
    """A random model of two layers, in evaluation mode."""
    torch.manual_seed(0)
    config, family = KINDS[kind]
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": False}
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    made = family(config(vocab_size=len(TOKENS), max_position_embeddings=2048, **shape, **heads, **ids))
    for name, weight in made.named_parameters():
        if weight.ndim == 1:  # norms and biases, which would all be 1 or 0
            torch.nn.init.normal_(weight, mean=float("norm" in name), std=0.1)
    return made.eval()


def tokenizer() -> Tokenizer:
    """The tokenizer of the files, built without GGUF: digits one by one, then GPT-2's split."""
    made = Tokenizer(models.BPE({token: index for index, token in enumerate(TOKENS)}, MERGES))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _CONTROL])
    return made


def write_gguf(
    path: Path,
    model: PreTrainedModel | None = None,
    *,
    kind: str = "llama",
    quantized: Any = None,
    chat: str | None = CHAT,
    settings: dict[str, int | str] | None = None,
    layers: int | None = None,
) -> Path:
    """Write a model as llama.cpp's converter does.

    Args:
        quantized: a type of `gguf.GGMLQuantizationType` for the matrices; None leaves them in fp32.
        settings: added to the file's settings.
        layers: the number of layers that the settings name; if None, the model's.
    """
    model = random_model(kind) if model is None else model
    writer = gguf.GGUFWriter(path, kind)
    _add_settings(writer, model.config, kind, layers)
    _add_tokenizer(writer, chat)
    for name, value in (settings or {}).items():
        writer.add_string(name, value) if isinstance(value, str) else writer.add_uint32(name, value)
    architecture = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    names = gguf.get_tensor_name_map(architecture, model.config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        stem, ending = name.rsplit(".", 1)
        rows = weight.numpy()
        if kind == "llama" and stem.endswith(("q_proj", "k_proj")):
            rows = _halves_together(rows, model.config, stem)
        stored = f"{names.get_name(stem)}.{ending}"
        if quantized is None or rows.ndim == 1:
            writer.add_tensor(stored, np.ascontiguousarray(rows))
        else:
            writer.add_tensor(stored, gguf.quants.quantize(rows, quantized), raw_dtype=quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_settings(writer: Any, config: Any, kind: str, layers: int | None) -> None:
    writer.add_name("a model")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers if layers is None else layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if kind == "llama":
        writer.add_rope_dimension_count(config.head_dim)
    else:
        writer.add_key_length(config.head_dim)


def _add_tokenizer(writer: Any, chat: str | None) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_token_types([3 if token in _CONTROL else 1 for token in TOKENS])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(1)
    writer.add_eot_token_id(2)
    if chat is not None:
        writer.add_chat_template(chat)


def _halves_together(rows: np.ndarray, config: Any, name: str) -> np.ndarray:
    """Return the rows of each head as llama.cpp rotates them: 0, half, 1, half + 1, ..."""
    heads = config.num_attention_heads if name.endswith("q_proj") else config.num_key_value_heads
    return rows.reshape(heads, 2, len(rows) // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)
