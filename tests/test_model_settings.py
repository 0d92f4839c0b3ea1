"""Settings of a model name neither code nor another place, and no sizes that its weights do not have."""

import json
from pathlib import Path
from typing import Any

import pytest

from precis.errors import UserError
from precis.model_settings import check_decoding, check_sizes, check_tokenizer_settings, plain_settings


@pytest.mark.parametrize(
    "values",
    [
        {"_attn_implementation": "kernels-community/flash-attn"},
        {"attn_implementation": "somebody/evil:attend"},
        {"_attn_implementation_internal": "somebody/evil"},
        {"_experts_implementation": "somebody/evil"},
        {"attn_implementation": {"": "sdpa", "text": "somebody/evil"}},
        {"encoder": {"attn_implementation": "somebody/evil"}},
        {"parts": [{"_attn_implementation": "somebody/evil"}]},
        {"quantization_config": {"quant_method": "awq"}},
        {"transformers_weights": "../x.safetensors"},
        {"configuration_files": ["config.1.json"]},
        {"kernel_config": {"a": "b"}},
        {"use_kernels": True},
        {"fusion_config": {"a": True}},
        {"gguf_file": "/etc/passwd"},
        {"base_model_name_or_path": "somebody/evil"},
    ],
)
def test_what_names_code_or_another_place_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"^x/config\.json: ") as caught:
        plain_settings({"d_model": 8, **values}, "x/config.json")
    assert "\n" not in str(caught.value)


def test_usual_implementations_and_python_files_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    values = {"d_model": 8, "_attn_implementation_autoset": True, "quantization_config": None}
    values |= {
        "auto_map": {"AutoModel": "evil.Evil"},
        "encoder": {"_attn_implementation": "sdpa", "auto_map": {}},
    }
    assert plain_settings(values, "config.json") == {"d_model": 8, "quantization_config": None, "encoder": {}}
    assert caplog.messages == ["config.json: names code, which is not run: auto_map"]


@pytest.mark.parametrize(
    "values", [{"custom_generate": "a"}, {"trust_remote_code": True}, {"compile_config": {"a": 1}}]
)
def test_decoding_settings_that_name_code_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="is not run"):
        check_decoding(values, "generation_config.json")
    check_decoding({**dict.fromkeys(values), "num_beams": 4}, "generation_config.json")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"encoder_layers": 200_000}, "encoder_layers is 200,000, and at most 120"),
        ({"num_hidden_layers": 121}, "num_hidden_layers"),
        ({"num_labels": 10**9}, "num_labels"),
        ({"d_model": 10**9}, "d_model is 1,000,000,000, and at most 5,000,000"),
        ({"d_model": 1e18}, "d_model"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"encoder": {"hidden_size": 10**9}}, "hidden_size"),
        ({"attention_window": [8, 10**9]}, "attention_window"),
    ],
)
def test_sizes_beyond_the_weights_are_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        check_sizes(values, "config.json", elements=5_000_000, tensors=120)


def test_usual_sizes_of_a_large_model_pass() -> None:
    values = {
        "vocab_size": 250_112,
        "d_model": 1024,
        "num_layers": 24,
        "max_length": 10**9,
        "pad_token_id": 10**9,
    }
    check_sizes(
        {**values, "mask": -1e9, "scale_embedding": True, "dropout": 0.1, "layers_name": "x"},
        "config.json",
        elements=600_000_000,
        tensors=500,
    )


def test_paths_of_the_machine_that_wrote_a_tokenizer_are_overruled(tmp_path: Path) -> None:
    values = {"special_tokens_map_file": "/home/a/map.json", "vocab_file": "../x"}
    values |= {"spm_file": "a.model", "tokenizer_file": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(values))
    assert check_tokenizer_settings(tmp_path) == {"special_tokens_map_file": None, "vocab_file": None}
    (tmp_path / "tokenizer_config.json").write_text('{"gguf_file": "x"}')
    with pytest.raises(UserError, match="gguf_file names other files"):
        check_tokenizer_settings(tmp_path)
