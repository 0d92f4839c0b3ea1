"""A loaded model serves the modes that it was trained for, or the one that is asked for."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from precis.extract.extractor import Extractor
from precis.generation.model_location import locate
from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summarizer
from precis.server.engine import Ask
from precis.server.served_model import ServedModel, mode_of, pool_of
from precis.server.token_counter import ByBytes, ByTokenizer
from precis_text.errors import UserError
from tests.tiny_models import save


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A model that writes, with the ranker of the model in the box."""
    save("bart", tmp_path)
    default = locate("default").folder
    assert default is not None
    shutil.copy(default / "ranker.json", tmp_path)
    (tmp_path / "precis.json").write_text(json.dumps({"modes": ["extract", "abstract"]}))
    return tmp_path


@pytest.mark.parametrize(
    ("mode", "modes"),
    [(None, ("extract", "abstract")), ("extract", ("extract",)), ("abstract", ("abstract",))],
)
def test_a_model_serves_all_its_modes_or_the_one_that_is_asked_for(
    both: Path, mode: Mode | None, modes: tuple[Mode, ...]
) -> None:
    found = ServedModel.load(str(both), name="m", mode=mode)
    assert found.modes == modes
    assert isinstance(found.chooser, Extractor) is ("extract" in modes)
    assert isinstance(found.writer, Summarizer) is ("abstract" in modes)
    assert (found.size > 0) is ("abstract" in modes)  # a ranker needs no weights
    assert (found.languages, found.batch) == ((), 8)


def test_the_model_in_the_box_chooses_and_knows_its_languages() -> None:
    found = ServedModel.load("default", name="default")
    assert (found.modes, found.writer, found.size) == (("extract",), None, 0)
    assert "en" in found.languages


def test_the_width_of_the_search_is_set_for_a_model_that_writes_alone(both: Path) -> None:
    usual, wide = (ServedModel.load(str(both), name="m", beams=beams).writer for beams in (None, 3))
    assert isinstance(usual, Summarizer)
    assert isinstance(wide, Summarizer)
    assert usual.settings.beams is not None
    assert replace(usual.settings, beams=3) == wide.settings
    with pytest.raises(UserError, match="--beams does not apply"):
        ServedModel.load(str(both), name="m", beams=3, mode="extract")


def test_a_text_without_tokens_gets_an_empty_summary(served_model: ServedModel) -> None:
    (made,) = served_model.make([" "], Ask(model="m", mode="abstract"), lambda *_: None, None)
    assert (made.text, made.document_tokens) == ("", 0)


def test_a_writer_without_a_tokenizer_counts_bytes(served_model: ServedModel) -> None:
    without: Any = SimpleNamespace(tokenizer=None)
    assert isinstance(ServedModel("m", ("abstract",), without, None, 8).counter(), ByBytes)
    assert isinstance(served_model.counter(), ByTokenizer)


def test_a_request_without_a_mode_gets_the_first_and_one_with_another_is_refused() -> None:
    modes: tuple[Mode, ...] = ("extract", "abstract")
    assert [mode_of(modes, wanted) for wanted in (None, *modes)] == ["extract", *modes]
    with pytest.raises(UserError, match="not trained to write; omit mode"):
        mode_of(("extract",), "abstract")


@pytest.mark.parametrize(("device", "on"), [(None, None), ("cpu", torch.device("cpu"))])
def test_the_models_of_a_service_are_loaded_on_the_device_that_is_named(
    device: str | None, on: torch.device | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Any] = []

    def load(place: str, *, name: str, **options: Any) -> Any:
        loaded.append((place, options["device"]))
        return SimpleNamespace(name=name, modes=("abstract",), languages=(), size=0, counter=ByBytes)

    monkeypatch.setattr(ServedModel, "load", load)
    pool = pool_of(
        {"a": "x", "b": "y"}, memory=None, device=device, adapter=None, mode=None, batch=8, beams=None
    )
    assert loaded == []
    pool.load_all()
    assert (pool.names, loaded) == (["a", "b"], [("y", on), ("x", on)])
