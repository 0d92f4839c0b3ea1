"""A model is found once by its name; the location says what it is, and what decides its summaries."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from precis.generation import model_location
from precis.generation.adapters import BasePlace, write_base
from precis.generation.model_location import (
    default_model,
    is_default,
    locate,
    named_models,
    names_apart,
    runs_with_seeds,
    slug,
)
from precis.generation.model_metadata import PACKAGES, ModelUse
from precis.storage.seal import seal
from precis_text.errors import UserError
from tests.tiny_models import save, save_classifier, save_llama


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and an adapter of it that has its own use."""
    folder = tmp_path_factory.mktemp("models")
    save("bart", folder / "base")
    ModelUse(instruction="Base:").save(folder / "base")
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter.json").write_text("{}")
    write_base(BasePlace(model=str(folder / "base")), folder / "adapter")
    ModelUse(instruction="Adapter:").save(folder / "adapter")
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    copy = shutil.copytree(saved, tmp_path / "models")
    write_base(BasePlace(model=str(copy / "base")), copy / "adapter")
    return copy


def test_an_adapter_named_alone_or_beside_its_base_is_found_with_the_base_and_its_own_use(
    folder: Path,
) -> None:
    base, adapter = folder / "base", folder / "adapter"
    for found in (locate(adapter), locate(base, adapter), locate(folder), locate(locate(base), adapter)):
        assert (found.base, found.place, found.adapter) == (str(base), base, adapter)
        assert (found.use.instruction, found.short) == ("Adapter:", None)
    assert [locate(adapter).source, locate(base, adapter).source] == [str(adapter)] * 2
    (adapter / "precis.json").unlink()
    assert locate(adapter).use.instruction == "Base:"


def test_none_leaves_the_adapter_out(folder: Path) -> None:
    base, adapter = folder / "base", folder / "adapter"
    for found in (locate(base), locate(adapter, "none"), locate(adapter).without_adapter()):
        assert (found.source, found.base, found.adapter) == (str(base), str(base), None)
        assert found.use.instruction == "Base:"
        assert found.without_adapter() is found is locate(found)


def test_an_encoder_decoder_a_writer_and_a_classifier_are_told_apart(folder: Path) -> None:
    save_llama(folder / "llama")
    save_classifier(folder / "classifier")
    found = {name: locate(folder / name) for name in ("base", "llama", "classifier")}
    assert [found[name].is_writer for name in ("base", "llama")] == [False, True]
    assert [each.is_classifier for each in found.values()] == [False, False, True]
    for name, each in found.items():
        assert (each.folder, each.gguf, each.is_endpoint) == (folder / name, None, False)
    endpoint = locate("http://127.0.0.1:9/v1#m")
    assert (endpoint.is_writer, endpoint.is_classifier, endpoint.is_endpoint) == (True, False, True)
    assert (endpoint.folder, endpoint.gguf, endpoint.fingerprint["weights"]) == (None, None, "")
    with pytest.raises(UserError, match="is an endpoint, whose weights precis cannot open"):
        _ = endpoint.settings


def _write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        (_write("base/tokenizer_config.json", "{}"), "weights"),
        (_write("base/vocab.txt", "a"), "weights"),
        (_write("base/model.safetensors", "other"), "weights"),
        (_write("adapter/adapter.json", '{"other": 1}'), "adapter_weights"),
        (_write("base/README.md", "other"), None),
        (_write("base/inner.json/notes.json", "other"), None),
    ],
)
def test_the_fingerprint_changes_with_every_file_that_loading_reads_and_with_no_other(
    change: Callable[[Path], object], decides: str | None, folder: Path
) -> None:
    (folder / "base" / "inner.json").mkdir()
    before = locate(folder).fingerprint
    assert [*before] == ["model", "weights", "adapter", "adapter_weights"]
    assert {len(before[name]) for name in ("weights", "adapter_weights")} == {16}
    change(folder)
    after = locate(folder).fingerprint
    assert [name for name in before if before[name] != after[name]] == ([decides] if decides else [])


def test_the_fingerprint_of_a_sealed_folder_is_that_of_its_seal(folder: Path) -> None:
    base = folder / "base"
    plain = locate(base).fingerprint["weights"]
    seal(base)
    sealed = locate(base).fingerprint["weights"]
    assert len(sealed) == 16
    assert sealed != plain
    (base / "model.safetensors").write_text("loading refuses it")
    assert locate(base).fingerprint["weights"] == sealed
    (base / "seal.json").unlink()
    seal(base)
    assert locate(base).fingerprint["weights"] != sealed


