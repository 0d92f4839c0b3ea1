"""Models in GGUF files: the values of the same model in transformers, and files that do not fit."""

import json
import socket
import struct
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from precis.cli import main
from precis.generation import gguf_file
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.generation.model_names import refuse_missing
from precis.generation.writers.causal_model import CausalModel
from precis.generation.writers.writer_opening import open_writer
from precis_text.errors import UserError

gguf = pytest.importorskip("gguf")
from tests.gguf_files import CHAT, KINDS, random_model, tokenizer, write_gguf  # noqa: E402

_IDS = torch.arange(3, 60)[None]


def opened(path: Path) -> CausalModel:
    return CausalModel.from_pretrained(path, device="cpu")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        return model(_IDS).logits


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_logits_are_those_of_the_model_in_transformers(tmp_path: Path, kind: str) -> None:
    model = random_model(kind)
    read = opened(write_gguf(tmp_path / "m.gguf", model, kind=kind)).model
    assert type(read) is type(model)
    assert read.dtype is torch.float32
    assert not read.training
    assert logits(model).abs().max() > 0.1
    torch.testing.assert_close(logits(read), logits(model), atol=1e-5, rtol=0)
    for name, weight in model.state_dict().items():
        assert torch.equal(read.state_dict()[name], weight), name


def test_8_bit_weights_are_within_half_a_step(tmp_path: Path) -> None:
    model = random_model()
    q8 = gguf.GGMLQuantizationType.Q8_0
    read = opened(write_gguf(tmp_path / "m.gguf", model, quantized=q8)).model
    for name, weight in model.state_dict().items():
        blocks, found = weight.reshape(-1, 32), read.state_dict()[name].reshape(-1, 32)
        steps = blocks.abs().amax(1, keepdim=True) / 127 if weight.ndim == 2 else torch.zeros(1)
        assert ((found - blocks).abs() <= 0.5 * steps + 0.07 * steps).all(), (
            name
        )  # 127 / 2048: steps are fp16
    assert (logits(read) - logits(model)).abs().max() < 0.01


def test_settings_and_tokenizer_come_from_the_file(tmp_path: Path) -> None:
    chat = opened(write_gguf(tmp_path / "m.gguf"))
    assert (chat.context, chat.context_is_assumed) == (2048, False)
    assert chat.tokenizer.chat_template == CHAT
    assert {*chat.control} == {"<|start|>", "<|end|>", "<|turn|>"}
    assert chat.model.generation_config.eos_token_id == [1, 2]  # the end mark, and the end of a turn
    assert chat.closing() == 1
    reference = tokenizer()
    for text in ("the café, in 1998:\n\n12 of the 15.", "<|start|>the<|end|>", "日本 ½ ²  3"):
        ids = chat.tokenizer(text)["input_ids"]
        assert ids == reference.encode(text).ids
        assert chat.tokenizer.decode(ids) == text


def test_the_file_is_a_writer_and_its_content_decides_the_fingerprint(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.GGUF")
    found = locate(path)
    assert found.is_writer
    assert not found.is_classifier
    assert not found.is_endpoint
    assert (found.folder, found.gguf) == (None, path)
    before = found.fingerprint
    assert before["model"] == str(path.resolve())
    assert len(before["weights"]) == 16
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert locate(path).fingerprint["weights"] != before["weights"]


def test_summarize_writes_with_the_file_and_nothing_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    path, text = write_gguf(tmp_path / "m.gguf"), tmp_path / "a.txt"
    text.write_text("The boats are sold. Ann sold Bob 3 boats. Carl paid 70 pounds. They left. " * 3)
    before = {*tmp_path.iterdir()}
    assert main(["summarize", str(text), "--model", str(path), "--words", "8", "--threads", "1"]) == 0
    printed = capsys.readouterr()
    assert 0 < len(printed.out.split()) <= 8
    assert "Converting" not in printed.err
    assert "Loading" not in printed.err
    assert {*tmp_path.iterdir()} == before


def test_files_beside_it_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    path = write_gguf(tmp_path / "a" / "m.gguf")
    expected = logits(opened(path).model)
    for name in ("config.json", "adapter_config.json", "tokenizer_config.json", "generation_config.json"):
        (path.parent / name).write_text('{"auto_map": {"AutoModel": "evil.Evil"}, "chat_template": "other"}')
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    for name in ("m.gguf", "model.gguf"):
        Path(name).write_bytes(b"GGUF, but not the one that was named")
    chat = opened(path)
    assert torch.equal(logits(chat.model), expected)
    assert chat.tokenizer.chat_template == CHAT


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    monkeypatch.setattr(gguf_file, "is_gguf_available", lambda: False)
    with pytest.raises(UserError, match=r"^a \.gguf file needs packages that are not installed: .*gguf"):
        open_writer(path)


def test_a_missing_file_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    for name in (str(tmp_path / "m.gguf"), "m.gguf", "owner/m.gguf"):
        with pytest.raises(UserError, match="no such file"):
            refuse_missing(name)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"chat": None}, "lacks a chat template; use the file of an instruct model"),
        ({"settings": {"split.count": 3}}, r"is one of 3 parts; merge them"),
        ({"layers": 3}, r"parameters are missing, 'model\.layers\.2\."),
        ({"layers": 300}, "which do not fit in its"),
        ({"layers": 3_000_000}, "num_hidden_layers is 3,000,000"),
    ],
)
def test_a_file_that_cannot_write_is_refused_in_one_line(
    tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    path = write_gguf(tmp_path / "m.gguf", **options)
    with pytest.raises(UserError, match=problem) as caught:
        open_writer(path, device="cpu")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "rwkv6")
    writer.add_chat_template(CHAT)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()
    with pytest.raises(UserError, match=r"cannot read the architecture 'rwkv6'.*llama\.cpp"):
        open_writer(path)


