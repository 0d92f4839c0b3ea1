"""Errors of the functions that do what commands do name Python's arguments."""

import inspect
import json
from pathlib import Path

import pytest

import precis
from precis.messages import in_python
from precis_text.errors import UserError


def test_options_become_arguments_and_whole_commands_stay() -> None:
    @in_python
    def refuse() -> None:
        raise UserError(
            "give --lr or --document-column; see `precis tune --set x=1`, or a--b, then --limit 3"
        )

    with pytest.raises(UserError) as refused:
        refuse()
    assert str(refused.value) == (
        "give learning_rate or document_column; see `precis tune --set x=1`, or a--b, then limit 3"
    )


def test_reading_pairs_names_the_columns_as_arguments(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"body": "Rain fell.", "title": "Rain"}) + "\n")
    with pytest.raises(UserError) as refused:
        next(precis.read_pairs(tmp_path / "pairs.jsonl"))
    assert "document_column" in str(refused.value)
    assert "--" not in str(refused.value)


@pytest.mark.parametrize("name", sorted(vars(precis)["_LIKE_COMMANDS"]))
def test_a_function_keeps_its_name_documentation_and_signature(name: str) -> None:
    function = getattr(precis, name)
    assert function is getattr(precis, name)
    assert (function.__name__, function.__doc__) == (name, inspect.unwrap(function).__doc__)
    assert inspect.signature(function) == inspect.signature(inspect.unwrap(function))


def test_finetuning_names_arguments(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"document": "Rain fell.", "summary": "Rain"}) + "\n")
    with pytest.raises(UserError) as refused:
        precis.finetune(
            tmp_path / "pairs.jsonl", out=tmp_path / "run", recipe="zcodepp-micro", learning_rate=-1.0
        )
    assert "--" not in str(refused.value)
