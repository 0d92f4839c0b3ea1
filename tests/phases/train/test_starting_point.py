"""What fine-tuning begins with where nobody names it: the number of pairs and their language decide."""

import json
import shlex
from pathlib import Path

import pytest

from precis.generation.model_location import default_model
from precis.generation.model_metadata import PACKAGES
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.starting_point import (
    Beginning,
    begin_as_recipe_says,
    choose_advice,
    choose_beginning,
)
from precis.recipes.catalogue import FEW, FROM_DEFAULT
from precis_text.errors import UserError

ENGLISH = {
    "document": "The council met on Monday and it voted to repair the bridge.",
    "summary": "It repairs the bridge.",
}
GERMAN = {
    "document": "Der Rat traf sich am Montag und er beschloss, die Br\u00fccke zu reparieren.",
    "summary": "Er will es.",
}


def chosen(place: Path, row: dict[str, str], count: int, **asked: object) -> Beginning:
    (place / "train.jsonl").write_text((json.dumps(row) + "\n") * count)
    options = {"examples": None, "begun": None, "asks_for_new": False, **asked}
    return choose_beginning(NamedPairs(data=str(place)).sources(), **options)  # type: ignore[arg-type]


def test_few_english_pairs_begin_with_the_model_that_comes_with_precis_and_the_way_to_another_is_said(
    tmp_path: Path,
) -> None:
    found = chosen(tmp_path, ENGLISH, 300)
    assert (found.recipe, found.model) == (FROM_DEFAULT, str(default_model()))
    assert "300 English pairs" in found.why
    assert "from scratch: --recipe zcodepp-few" in found.why
    assert "CC BY-SA 4.0" in found.why
    assert "\n" not in found.why


@pytest.mark.parametrize(
    ("row", "count", "asked", "recipe"),
    [
        (GERMAN, 300, {}, "zcodepp-few"),
        (ENGLISH, FEW, {}, "zcodepp-mini"),
        (ENGLISH, 300, {"asks_for_new": True}, "zcodepp-few"),
    ],
)
def test_other_pairs_and_what_new_models_alone_have_begin_with_a_new_model(
    row: dict[str, str], count: int, asked: dict[str, object], recipe: str, tmp_path: Path
) -> None:
    found = chosen(tmp_path, row, count, **asked)
    assert (found.recipe, found.model) == (recipe, None)
    assert f"a new model by --recipe {recipe}" in found.why


def test_a_few_examples_of_many_pairs_are_few(tmp_path: Path) -> None:
    found = chosen(tmp_path, ENGLISH, FEW, examples=100)
    assert found.recipe == FROM_DEFAULT
    assert "100 English pairs" in found.why


def test_without_the_package_of_the_default_model_a_new_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PACKAGES, "default", "not_there_at_all")
    assert chosen(tmp_path, ENGLISH, 300).recipe == "zcodepp-few"
    with pytest.raises(UserError, match=r"pip install \./packages/precis-model-small"):
        begin_as_recipe_says(FROM_DEFAULT)


@pytest.mark.parametrize(("recipe", "begins_with_default"), [(FROM_DEFAULT, True), ("zcodepp-few", False)])
def test_a_run_goes_on_with_what_it_began_with(
    recipe: str, begins_with_default: bool, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    (run / "checkpoints" / "step-00000001").mkdir(parents=True)
    (run / "settings.json").write_text(json.dumps({"run": {"name": recipe}}))
    found = chosen(tmp_path, GERMAN, 3, begun=run)
    assert found == begin_as_recipe_says(recipe)
    assert (found.model == str(default_model())) is begins_with_default
    assert not found.why


def test_few_pairs_are_advised_to_choose_with_the_committed_figures_and_the_command(tmp_path: Path) -> None:
    (tmp_path / "my posts.csv").write_text("body,title\nAnn sings. Bob paints.,Ann sings.\n")
    posts = str(tmp_path / "my posts.csv")
    told = choose_advice(NamedPairs(data=posts, document_column="body", summary_column="title").sources())
    page = (Path(__file__).parents[3] / "docs/experiments/few-pairs.md").read_text()
    assert "| 100 | default | 12.1/1.6/10.7" in page
    assert "| 1,000 | default | 16.1/2.7/13.9" in page
    assert "LEAD-3 | 31.3/8.7/24.3" in page
    assert "choose, do not write" in told
    assert "--curve 30,100,300" in told
    assert all(figure in told for figure in ("10.7", "13.9", "24.3"))
    command = shlex.split(told.rpartition("to choose: ")[2])
    assert command[:2] == ["precis", "extractor"]
    assert command[command.index("--tasks") + 1] == str(tmp_path / "my posts.csv")
    assert command[command.index("--document-column") + 1] == "body"
    assert command[command.index("--summary-column") + 1] == "title"
