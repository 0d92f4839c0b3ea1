"""Errors of the functions that do what commands do name Python's arguments."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import precis
from precis.messages import _fits, _hints, in_python
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


PUBLIC: Any = precis  # the calls are wrong on purpose
PAIRS = [precis.Pair("Ann sings in the hall. Bob listens.", "Ann sings.")] * 3
FUNCTIONS = [name for name in precis.__all__ if inspect.isfunction(getattr(precis, name))]
PLACE = "must be of the type str | Path"
NUMBERS = "must be of the type Sequence[int]"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda out: PUBLIC.score({"a": "xxx"}, PAIRS),
            "systems={'a': 'xxx'} must be of the type Mapping[str, Seq",
        ),
        (lambda out: PUBLIC.score({"a": ["x", None, "x"]}, PAIRS), "systems={'a': ['x', None, 'x']} must be"),
        (
            lambda out: PUBLIC.score({"a": iter("xxx")}, PAIRS),
            "must be of the type Mapping[str, Sequence[str]]",
        ),
        (lambda out: PUBLIC.score(["x"] * 3, PAIRS), "systems=['x', 'x', 'x'] must be"),
        (lambda out: PUBLIC.score({}, iter(PAIRS)), "must be of the type Sequence[Pair]"),
        (lambda out: PUBLIC.score({}, [("a", "b")]), "pairs=[('a', 'b')] must be of the type Sequence[Pair]"),
        (lambda out: PUBLIC.finetune(PAIRS, out=out), "data=[Pair(document...ces=(), id=''), "),
        (lambda out: PUBLIC.finetune(PAIRS, out=out), PLACE),
        (lambda out: PUBLIC.finetune("pairs", out=out, steps="3"), "steps='3' must be a whole number"),
        (
            lambda out: PUBLIC.finetune("pairs", out=out, notify=True),
            "notify=True must be of the type Callable",
        ),
        (
            lambda out: PUBLIC.finetune("pairs", out=out, restart="no"),
            "restart='no' must be of the type bool",
        ),
        (lambda out: PUBLIC.read_pairs(["pairs"]), f"data=['pairs'] {PLACE}"),
        (lambda out: PUBLIC.read_document(None), "path=None must be of the type str | Path"),
        (lambda out: PUBLIC.evaluate("run", "pairs", out=out, beams=1), f"beams=1 {NUMBERS}"),
        (lambda out: PUBLIC.evaluate("run", "pairs", out=out, beams="1"), f"beams='1' {NUMBERS}"),
        (lambda out: PUBLIC.evaluate("run", "pairs", out=out, beams=["1"]), f"beams=['1'] {NUMBERS}"),
        (
            lambda out: PUBLIC.evaluate(data="pairs", out=out, predictions="a.txt"),
            "predictions='a.txt' must be",
        ),
        (
            lambda out: PUBLIC.evaluate(3, "pairs", out=out),
            "models=3 must be of the type str | Path | Sequence",
        ),
        (lambda out: PUBLIC.learning_curve("pairs", sizes=30, out=out), f"sizes=30 {NUMBERS}"),
        (lambda out: PUBLIC.learning_curve("pairs", sizes="30,100", out=out), f"sizes='30,100' {NUMBERS}"),
        (lambda out: PUBLIC.write_synthetic(out, 3), "counts=3 must be of the type Mapping[str, int]"),
        (
            lambda out: PUBLIC.train_seeds(PUBLIC.tune, "m", "p", seeds="3", out=out),
            "seeds='3' must be a whole",
        ),
        (lambda out: PUBLIC.summarize(5), "text=5 must be of the type str | Path | Passages"),
    ],
)
def test_an_argument_of_another_type_is_named_with_the_one_it_must_have(
    call: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        call(tmp_path / "out")
    assert says in str(refused.value)
    assert len(str(refused.value)) < 300


def test_the_columns_of_a_prefix_are_a_number() -> None:
    with pytest.raises(UserError, match=r"length='10'.*at least 1"):
        precis.Prefix(length="10")  # type: ignore[arg-type]


def test_what_behaves_like_the_annotated_kind_is_accepted(tmp_path: Path) -> None:
    class Likewise:
        document, summary, references, id, all_references = "Ann sings. Bob listens.", "Ann", (), "", ("Ann",)

    found = PUBLIC.score({"a": np.array(["Ann sings."])}, [Likewise()], baselines=())
    assert found.system("a").metrics["rouge1"].mean > 0
    (file,) = PUBLIC.write_synthetic(tmp_path / "pairs", {"test": np.int64(2)})
    assert len(list(PUBLIC.read_pairs(file, limit=np.int64(1)))) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_annotation_can_be_checked(name: str) -> None:
    hints = _hints(inspect.unwrap(getattr(precis, name)))
    for hint in hints.values():
        for value in (None, 3, 0.5, "x", ["x"], {"x": 3}, object(), print):
            _fits(value, hint)


@pytest.mark.parametrize("name", FUNCTIONS)
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
