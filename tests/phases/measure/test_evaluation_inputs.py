"""`precis.evaluate` in Python scores what the command scores."""

import json
from pathlib import Path
from typing import Any

import pytest

import precis
from precis.cli import main
from precis_text.errors import UserError
from tests.tiny_models import save


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    precis.write_synthetic(tmp_path / "pairs", {"test": 4}, seed=0)
    return tmp_path / "pairs"


def test_python_writes_the_scores_of_the_command(pairs: Path, tmp_path: Path) -> None:
    model, file = save("bart", tmp_path / "bart"), tmp_path / "lines.txt"
    file.write_text("Ann sings.\n" * 4)
    command = ["evaluate", "--model", str(model), "--predictions", str(file), "--data", str(pairs)]
    assert (
        main([*command, "--out", str(tmp_path / "typed"), "--beams", "2", "--bleu", "--long", "truncate"])
        == 0
    )
    report = precis.evaluate(
        model, pairs, out=tmp_path / "called", predictions=[file], beams=[2], bleu=True, long="truncate"
    )
    typed, called = (
        json.loads((tmp_path / name / "scores.json").read_text()) for name in ("typed", "called")
    )
    assert called == typed
    assert [system.name for system in report.systems[:2]] == ["bart beam 2", "lines"]
    assert "bleu" in report.systems[0].metrics


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ((), {}, "give something to score"),
        ((), {"adapter": "a", "predictions": ["x"]}, "adapter a needs its base model"),
        (["m", "n"], {"adapter": "a"}, "needs exactly one model, but 2 are given"),
        (["m"], {"decoding": "task"}, "decoding task: name the task with task"),
        (["m"], {"limit": 0}, "limit 0: use 1 or more"),
    ],
)
def test_contradictions_are_refused(
    models: Any, options: dict[str, Any], message: str, pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        precis.evaluate(models, pairs, out=tmp_path / "scores", **options)
    assert not (tmp_path / "scores").exists()


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match=r"evaluate\(\) got an unexpected keyword argument 'beam'.*'beams'"):
        precis.evaluate("m", "pairs", out="o", beam=[2])  # type: ignore[call-arg]
