"""The intended use of a model is checked before it is stored or used."""

from pathlib import Path
from typing import Any, cast

import pytest

from precis.data.tasks.tasks import task
from precis.generation.model_metadata import USE_FILE, ModelUse, load_use
from precis_text.errors import UserError


@pytest.mark.parametrize("modes", [(), ("abstract", "sing"), ("sing",), ["abstract"]])
def test_modes_are_one_or_several_of_those_that_exist(modes: tuple[str, ...] | list[str]) -> None:
    with pytest.raises(UserError, match="must be a list of at least one of abstract and extract"):
        ModelUse(modes=cast(Any, modes))
    assert ModelUse(modes=("extract", "abstract")).mode_for(None) == "extract"


def test_a_mode_that_a_model_was_not_trained_for_is_refused_with_what_it_would_do() -> None:
    assert ModelUse(modes=("extract", "abstract")).mode_for("abstract") == "abstract"
    with pytest.raises(UserError, match="mode extract: this model was not trained to choose sentences"):
        ModelUse().mode_for("extract")
    with pytest.raises(UserError, match="mode abstract: this model was not trained to write"):
        ModelUse(modes=("extract",)).mode_for("abstract")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"max_source": 10_000_000}, {"max_source": 10_000_001}),
        ({"max_source": 1}, {"max_source": 0}),
        ({"max_source": None}, {"max_source": 8.0}),
        ({"max_source": 2}, {"max_source": True}),
        ({"licence": "x" * 100}, {"licence": "x" * 101}),
        ({"licence": ""}, {"licence": "mit\n"}),
        ({"licence": "mit"}, {"licence": None}),
        ({"instruction": "Be brief:"}, {"instruction": 1}),
        ({"task": ""}, {"task": None}),
        ({"grounded_on": ("rte", "cola")}, {"grounded_on": ("rte", 5)}),
        ({"grounded_on": ()}, {"grounded_on": ["rte"]}),
        ({"languages": ("en", "devanagari")}, {"languages": ("en", "English")}),
        ({"languages": ()}, {"languages": ["en"]}),
    ],
    ids=str,
)
def test_entries_have_the_types_and_bounds_that_they_say(good: dict[str, Any], bad: dict[str, Any]) -> None:
    assert ModelUse(**good) == ModelUse.from_dict(ModelUse(**good).to_dict())
    (name,) = bad
    with pytest.raises(UserError, match=f"{name}="):
        ModelUse(**bad)


def test_a_task_has_the_instruction_of_training_unless_a_grounded_model_was_not_trained_on_it() -> None:
    plain, grounded = (
        ModelUse(instruction="Mine:", task="rte", grounded_on=grounded) for grounded in ((), ("cola",))
    )
    assert [plain.instruction_for(name) for name in (None, "rte", "cola")] == ["Mine:"] * 3
    assert [grounded.instruction_for(name) for name in (None, "rte")] == ["Mine:"] * 2
    assert grounded.instruction_for("cola") == task("cola").instruction != "Mine:"


def test_the_use_is_read_back_and_a_place_without_the_file_has_the_defaults(tmp_path: Path) -> None:
    assert load_use(tmp_path) == load_use("owner/name") == ModelUse()
    use = ModelUse(max_source=77, languages=("en",))
    use.save(tmp_path)
    assert load_use(tmp_path) == use
    (tmp_path / USE_FILE).write_text('{"max_source": 0}')
    with pytest.raises(UserError, match=rf"{USE_FILE}: cannot be used: max_source=0 must be null or"):
        load_use(tmp_path)
