"""A loaded model serves the modes that it was trained for, or the one that is asked for."""

import json
import shutil
from pathlib import Path

import pytest

from precis.extract.extractor import Extractor
from precis.generation.model_location import locate
from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summarizer
from precis.server.served_model import ServedModel
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
    assert found.languages == ()


def test_the_model_in_the_box_chooses_and_knows_its_languages() -> None:
    found = ServedModel.load("default", name="default")
    assert (found.modes, found.writer, found.size) == (("extract",), None, 0)
    assert "en" in found.languages
