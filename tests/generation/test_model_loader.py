"""What can be loaded is loaded safely; all else is refused in one line that says what to do."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from huggingface_hub.errors import HfHubHTTPError, RemoteEntryNotFoundError, RepositoryNotFoundError
from transformers import BartConfig, BertConfig, BertModel, GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.generation import model_loader, model_location
from precis.generation.model_loader import load_model, named_device
from precis.storage.seal import write_folder
from precis.tuning import Prefix, attach, method
from precis_text.errors import UserError
from tests.tiny_models import KINDS, save


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("bart", tmp_path_factory.mktemp("bart"))


@pytest.mark.parametrize("kind", KINDS)
def test_encoder_decoders_load_in_evaluation_mode(kind: str, tmp_path: Path) -> None:
    loaded = load_model(save(kind, tmp_path))
    assert loaded.model.config.model_type == kind
    assert not loaded.model.training
    assert loaded.use.max_source is None


@pytest.mark.parametrize(("found", "used"), [(None, "cpu"), ("mps", "cpu"), ("meta", "meta")])
def test_a_model_goes_to_the_accelerator_unless_it_is_one_that_nobody_tried(
    bart: Path, monkeypatch: pytest.MonkeyPatch, found: str | None, used: str
) -> None:
    device = torch.device(found) if found else None
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: device)
    assert load_model(bart).model.device.type == used


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tpu", "device 'tpu' is unknown; use cpu, cuda or cuda:1"),
        ("cpu:x", "device 'cpu:x' is unknown; use cpu, cuda or cuda:1"),
        ("hpu", "device 'hpu' is not available: "),
        ("meta", "device 'meta' stores no numbers; use cpu or cuda"),
    ],
)
def test_a_device_that_torch_does_not_know_is_told_apart_from_one_that_is_not_here(
    name: str, says: str
) -> None:
    assert named_device("cpu").type == "cpu"
    with pytest.raises(UserError, match=re.escape(says)):
        named_device(name)


def test_a_run_folder_stands_for_its_model(bart: Path, tmp_path: Path) -> None:
    shutil.copytree(bart, tmp_path / "model")
    (tmp_path / "model" / "precis.json").write_text('{"max_source": 77, "instruction": "Be brief:"}')
    loaded = load_model(tmp_path)
    assert (loaded.use.max_source, loaded.use.instruction) == (77, "Be brief:")


def test_a_file_of_another_kind_is_named(bart: Path, tmp_path: Path) -> None:
    shutil.copytree(bart, tmp_path / "model")
    (tmp_path / "model" / "precis.json").write_text("[1]")
    assert "cannot be used" in refused(tmp_path / "model")


def test_an_unknown_entry_of_the_use_is_named(bart: Path, tmp_path: Path) -> None:
    shutil.copytree(bart, tmp_path / "model")
    (tmp_path / "model" / "precis.json").write_text('{"max_source": 77, "units": null}')
    assert "precis.json: cannot be used" in refused(tmp_path / "model")


def refused(source: str | Path) -> str:
    with pytest.raises(UserError) as caught:
        load_model(source)
    message = str(caught.value)
    assert "\n" not in message
    assert str(source) in message
    return message


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert "no such folder" in refused(tmp_path / "nowhere")


def test_a_hub_name_without_network_is_said_to_be_one() -> None:
    assert "hub cannot be reached" in refused("nobody/nothing")


@pytest.mark.parametrize(
    ("kind", "status", "says"),
    [
        (RepositoryNotFoundError, 404, "no such public model on the Hugging Face hub"),
        (RemoteEntryNotFoundError, 404, "no such public model on the Hugging Face hub"),
        (HfHubHTTPError, 401, "no such public model on the Hugging Face hub"),
        (HfHubHTTPError, 403, "no such public model on the Hugging Face hub"),
        (HfHubHTTPError, 429, "the Hugging Face hub cannot be reached: 429 for url"),
        (HfHubHTTPError, 503, "the Hugging Face hub cannot be reached: 503 for url"),
    ],
)
def test_a_busy_hub_is_told_apart_from_a_model_that_is_not_there(
    kind: type[HfHubHTTPError], status: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    response: Any = SimpleNamespace(status_code=status, headers={}, request=None)

    def answer(*_: object, **__: object) -> None:
        raise kind(f"\n\n{status} for url.\nRetry later.", response=response)

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", answer)
    assert refused("nobody/nothing") == f"nobody/nothing: no such folder, and {says}"


@pytest.mark.parametrize("is_there", [False, True])
def test_a_download_from_the_hub_is_told(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fetch(*_: object) -> None:
        raise UserError("there is no network")

    if is_there:
        (tmp_path / "models--nobody--nothing" / "snapshots" / "f00").mkdir(parents=True)
        (tmp_path / "models--nobody--nothing" / "snapshots" / "f00" / "model.safetensors").touch()
    monkeypatch.setattr(model_loader.huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))  # type: ignore[attr-defined]
    monkeypatch.setattr(model_location, "refuse_absent", lambda *_: None)
    monkeypatch.setattr(model_location, "_settings_on_hub", lambda _: BartConfig().to_dict())
    monkeypatch.setattr(model_loader, "_load_weights", fetch)
    with pytest.raises(UserError, match="no network"):
        load_model("nobody/nothing")
    told = "downloading nobody/nothing from the Hugging Face hub, once"
    assert (told in caplog.messages) is not is_there


def test_a_model_of_the_hub_has_its_tokenizer_from_there(bart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[object] = []
    weights, tokenizer = model_loader._load_weights, load_tokenizer

    def of_folder(location: model_location.ModelLocation, *others: Any) -> Any:
        return weights(model_location.locate(bart), *others)

    def of_name(name: object) -> Any:
        names.append(name)
        return tokenizer(bart)

    monkeypatch.setattr(model_location, "refuse_absent", lambda *_: None)
    monkeypatch.setattr(
        model_location, "_settings_on_hub", lambda _: BartConfig.from_pretrained(bart).to_dict()
    )
    monkeypatch.setattr(model_loader, "_load_weights", of_folder)
    monkeypatch.setattr(model_loader, "load_tokenizer", of_name)
    assert load_model("nobody/nothing").source == "nobody/nothing"
    assert names == ["hub:nobody/nothing"]


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    assert "no model here" in refused(tmp_path)


def test_an_unfinished_run_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    assert "this run is not finished" in refused(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_a_folder_with_a_pickle_alone_is_refused_unopened(bart: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(bart, folder)
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(b"not even a pickle")
    message = refused(folder)
    assert "safetensors" in message
    assert "any code" in message


def test_a_pickle_file_is_refused_unopened(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04")
    assert "any code" in refused(tmp_path / "model.pkl")


def test_a_file_is_not_a_folder(bart: Path) -> None:
    assert "give the folder" in refused(bart / "model.safetensors")


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_half_an_encoder_decoder_is_refused(kind: str, tmp_path: Path) -> None:
    if kind == "encoder":
        size = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        BertModel(BertConfig(vocab_size=50, hidden_size=16, **size)).save_pretrained(tmp_path)
    else:
        GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2)).save_pretrained(tmp_path)
    assert "not an encoder-decoder" in refused(tmp_path)


def test_weights_of_another_model_are_refused(bart: Path, tmp_path: Path) -> None:
    other = save("zcodepp", tmp_path / "other")
    shutil.copy(bart / "model.safetensors", other / "model.safetensors")
    assert "do not belong to this 'zcodepp' model" in refused(other)


def test_weights_of_another_size_are_refused(bart: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(bart, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "d_model": 64}))
    assert "weights" in refused(folder)


def test_damaged_weights_are_refused(bart: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(bart, folder)
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    assert "cannot be loaded" in refused(folder)


@pytest.mark.parametrize("content", ["{", '{"model_type": "no-such-thing"}', "[]"])
def test_a_broken_configuration_is_named(bart: Path, tmp_path: Path, content: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(bart, folder)
    (folder / "config.json").write_text(content)
    assert "config" in refused(folder)


def test_a_folder_without_weights_is_named(bart: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(bart, folder)
    (folder / "model.safetensors").unlink()
    assert "no weights" in refused(folder)


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    folder = save("bart", tmp_path / "bart")
    small = json.loads((folder / "config.json").read_text())
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(**{**small, "vocab_size": 300})
    BartForConditionalGeneration(config).save_pretrained(folder)
    assert "belongs to another model" in refused(folder)


def test_weights_come_in_single_precision_unless_asked(bart: Path) -> None:
    assert load_model(bart).model.dtype == torch.float32
    assert load_model(bart, dtype=torch.bfloat16).model.dtype == torch.bfloat16


def test_an_adapter_loads_on_its_own_base_in_every_precision(tmp_path: Path) -> None:
    """float16 rounds otherwise than the bfloat16 of the base's digest."""
    folder = save("bart", tmp_path / "base")
    attach(load_model(folder).model, method("prefix", Prefix(length=2))).save(tmp_path / "adapter")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert load_model(folder, adapter=tmp_path / "adapter", dtype=dtype).model.dtype == dtype
    other = load_model(save("bart", tmp_path / "other")).model
    with torch.no_grad():
        next(iter(other.parameters())).add_(1.0)
    other.save_pretrained(tmp_path / "other")
    with pytest.raises(UserError, match="load it on the base it was trained on"):
        load_model(tmp_path / "other", adapter=tmp_path / "adapter", dtype=torch.float16)