def test_a_model_of_a_package_has_the_adapter_for_short_summaries_that_lies_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "package"
    shutil.copytree(folder / "base", package / "weights")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(PACKAGES, "writer", "package")
    assert locate("writer").short is None
    before = locate("writer").fingerprint
    shutil.copytree(folder / "adapter", package / "adapter")
    found = locate("writer")
    assert (found.place, found.short, found.use.instruction) == (
        package / "weights", package / "adapter", "Base:",
    )  # fmt: skip
    assert found.fingerprint == {**before, "short_adapter": found.fingerprint["short_adapter"]}
    assert locate("writer", "none").short is None
    assert locate("writer", folder / "adapter").short is None
    (package / "weights" / "config.json").unlink()
    with pytest.raises(UserError, match="writer: this model is not installed"):
        locate("writer")


def test_the_default_model_is_that_of_its_package_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_location, "_folder_of", lambda name: tmp_path)
    assert default_model() == tmp_path
    assert [is_default(each) for each in (tmp_path, tmp_path / "x", None)] == [True, False, False]
    monkeypatch.setattr(model_location, "_folder_of", lambda name: None)
    assert not is_default(None)
    with pytest.raises(UserError, match="the default model is not installed"):
        locate("default")


def test_an_invalid_configuration_is_named_by_its_file(folder: Path) -> None:
    file = folder / "base" / "config.json"
    file.write_text('{"model_type": "nothing"}')
    with pytest.raises(UserError) as caught:
        _ = locate(folder / "base").configuration
    assert str(caught.value).startswith(f"{file}: invalid configuration: model_type='nothing' is unknown")


@pytest.mark.parametrize("seeds", [None, [], "01", [0, True], [0, "1"]])
def test_a_record_of_seeds_lists_whole_numbers(seeds: object, tmp_path: Path) -> None:
    (tmp_path / "seeds.json").write_text(json.dumps({"seeds": seeds}))
    with pytest.raises(UserError, match=r"seeds\.json: lists no seeds"):
        runs_with_seeds(tmp_path)


def test_each_seed_has_a_run_that_is_finished(tmp_path: Path) -> None:
    (tmp_path / "seeds.json").write_text('{"seeds": [0, 3]}')
    (tmp_path / "seed-0" / "model").mkdir(parents=True)
    with pytest.raises(UserError, match="seed-3: this run is not finished"):
        runs_with_seeds(tmp_path)
    (tmp_path / "seed-3" / "adapter").mkdir(parents=True)
    assert runs_with_seeds(tmp_path) == [tmp_path / "seed-0", tmp_path / "seed-3"]


@pytest.mark.parametrize(
    ("models", "names", "found"),
    [
        (["runs/a"], [], ["default"]),
        (["runs/a", "runs/b"], [], ["a", "b"]),
        (["x/a", "y/a", "b"], [], ["x/a", "y/a", "b"]),
        (["x/a", "y/a"], ["one", "two"], ["one", "two"]),
        (["http://host/v1#m", "http://bare/v1"], [], ["m", "http://bare/v1"]),
        (["http://host/v1#m", "http://other/v1#m"], [], ["host/v1#m", "other/v1#m"]),
    ],
)
def test_models_have_their_own_names_or_the_ends_of_their_paths(
    models: list[str], names: list[str], found: list[str]
) -> None:
    assert named_models(models, names) == dict(zip(found, models, strict=True))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["one"], "--name is given 1 times, but there are 2 models"),
        (["one"] * 2, "--name one is given twice"),
    ],
)
def test_each_model_has_one_name(names: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        named_models(["a", "b"], names)


def test_a_run_folder_stands_for_its_model_in_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert names_apart([tmp_path / "run" / "model", "."]) == ["run", "other"]
    with pytest.raises(UserError, match=r"--adapter .*run is given twice, also as .*model; name each once"):
        names_apart([tmp_path / "run" / "model", tmp_path / "run"], option="--adapter")
    (tmp_path / "run" / "config.json").touch()  # then it is a model itself, and no end of the paths differs
    both = [tmp_path / "run" / "model", tmp_path / "run"]
    assert names_apart(both) == [*map(str, both)]


def test_a_name_in_a_file_name_has_only_plain_characters() -> None:
    assert slug("/a b/c:d.e_f-/") == "a-b-c-d.e_f"
