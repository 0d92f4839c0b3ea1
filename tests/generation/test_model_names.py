"""Names of models and devices are checked without the libraries that load them, and each mistake has its own line."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from precis.generation import model_names
from precis.generation.model_names import (
    check_adapter,
    is_endpoint,
    is_gguf,
    model_in,
    refuse_missing,
    refuse_unknown_device,
    refuse_writing_options,
)
from precis_text.errors import UserError


def holds(folder: Path, *names: str) -> Path:
    """Return the folder with empty files."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("files", "found"), [(["config.json", "model/config.json"], ""), (["model/config.json"], "model")]
)
def test_a_model_is_in_the_folder_itself_or_else_in_its_model(
    files: list[str], found: str, tmp_path: Path
) -> None:
    assert model_in(holds(tmp_path, *files), "x") == tmp_path / found
    refuse_missing(str(tmp_path))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["adapter.json"], "is an adapter, not a model"),
        (["adapter/adapter.json"], "is an adapter, not a model"),
        (["checkpoints/step"], "this run is not finished"),
        (["model.safetensors"], r"no config\.json next to the weights"),
        (["pytorch_model.bin"], r"no config\.json next to the weights"),
        (["notes.txt"], "no model here"),
    ],
)
def test_a_folder_without_a_model_is_told_what_it_holds_instead(
    files: list[str], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"^x: {says}"):
        model_in(holds(tmp_path, *files), "x")


@pytest.mark.parametrize("files", [["adapter.json"], ["adapter/adapter.json"], ["seeds.json", "config.json"]])
def test_an_adapter_and_runs_with_seeds_stand_for_models(files: list[str], tmp_path: Path) -> None:
    refuse_missing(str(holds(tmp_path, *files)))


def test_a_name_that_cannot_be_a_model_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(holds(tmp_path, "weights.pt", "notes.txt", "own.gguf", "runs/a.txt", "default/a.txt"))
    for good in ("default", "own.gguf", "http://127.0.0.1/v1", "owner/name", "hub:runs"):
        refuse_missing(good)
    for bad, says in {
        "weights.pt": "pickles are refused",
        "notes.txt": "is a file; give the folder",
        "other.gguf": "no such file",
        "runs/first": "no such folder",
        "runs": "no model here",
        "./default": "no model here",
    }.items():
        with pytest.raises(UserError, match=f"^{bad}: {says}"):
            refuse_missing(bad)


def test_an_address_and_a_gguf_file_are_known_in_any_case(tmp_path: Path) -> None:
    assert [is_endpoint(name) for name in ("HTTPS://host/v1", "http:/host", "hub:http")] == [
        True,
        False,
        False,
    ]
    holds(tmp_path, "a.GGUF", "b.txt")
    assert [is_gguf(str(tmp_path / name)) for name in ("a.GGUF", "b.txt", "c.gguf")] == [True, False, False]


@pytest.mark.parametrize("adapter", ["mine", None])
@pytest.mark.parametrize("models", [[], ["a"], ["a", "b"]])
def test_an_adapter_needs_one_model_and_no_adapter_needs_none(adapter: str | None, models: list[str]) -> None:
    if adapter is None or len(models) == 1:
        check_adapter(adapter, models)
    else:
        with pytest.raises(UserError, match=r"^--adapter mine needs"):
            check_adapter(adapter, models)


@pytest.mark.parametrize(
    ("modules", "extensions", "refused"),
    [({}, [], True), ({"torch": 1}, [], False), ({}, ["mine"], False)],
    ids=["alone", "torch checks it", "an extension may know it"],
)
def test_an_unknown_type_of_device_is_refused_unless_torch_or_an_extension_may_know_it(
    modules: dict[str, int], extensions: list[str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_names, "sys", SimpleNamespace(modules=modules))
    monkeypatch.setattr(model_names, "entry_points", lambda group: extensions)
    for known in (None, "cpu", "cuda:1"):
        refuse_unknown_device(known)
    if refused:
        with pytest.raises(UserError, match="device 'gpu:0' is unknown; use cpu"):
            refuse_unknown_device("gpu:0")
    else:
        refuse_unknown_device("gpu:0")


@pytest.mark.parametrize("value", [4, 0, True, "x"])
def test_options_of_writing_are_refused_where_nothing_is_written(value: Any) -> None:
    refuse_writing_options({"beams": None, "sample": False})
    with pytest.raises(UserError, match=r"^--no-repeat-ngram does not apply to --mode extract"):
        refuse_writing_options({"beams": None, "no_repeat_ngram": value})