@pytest.mark.parametrize("name", ["model.safetensors", "generation_config.json", "tokenizer.json"])
def test_a_sealed_model_that_has_changed_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    place = tmp_path / "model"
    write_folder(place, lambda new: save("zcodepp", new))
    assert load_model(place).model is not None
    file = place / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1  # one bit
    file.write_bytes(content)
    with pytest.raises(
        UserError, match=rf"{name} has changed since it was written; .* remove seal\.json"
    ) as refused:
        load_model(place)
    assert "\n" not in str(refused.value)
    file.unlink()
    with pytest.raises(UserError, match=rf"{name} is missing"):
        load_model(place)


def test_a_folder_without_a_seal_is_read_as_it_is(tmp_path: Path) -> None:
    place = save("zcodepp", tmp_path / "model")
    assert not (place / "seal.json").exists()
    assert load_model(place).model is not None


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", None, "its tensors do not have the shapes of its config.json"),
        ("tokenizer.json", "", "none of its files contains the tokenizer's vocabulary"),
        ("tokenizer.json", "{}", "'added_tokens' is missing in it"),
        ("tokenizer.json", "{", "is not valid JSON: "),
        ("tokenizer.json", "[]", "is not a JSON object"),
    ],
)
def test_what_libraries_say_in_riddles_is_said_in_words(
    file: str, content: str | None, words: str, tmp_path: Path
) -> None:
    place = save("bart", tmp_path / "model")
    if content is None:
        settings = json.loads((place / file).read_text())
        content = json.dumps({**settings, "d_model": 64})
    (place / file).unlink()
    if content:
        (place / file).write_text(content)
    with pytest.raises(UserError, match=re.escape(words)):
        load_model(place)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list its mappings")
def test_files_overwritten_in_place_change_nothing_and_are_not_mapped(tmp_path: Path) -> None:
    folder = save("bart", tmp_path / "model")
    model = load_model(folder, device="cpu").model
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    mapped = [
        range(*(int(end, 16) for end in line.split()[0].split("-")))
        for line in Path("/proc/self/maps").read_text().splitlines()
        if str(folder) in line
    ]  # reading there would end the process once the file is truncated
    tensors = (*model.parameters(), *model.buffers())
    assert not [tensor.shape for tensor in tensors if any(tensor.data_ptr() in part for part in mapped)]
    file = folder / "model.safetensors"
    with file.open("rb+") as there:
        there.seek(file.stat().st_size // 2)
        there.write(b"\x7f" * (file.stat().st_size // 4))
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight  # still tied


def test_loading_shows_no_bar_of_transformers_and_leaves_the_users_choice(
    bart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.enable_progress_bar()
    load_model(str(bart))
    assert "Loading weights" not in capsys.readouterr().err
    assert logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    load_model(str(bart))
    assert not logging.is_progress_bar_enabled()
    logging.enable_progress_bar()
