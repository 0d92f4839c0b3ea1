"""Where the base of an adapter comes from, and that its word alone fetches nothing."""

from pathlib import Path

import huggingface_hub
import pytest

from precis.generation.adapters import BasePlace, place_of_base, write_base
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.tuning import Prefix, attach, method
from precis_text.errors import UserError
from tests.tiny_models import save


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    base = save("bart", tmp_path / "base")
    attach(load_model(base, device="cpu").model, method("prefix", Prefix(length=2))).save(
        tmp_path / "adapter"
    )
    (tmp_path / "adapter" / "seal.json").unlink(missing_ok=True)
    return tmp_path / "adapter"


@pytest.mark.parametrize("name", ["somebody/evil", "hub:somebody/evil", "../../x"])
def test_a_base_on_the_hub_is_not_fetched_on_an_adapters_word(
    name: str, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        huggingface_hub, "get_hf_file_metadata", lambda *_, **__: pytest.fail("the hub was asked")
    )
    write_base(BasePlace(model=name), adapter)
    plain = name.removeprefix("hub:")
    with pytest.raises(UserError, match="adapters cannot trigger downloads") as caught:
        load_model(adapter)
    assert f"use --model hub:{plain} --adapter {adapter}" in str(caught.value)


def test_a_base_that_was_fetched_before_is_taken_from_the_cache(
    adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = adapter.parent / "base"
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: str(base / "config.json"))
    write_base(BasePlace(model="somebody/good"), adapter)
    assert locate(adapter).base == str(base)
    assert load_model(adapter, device="cpu").source == str(adapter)


def test_a_base_is_a_name_or_a_folder_that_is_found_from_the_adapter_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("base", "default"):
        (tmp_path / name).mkdir()
    adapter = tmp_path / "runs" / "adapter"
    assert place_of_base("owner/name", adapter) == BasePlace(model="owner/name")
    assert place_of_base("default", adapter) == BasePlace(
        model="default"
    )  # a package, whatever has that name here
    assert place_of_base("base", adapter) == BasePlace(model=str(tmp_path / "base"), beside="../../base")


def test_a_longer_prefix_than_the_adapter_has_takes_no_memory(
    adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, base = adapter / "adapter.json", adapter.parent / "base"
    stored = file.read_text()
    file.write_text(stored.replace('"length": 2', '"length": 1000000000'))
    with pytest.raises(UserError, match="at most 10,000"):
        load_model(base, adapter=adapter)
    file.write_text(stored.replace('"length": 2', '"length": 10000'))
    monkeypatch.setitem(attach.__globals__, "_SLACK", 0)  # the model of the tests is small
    with pytest.raises(UserError, match="its settings need"):
        load_model(base, adapter=adapter)
