"""The files of a model's folder name neither code nor another place, and no sizes that the weights do not have."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from precis.storage import model_files
from precis.storage.model_files import (
    TensorHeader,
    check_decoding,
    check_sizes,
    check_tokenizer_settings,
    find_adapter,
    plain_settings,
    read_header,
    read_headers,
    shards_of,
)
from precis_text.errors import UserError


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
        "auto_map": {"AutoModel": "evil.Evil"},  # type: ignore[dict-item]
        "encoder": {"_attn_implementation": "sdpa", "auto_map": {}},  # type: ignore[dict-item]
    }
    assert plain_settings(values, "config.json") == {"d_model": 8, "quantization_config": None, "encoder": {}}
    assert caplog.messages == ["config.json: names code, which precis does not run: auto_map"]


@pytest.mark.parametrize(
    "values", [{"custom_generate": "a"}, {"trust_remote_code": True}, {"compile_config": {"a": 1}}]
)
def test_decoding_settings_that_name_code_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="does not run"):
        check_decoding(values, "generation_config.json")
    check_decoding({**dict.fromkeys(values), "num_beams": 4}, "generation_config.json")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"encoder_layers": 200_000}, "encoder_layers is 200,000, above 120"),
        ({"num_hidden_layers": 121}, "num_hidden_layers"),
        ({"num_labels": 10**9}, "num_labels"),
        ({"d_model": 10**9}, "d_model is 1,000,000,000, above 5,000,000"),
        ({"d_model": 1e18}, "d_model"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"encoder": {"hidden_size": 10**9}}, "hidden_size"),
        ({"attention_window": [8, 10**9]}, "attention_window"),
    ],
)
def test_sizes_beyond_the_weights_are_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        check_sizes(values, "config.json", elements=5_000_000, tensors=120)


def test_without_a_count_of_tensors_the_limit_is_ours() -> None:
    with pytest.raises(UserError, match=r"encoder_layers is 200,000, above [0-9,]+, precis's limit; take"):
        check_sizes({"encoder_layers": 200_000}, "config.json", elements=None, tensors=None)


@pytest.mark.parametrize(
    "values", [{"encoder_layers": 120}, {"d_model": 5_000_000}, {"offset": [-5_000_000]}]
)
def test_sizes_that_just_fit_the_weights_pass(values: dict[str, Any]) -> None:
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
    values: dict[str, str | None] = {"special_tokens_map_file": "/home/a/map.json", "vocab_file": "../x"}
    values |= {"spm_file": "a.model", "tokenizer_file": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(values))
    assert check_tokenizer_settings(tmp_path) == {"special_tokens_map_file": None, "vocab_file": None}
    (tmp_path / "tokenizer_config.json").write_text('{"gguf_file": "x"}')
    with pytest.raises(UserError, match="gguf_file names other files"):
        check_tokenizer_settings(tmp_path)


def write(file: Path, header: Any, *, length: int | None = None, tail: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + tail)
    return file


def test_what_safetensors_writes_is_read(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(2, 3), "b": torch.zeros(0, dtype=torch.int64)}
    tensors["c"] = torch.zeros((), dtype=torch.bfloat16)
    save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "pt"})
    assert read_header(tmp_path / "x.safetensors") == {
        "a": TensorHeader("F32", (2, 3)),
        "b": TensorHeader("I64", (0,)),
        "c": TensorHeader("BF16", ()),
    }


def entry(dtype: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


@pytest.mark.parametrize(
    ("header", "length", "says"),
    [
        (entry(), 1 << 62, "header declares"),
        (b"[" * 100_000, None, "nested deeper"),
        (b"[1]", None, "not a JSON object"),
        ({f"w{i}": entry()["a"] for i in range(20_001)}, None, "names 20,001 tensors"),
        (entry(shape=[1 << 40], offsets=[0, 1 << 42]), None, "its bytes are"),
        (entry(shape=[2]), None, "its bytes are"),
        (entry(offsets=[4, 0]), None, "its bytes are"),
        (entry(shape=[-1]), None, "does not describe 'a'"),
        (entry(dtype="EVIL"), None, "does not describe 'a'"),
        (entry(dtype=["F32"]), None, "does not describe 'a'"),
        ({"a": 5}, None, "does not describe 'a'"),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_one_line(
    header: Any, length: int | None, says: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "model.safetensors", header, length=length, tail=b"0000")
    with pytest.raises(UserError, match=says) as caught:
        read_header(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_a_header_of_many_megabytes_is_not_read(tmp_path: Path) -> None:
    with (file := tmp_path / "model.safetensors").open("wb") as sparse:
        sparse.write(struct.pack("<Q", 90 << 20))
        sparse.truncate(91 << 20)
    with pytest.raises(UserError, match="header has 90 MiB, above the limit of 16 MiB"):
        read_header(file)


@pytest.mark.parametrize("name", ["../a.safetensors", "/a.safetensors", "sub/a.safetensors", "a.bin", ".."])
def test_an_index_names_safetensors_of_its_own_folder_alone(name: str, tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(UserError, match="which is not a safetensors file of this folder"):
        read_headers(folder)


def test_one_file_of_weights_is_read_before_an_index(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text("no index")
    assert read_headers(tmp_path) == {"a": TensorHeader("F32", (2,))}


def test_shards_are_read_together(tmp_path: Path) -> None:
    for number, name in enumerate("ab"):
        save_file({name: torch.zeros(number + 1)}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert {name: t.shape for name, t in read_headers(tmp_path).items()} == {"a": (1,), "b": (2,)}


def test_a_header_at_its_limits_is_read_and_one_beyond_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.safetensors"
    save_file({name: torch.zeros(1) for name in "abc"}, file)
    monkeypatch.setattr(model_files, "MAX_TENSORS", 3)
    monkeypatch.setattr(model_files, "MAX_HEADER", struct.unpack("<Q", file.read_bytes()[:8])[0])
    assert set(read_header(file)) == {"a", "b", "c"}
    monkeypatch.setattr(model_files, "MAX_TENSORS", 2)
    with pytest.raises(UserError, match="names 3 tensors, above the limit of 2"):
        read_header(file)
    monkeypatch.setattr(model_files, "MAX_HEADER", model_files.MAX_HEADER - 1)
    with pytest.raises(UserError, match="its header has"):
        read_header(file)


@pytest.mark.parametrize("places", [{}, [], ["a.safetensors"], None])
def test_an_index_without_places_is_one_line(places: Any, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(UserError, match="lacks a weight_map, which gives the place of each weight"):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    ("name", "most", "known"),
    [
        ("num_labels", 100_000, {"elements": 10**9, "tensors": 120}),
        ("num_layers", 120, {"elements": None, "tensors": 120}),
        ("num_layers", 64, {"elements": None, "tensors": 3}),
        ("num_layers", 10_000, {"elements": None, "tensors": 50_000}),
        ("num_layers", 10_000, {"elements": 5, "tensors": None}),
        ("d_model", 5_000_000, {"elements": 5_000_000, "tensors": None}),
        ("d_model", 65_536, {"elements": 3, "tensors": None}),
        ("d_model", 10**9, {"elements": None, "tensors": 120}),
    ],
)
def test_each_size_has_a_largest_value_by_what_is_known_of_the_weights(
    name: str, most: int, known: dict[str, int | None]
) -> None:
    for value in (most, -most):
        check_sizes({name: value}, "config.json", elements=known["elements"], tensors=known["tensors"])
    for value in (most + 1, -most - 1):
        with pytest.raises(
            UserError, match=rf"^config\.json: {name} is {value:,}, above {most:,}, "
        ) as caught:
            check_sizes({name: value}, "config.json", elements=known["elements"], tensors=known["tensors"])
    layers = "precis's limit;" if known["tensors"] is None else f"fits its {known['tensors']} weight tensors;"
    assert name != "num_layers" or layers in str(caught.value)


def test_truth_values_and_rates_are_no_sizes_but_a_large_fraction_is() -> None:
    check_sizes({"d_model": True, "theta": 1e6, "mask": -1e30}, "x", elements=3, tensors=None)
    with pytest.raises(UserError, match="theta"):
        check_sizes({"theta": 1_000_001.0}, "x", elements=3, tensors=None)


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (64, "F64 I64 U64 C64"),
        (32, "F32 I32 U32"),
        (16, "F16 BF16 I16 U16"),
        (8, "I8 U8 BOOL F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ"),
        (6, "F6_E2M3 F6_E3M2"),
        (4, "F4"),
    ],
)
def test_a_tensor_has_as_many_bytes_as_its_type_and_shape_need(bits: int, names: str, tmp_path: Path) -> None:
    for dtype in names.split():
        for wrong in (-1, 0, 1):
            header = entry(dtype, (2, 4), (0, bits + wrong))
            file = write(tmp_path / "model.safetensors", header, tail=bytes(bits + 1))
            if wrong:
                with pytest.raises(UserError, match="but its bytes are"):
                    read_header(file)
            else:
                assert read_header(file)["a"].elements == 8


def test_a_tensor_ends_with_its_file_at_the_latest(tmp_path: Path) -> None:
    for space, fits in ((7, False), (8, True), (9, True)):
        header = entry("U8", (4,), (4, 8))
        file = write(tmp_path / "model.safetensors", header, tail=bytes(space))
        if fits:
            assert read_header(file) == {"a": TensorHeader("U8", (4,))}
        else:
            with pytest.raises(UserError, match=rf"its bytes are 4 to 8 of {space}$"):
                read_header(file)


@pytest.mark.parametrize("offsets", [(-4, 0), (True, 5), (0, 4.0)])
def test_the_place_of_a_tensor_is_two_whole_numbers(offsets: tuple[Any, Any], tmp_path: Path) -> None:
    file = write(tmp_path / "model.safetensors", entry(offsets=offsets), tail=bytes(8))
    with pytest.raises(UserError, match="does not describe 'a'"):
        read_header(file)


def test_a_header_ends_with_its_file_at_the_latest(tmp_path: Path) -> None:
    text = b'{"__metadata__": {"format": "pt"}}'
    file = write(tmp_path / "model.safetensors", text)
    assert read_header(file) == {}
    total = len(text) + 8
    for beyond in (1, 2, 16, 17):
        write(file, text, length=len(text) + beyond)
        says = f"its header declares {len(text) + beyond} bytes, but the file has {total}$"
        with pytest.raises(UserError, match=says):
            read_header(file)
    for count, says in (
        (0, "declares 0 bytes, but the file has 0"),
        (7, "the file has 7"),
        (8, "its header "),
    ):
        file.write_bytes(bytes(count))
        with pytest.raises(UserError, match=says) as caught:
            read_header(file)
        assert ("declares" in str(caught.value)) == (count < 8)


def test_a_header_of_16_mebibytes_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    for length in (16 << 20, (16 << 20) + 1):
        with file.open("wb") as sparse:
            sparse.write(struct.pack("<Q", length))
            sparse.truncate(length + 8)
        with pytest.raises(UserError, match="its header ") as caught:
            read_header(file)
        assert ("above the limit of 16 MiB" in str(caught.value)) == (length > 16 << 20)


def test_all_shards_together_name_as_many_tensors_as_one_file_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        save_file({name: torch.zeros(1)}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in "abc"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    monkeypatch.setattr(model_files, "MAX_TENSORS", 3)
    assert set(read_headers(tmp_path)) == {"a", "b", "c"}
    monkeypatch.setattr(model_files, "MAX_TENSORS", 2)
    with pytest.raises(UserError, match="has more than 2 tensors, the limit"):
        read_headers(tmp_path)
    save_file({"a": torch.zeros(1)}, tmp_path / "b.safetensors")
    with pytest.raises(
        UserError, match=r"b\.safetensors: contains 'a', which another file of .* also contains"
    ):
        read_headers(tmp_path)


def test_an_index_names_at_most_a_thousand_files_and_20_000_tensors_are_the_most(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors.index.json"
    places = {f"w{number}": f"{number:04}.safetensors" for number in range(1000)}
    file.write_text(json.dumps({"weight_map": places}))
    assert shards_of(tmp_path) == [tmp_path / name for name in sorted(places.values())]
    file.write_text(json.dumps({"weight_map": {**places, "more": "more.safetensors"}}))
    with pytest.raises(UserError, match="names 1,001 files, above the limit of 1,000"):
        shards_of(tmp_path)
    assert model_files.MAX_TENSORS == 20_000


def test_empty_entries_and_a_missing_file_name_nothing(tmp_path: Path) -> None:
    assert check_tokenizer_settings(tmp_path) == {}
    (tmp_path / "tokenizer_config.json").write_text('{"kernel_config": {}, "vocab_file": "vocab.txt"}')
    assert check_tokenizer_settings(tmp_path) == {}
    nothing: tuple[Any, ...] = (None, False, {}, "")
    for value in nothing:
        check_decoding({"trust_remote_code": value, "compile_config": value}, "generation_config.json")


def test_an_adapter_is_found_in_its_run_and_not_in_a_folder_of_runs_with_several_seeds(
    tmp_path: Path,
) -> None:
    adapter = tmp_path / "seed-1" / "adapter"
    adapter.mkdir(parents=True)
    assert find_adapter(adapter.parent) is None
    (adapter / "adapter.json").write_text("{}")
    assert find_adapter(adapter.parent) == find_adapter(adapter) == adapter
    (tmp_path / "seeds.json").write_text("{}")
    with pytest.raises(UserError, match=r"holds runs with several seeds.*such as .*seed-1"):
        find_adapter(tmp_path)
    (tmp_path / "config.json").write_text("{}")  # a model that was copied there
    assert find_adapter(tmp_path) is None
