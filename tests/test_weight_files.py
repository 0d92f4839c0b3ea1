"""Headers of safetensors are held against their file before anything else is read."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from precis.errors import UserError
from precis.weight_files import TensorHeader, read_header, read_headers


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
        (entry(), 1 << 62, "header says"),
        (b"[" * 100_000, None, "nested deeper"),
        (b"[1]", None, "no JSON object"),
        ({f"w{i}": entry()["a"] for i in range(20_001)}, None, "names 20,001 tensors"),
        (entry(shape=[1 << 40], offsets=[0, 1 << 42]), None, "its bytes are"),
        (entry(shape=[2]), None, "its bytes are"),
        (entry(offsets=[4, 0]), None, "its bytes are"),
        (entry(shape=[-1]), None, "does not say what 'a' is"),
        (entry(dtype="EVIL"), None, "does not say what 'a' is"),
        (entry(dtype=["F32"]), None, "does not say what 'a' is"),
        ({"a": 5}, None, "does not say what 'a' is"),
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
    with pytest.raises(UserError, match="header has 90 MiB, and at most 16 MiB"):
        read_header(file)


@pytest.mark.parametrize("name", ["../a.safetensors", "/a.safetensors", "sub/a.safetensors", "a.bin", ".."])
def test_an_index_names_safetensors_of_its_own_folder_alone(name: str, tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(UserError, match="which is no safetensors file of this folder"):
        read_headers(folder)


def test_shards_are_read_together(tmp_path: Path) -> None:
    for number, name in enumerate("ab"):
        save_file({name: torch.zeros(number + 1)}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert {name: t.shape for name, t in read_headers(tmp_path).items()} == {"a": (1,), "b": (2,)}
