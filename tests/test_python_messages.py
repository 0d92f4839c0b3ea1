"""Errors of the functions that do what commands do name Python's arguments."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import precis
from precis.messages import _hints, _misfit, in_python
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


PAIRS = [precis.Pair("Ann sings in the hall. Bob listens.", "Ann sings.")] * 3
FUNCTIONS = [name for name in precis.__all__ if inspect.isfunction(getattr(precis, name))]
A_PLACE = "must be a text or the path of a file or folder"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda out: precis.score({"a": "xxx"}, PAIRS), "systems['a']='xxx' must be a list"),
        (lambda out: precis.score({"a": ["x", None, "x"]}, PAIRS), "systems['a'][1]=None must be a text"),
        (lambda out: precis.score({"a": (text for text in "xxx")}, PAIRS), "must be a list"),
        (lambda out: precis.score(["x"] * 3, PAIRS), "systems=['x', 'x', 'x'] must be a dict"),
        (lambda out: precis.score({}, iter(PAIRS)), "must be a list"),
        (lambda out: precis.score({}, [("a", "b")]), "pairs[0]=('a', 'b') must be a Pair"),
        (lambda out: precis.finetune(PAIRS, out=out), "data=[Pair(document...ces=(), id=''), "),
        (lambda out: precis.finetune(PAIRS, out=out), A_PLACE),
        (lambda out: precis.finetune("pairs", out=out, steps="3"), "steps='3' must be a whole number"),
        (lambda out: precis.finetune("pairs", out=out, notify=True), "notify=True must be a function"),
        (lambda out: precis.finetune("pairs", out=out, restart="no"), "restart='no' must be a bool"),
        (lambda out: precis.read_pairs(["pairs"]), f"data=['pairs'] {A_PLACE}"),
        (lambda out: precis.read_document(None), f"path=None {A_PLACE}"),
        (lambda out: precis.evaluate("run", "pairs", out=out, beams=1), "beams=1 must be a list"),
        (lambda out: precis.evaluate("run", "pairs", out=out, beams="1"), "beams='1' must be a list"),
        (
            lambda out: precis.evaluate("run", "pairs", out=out, beams=["1"]),
            "beams[0]='1' must be a whole number",
        ),
        (
            lambda out: precis.evaluate(data="pairs", out=out, predictions="a.txt"),
            "predictions='a.txt' must be a list",
        ),
        (lambda out: precis.evaluate(3, "pairs", out=out), f"models=3 {A_PLACE} or a list"),
        (lambda out: precis.learning_curve("pairs", sizes=30, out=out), "sizes=30 must be a list"),
        (
            lambda out: precis.learning_curve("pairs", sizes="30,100", out=out),
            "sizes='30,100' must be a list",
        ),
        (lambda out: precis.write_synthetic(out, 3), "counts=3 must be a dict"),
        (
            lambda out: precis.train_seeds(precis.tune, "m", "p", seeds="3", out=out),
            "seeds='3' must be a whole number",
        ),
        (lambda out: precis.summarize(5), "text=5 must be a text"),
    ],
)
def test_an_argument_of_another_kind_is_named_with_what_it_must_be(
    call: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        call(tmp_path / "out")
    assert says in str(refused.value)
    assert len(str(refused.value)) < 300


def test_what_behaves_like_the_annotated_kind_is_accepted(tmp_path: Path) -> None:
    class Likewise:
        document, summary, references, id, all_references = "Ann sings. Bob listens.", "Ann", (), "", ("Ann",)

    found = precis.score({"a": np.array(["Ann sings."])}, [Likewise()], baselines=())
    assert found.system("a").metrics["rouge1"].mean > 0
    (file,) = precis.write_synthetic(tmp_path / "pairs", {"test": np.int64(2)})
    assert len(list(precis.read_pairs(file, limit=np.int64(1)))) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_annotation_can_be_checked(name: str) -> None:
    hints = _hints(inspect.unwrap(getattr(precis, name)))
    for argument, hint in hints.items():
        for value in (None, 3, 0.5, "x", ["x"], {"x": 3}, object(), print):
            _misfit(argument, value, hint)


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
