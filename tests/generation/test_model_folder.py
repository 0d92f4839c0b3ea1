"""What a model's folder asks for is looked at before anything is built; what is loaded is finite."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GenerationConfig

from precis.generation.model_folder import ModelFolder, check_memory, config_from
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.storage.model_files import TensorHeader
from precis.storage.seal import SEAL, seal, write_folder
from precis_text.errors import UserError
from tests.tiny_models import save


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save("bart", folder / "bart")
    write_folder(folder / "zcodepp", lambda place: save("zcodepp", place))
    return folder


@pytest.fixture(params=["bart", "zcodepp"])
def folder(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> Path:
    """A folder of transformers without a seal, and one of ours with one that is made to fit all changes."""
    return Path(shutil.copytree(whole / request.param, tmp_path / "model"))


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
    reseal(folder)


def reseal(folder: Path) -> None:
    if (folder / SEAL).exists():
        (folder / SEAL).unlink()
        seal(folder)


def edit(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    reseal(file.parent)


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_model(folder, device="cpu")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(folder))
    return str(caught.value)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_weights_of_a_type_that_nobody_trains_in_are_refused(dtype: torch.dtype, folder: Path) -> None:
    change_weights(folder, lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})
    assert "but must be one of F64, F32, F16, BF16" in refused(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_of_others_and_refused_where_we_wrote_single(
    dtype: torch.dtype, folder: Path
) -> None:
    change_weights(folder, lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})
    if (folder / SEAL).exists():
        assert "but config.json says float32; copy the folder again" in refused(folder)
    else:
        assert load_model(folder, device="cpu").model.dtype == torch.float32


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_named(value: float, folder: Path) -> None:
    def spoil(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors[max(name for name, tensor in tensors.items() if tensor.ndim == 2)][1, 1] = value
        return tensors

    change_weights(folder, spoil)
    assert "the weights are not finite: '" in refused(folder)


def test_weights_left_over_are_refused_of_ours_and_named_of_others(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change_weights(folder, lambda tensors: {**tensors, "evil.weight": torch.zeros(2)})
    if (folder / SEAL).exists():
        assert "1 weights are unused, 'evil.weight' first" in refused(folder)
    else:
        load_model(folder, device="cpu")
        assert "'evil.weight' first; this model does not have them" in caplog.text


@pytest.mark.parametrize(
    "name", ["encoder_layers", "vocab_size", "hidden_size", "d_model", "max_position_embeddings"]
)
def test_a_size_beyond_the_weights_is_refused_before_anything_is_built(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "precis.generation.model_folder.check_memory", lambda *_: pytest.fail("something was built")
    )
    edit(folder / "config.json", **{name: 10**9})
    assert f"{name} is 1,000,000,000, above" in refused(folder)


def test_a_model_larger_than_its_weights_is_built_without_memory_alone(folder: Path) -> None:
    edit(folder / "config.json", vocab_size=60_000, d_model=1024, hidden_size=1024)
    message = refused(folder)
    assert "config.json: describes a model of" in message
    assert "it belongs to another model" in message


def test_kernels_of_the_hub_never_reach_transformers(folder: Path) -> None:
    edit(folder / "config.json", _attn_implementation="sdpa", auto_map={"AutoConfig": "evil.Evil"})
    config = locate(folder).configuration
    assert config._attn_implementation is None
    assert not hasattr(config, "auto_map")
    edit(folder / "config.json", _attn_implementation="somebody/evil")
    assert "names 'somebody/evil', which is code of the hub" in refused(folder)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"num_beams": 0}, "beams=0 must be 1 to 128"),
        ({"max_new_tokens": 0}, "must be greater than 0"),
        ({"num_beams": 1_000_000}, "beams=1000000 must be 1 to 128"),
        ({"max_new_tokens": 10**9}, "max_tokens=1000000000 must be 1 to 32,768"),
        ({"min_length": 10**9}, "min_tokens=999999999"),
        ({"num_beams": "many"}, "unsupported decoding settings"),
        ({"length_penalty": "a"}, "length_penalty='a' must be a number"),
        ({"length_penalty": 1e308}, "length_penalty=1e+308 must be 50.0 or less"),
        ({"length_penalty": -1e308}, "length_penalty=-1e+308 must be -50.0 or more"),
        ({"repetition_penalty": 1e308}, "repetition_penalty=1e+308 must be 1,000,000.0 or less"),
        ({"repetition_penalty": -1}, "repetition_penalty=-1 must be"),
        ({"forced_bos_token_id": 99_999}, "forced_bos_token_id=99999 is not one of the"),
        ({"decoder_start_token_id": -7}, "decoder_start_token_id=-7 is not one of the"),
        ({"bad_words_ids": [["a"]]}, "generation_config.json"),
        ({"early_stopping": "nope"}, "generation_config.json"),
        ({"max_new_tokens": "x"}, "generation_config.json"),
    ],
)
def test_a_search_without_end_is_refused(values: dict[str, Any], says: str, folder: Path) -> None:
    edit(folder / "generation_config.json", **values)
    message = refused(folder)
    assert says in message or "cannot be loaded" in message


def test_what_a_search_does_not_have_is_not_followed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    edit(folder / "generation_config.json", guidance_scale=3.0, cache_implementation="static", num_beams=2)
    loaded = load_model(folder, device="cpu").model.generation_config
    assert isinstance(loaded, GenerationConfig)
    assert (loaded.num_beams, loaded.guidance_scale, loaded.cache_implementation) == (2, None, None)
    assert "precis ignores these settings: cache_implementation, guidance_scale" in caplog.text


def test_an_adapter_of_peft_does_not_lead_to_another_model(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "somebody/evil"}')
    assert "adapter_config.json" in refused(folder)


@pytest.mark.parametrize(
    "use",
    [
        '{"max_source": "abc"}',
        '{"max_source": 0}',
        '{"grounded_on": 5}',
        '{"grounded_on": [5]}',
        '{"task": 1}',
    ],
)
def test_the_use_of_a_model_has_the_types_that_it_says(use: str, folder: Path) -> None:
    (folder / "precis.json").write_text(use)
    reseal(folder)
    assert "precis.json: cannot be used: " in refused(folder)


def test_a_tokenizer_that_makes_texts_endless_is_refused(folder: Path) -> None:
    long = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 1000}
    edit(folder / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [long] * 4})
    assert "its normalizer can make one character 1,000, more than 64" in refused(folder)


@pytest.mark.parametrize("settings", [{}, {"model_type": None}])
def test_a_configuration_without_its_kind_says_so(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not say which kind of model this is"):
        config_from(settings)


@pytest.mark.parametrize(
    ("config", "built", "is_built", "is_read"),
    [
        ({"max_position_embeddings": 2**24 + 12, "hidden_size": 1}, 6, True, True),
        ({"max_position_embeddings": 2**24 + 13, "hidden_size": 1}, 6, False, False),
        ({}, 2**24 + 12, True, True),
        ({}, 2**24 + 13, True, False),
        ({"max_position_embeddings": [2**24 + 13], "hidden_size": 1}, 6, True, True),
        ({"max_position_embeddings": 2**24 + 13, "hidden_size": None}, 6, True, True),
    ],
    ids=str,
)
def test_a_model_may_have_twice_the_numbers_of_its_weights_and_a_table_of_positions(
    config: dict[str, Any], built: int, is_built: bool, is_read: bool
) -> None:
    found = ModelFolder(Path("m"), {}, {"a": TensorHeader("F32", (2, 3))})
    asked: list[object] = []

    def build(of: object) -> torch.nn.Module:
        asked.append(of)
        return torch.nn.Linear(built, 1, bias=False)

    given: Any = SimpleNamespace(**config)
    if is_read:
        check_memory(found, SimpleNamespace(from_config=build), given)
    else:
        with pytest.raises(
            UserError, match="describes a model of 16,777,229 parameters, but the weights have 6"
        ):
            check_memory(found, SimpleNamespace(from_config=build), given)
    assert bool(asked) == is_built


def test_a_model_that_the_library_cannot_build_is_one_line() -> None:
    found = ModelFolder(Path("m"), {}, {"a": TensorHeader("F32", (2, 3))})
    for error, told in ((ValueError("12 heads\nand more"), "12 heads"), (RuntimeError(), "RuntimeError")):

        def build(of: object, error: Exception = error) -> torch.nn.Module:
            raise error

        with pytest.raises(UserError) as caught:
            check_memory(found, SimpleNamespace(from_config=build), cast(Any, SimpleNamespace()))
        assert str(caught.value) == f"m/config.json: cannot build a model from it: {told}"