def test_architectures_for_which_transformers_downloads_code_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    header = {"general.architecture": "lfm2", "tokenizer.chat_template": CHAT}
    monkeypatch.setattr(gguf_file, "read_gguf_metadata", lambda _: (header, ()))
    assert gguf_file.check_gguf(path) == header
    monkeypatch.setattr(gguf_file, "is_kernels_available", lambda: True)
    with pytest.raises(UserError, match="downloads code"):
        gguf_file.check_gguf(path)


def test_a_model_larger_than_memory_is_refused_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    monkeypatch.setattr(gguf_file, "free_bytes", lambda _: 100_000)
    with pytest.raises(
        UserError, match=r"weights need 0\.0 GiB of memory in float32, and only 0\.0 GiB are free"
    ):
        load_model(path, kind=AutoModelForCausalLM)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.1, 0.5, 0.999])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, part: float) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(UserError, match=r"cut short|is not a GGUF file") as caught:
        open_writer(path, device="cpu")
    assert "\n" not in str(caught.value)


def test_a_list_without_end_is_refused(tmp_path: Path) -> None:
    """The reader of `gguf` would append to a list until memory is full."""
    path = tmp_path / "m.gguf"
    key = b"general.tags"
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 0, 1 << 60)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry)
    with pytest.raises(UserError, match="damaged or cut short"):
        open_writer(path)


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"GGML" + b"\0" * 100, b"GGUF" + b"\xff" * 200, b"text " * 50]
)
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"is not a GGUF file|damaged") as caught:
        open_writer(path)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    model = random_model()
    model.model.layers[1].mlp.up_proj.weight.data[3, 4] = float("nan")
    with pytest.raises(UserError, match="not finite"):
        open_writer(write_gguf(tmp_path / "m.gguf", model), device="cpu")


def test_scaled_positions_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_gguf(tmp_path / "m.gguf", settings={"llama.rope.scaling.type": "yarn"})
    open_writer(path, device="cpu")
    assert "leaves out how it scales positions" in caplog.text


def test_an_unknown_way_to_split_text_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    monkeypatch.setattr(gguf_file, "_DIGITS_APART", frozenset())
    open_writer(path, device="cpu")
    assert "does not know its way to split text, 'smollm'" in caplog.text


def test_an_adapter_on_the_file_finds_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    row = json.dumps(
        {"document": "Ann sold Bob 3 boats. They left. " * 4, "summary": "Ann sold Bob 3 boats."}
    )
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text(f"{row}\n" * 4)
    data, out, text = str(tmp_path), str(tmp_path / "lora"), tmp_path / "a.txt"
    text.write_text("The boats are sold. Ann sold Bob 3 boats. Carl paid 70 pounds. They left. " * 3)
    options = ["--threads", "1", "--set", "train.steps=1", "--set", "lora.rank=2"]
    assert main(["tune", "--model", str(path), "--data", data, "--out", out, *options]) == 0
    assert main(["summarize", str(text), "--model", out, "--words", "8", "--threads", "1"]) == 0
    assert capsys.readouterr().out.strip()


def test_a_model_that_fits_into_memory_to_the_byte_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(bytes(100_000))
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = LlamaConfig(vocab_size=20, **shape)
    sizes = [each.numel() for each in AutoModelForCausalLM.from_config(config).parameters()]
    need = 4 * sum(sizes) + 8 * max(sizes)
    monkeypatch.setattr(gguf_file, "free_bytes", lambda _: need)
    gguf_file._check_size(path, config, torch.float32)
    monkeypatch.setattr(gguf_file, "free_bytes", lambda _: need - 1)
    with pytest.raises(UserError, match="weights need"):
        gguf_file._check_size(path, config, torch.float32)


def test_a_byte_holds_8_weights_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = LlamaConfig(vocab_size=16, **shape)
    weights = sum(each.numel() for each in AutoModelForCausalLM.from_config(config).parameters())
    assert weights % 8 == 0
    path = tmp_path / "m.gguf"
    path.write_bytes(bytes(weights // 8))
    gguf_file._check_size(path, config, torch.float32)
    path.write_bytes(bytes(weights // 8 - 1))
    with pytest.raises(UserError, match="which do not fit in its"):
        gguf_file._check_size(path, config, torch.float32)


@pytest.mark.parametrize(("turn", "ends"), [(2, [1, 2]), (1, 1), (None, 1), ("2", 1)])
def test_a_turn_has_an_end_mark_of_its_own_if_the_header_names_another(
    turn: object, ends: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    header = {**gguf_file.check_gguf(path), "tokenizer.ggml.eot_token_id": turn}
    monkeypatch.setattr(gguf_file, "check_gguf", lambda _: header)
    assert gguf_file.gguf_settings(path)["eos_token_id"] == ends
