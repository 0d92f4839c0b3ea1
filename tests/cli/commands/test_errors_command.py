"""`precis errors` on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.evaluation.test_error_view import evaluation

Precis = Callable[..., Any]


def test_worst_and_best_are_shown_side_by_side_and_written(precis: Precis, tmp_path: Path) -> None:
    evaluation(tmp_path / "run" / "evaluation")
    page = tmp_path / "errors.html"
    outcome = precis("errors", tmp_path / "run", "--rows", 2, "--html", page)
    assert outcome.code == 0, outcome.err
    assert "first: 5 rows, ranked by ROUGE-L; empty 1, too short 2, missing 3, unsupported 2" in outcome.out
    assert outcome.out.index("worst") < outcome.out.index("best")
    assert "Mistakes of first" in page.read_text()
    again = precis("errors", tmp_path / "run", "--html", page)
    assert (again.code, "already exists" in again.err) == (2, True)


def test_one_kind_alone(precis: Precis, tmp_path: Path) -> None:
    evaluation(tmp_path / "e", checked=False)
    outcome = precis("errors", tmp_path / "e", "--kind", "too-short")
    assert "worst of: too short" in outcome.out
    assert "best" not in outcome.out
    assert precis("errors", tmp_path / "e", "--kind", "unsupported").code == 2
    wrong = precis("errors", tmp_path / "e", "--kind", "mising")
    assert (wrong.code, "missing" in wrong.err) == (2, True)


def test_the_document_and_what_is_unsupported_are_shown(precis: Precis, tmp_path: Path) -> None:
    outcome = precis("errors", evaluation(tmp_path / "e"), "--rows", 2)
    assert "[unsupported: Ann]" in outcome.out
    assert "The bridge is old." in outcome.out
    assert "It ends" not in outcome.out
