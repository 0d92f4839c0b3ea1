"""`precis bench`, which moved to the source repository."""

from pathlib import Path

import pytest
from outcomes import Run

from precis.cli import bench


def test_the_old_name_says_the_new_one_and_goes_on_with_the_same_options(precis: Run, tmp_path: Path) -> None:
    outcome = precis("bench", "train", "--quick", "--against", tmp_path / "none.json")
    assert outcome.code == 2
    assert "python -m benchmarks.compare" in outcome.err.splitlines()[0]
    assert "none.json: not a baseline" in outcome.error


def test_without_the_sources_one_line_says_where_it_is(
    precis: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "_REPOSITORY", tmp_path)
    outcome = precis("bench", "train")
    assert outcome.code == 2
    assert outcome.error == (
        "error: precis bench is now python -m benchmarks.compare, in a clone of the source repository"
    )
