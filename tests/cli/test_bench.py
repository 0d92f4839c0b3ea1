"""`precis bench` without measuring: what is run, what is written, and what is refused before time is spent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.bench import harness
from precis.bench.harness import Measured, Results, Sample
from precis.cli.bench import Subject

Precis = Callable[..., Any]
SUBJECTS = [subject.value for subject in Subject if subject is not Subject.everything]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Instead of measuring, every contender takes a second; the number of cells of each run."""
    runs: list[int] = []

    def measure(contenders: Any, cells: Any, settings: Any, *, tell: Any) -> Results:
        runs.append(len(cells))
        sample = Sample(wall=1.0, cpu=1.0, passes=1, foreign=0.0)
        found = tuple(
            Measured(cell=cell.name, contender=c.name, samples=(sample,), memory=None)
            for cell in cells
            for c in contenders
            if cell.name not in c.skip
        )
        return Results(settings=settings, measured=found, left_out=())

    monkeypatch.setattr(harness, "measure", measure)
    return runs


def test_all_runs_every_subject_each_with_its_outputs(
    measured: list[int], precis: Precis, tmp_path: Path
) -> None:
    outcome = precis("bench", "all", "--quick", "--out", tmp_path, "--write-baseline", tmp_path / "base.json")
    assert outcome.code == 0
    assert len(measured) == len(SUBJECTS)
    for subject in SUBJECTS:
        assert json.loads((tmp_path / f"bench-{subject}.json").read_text())["bench"] == subject
        assert (tmp_path / f"bench-{subject}.png").exists()
    assert sorted(json.loads((tmp_path / "base.json").read_text())) == sorted(SUBJECTS)
    assert precis("bench", "all", "--quick", "--against", tmp_path / "base.json").code == 0


def test_a_training_step_is_shown_in_tokens_a_second(measured: list[int], precis: Precis) -> None:
    outcome = precis("bench", "train", "--quick")
    assert "tokens/s" in outcome.out
    assert "1,152" in outcome.out


def test_a_missing_baseline_is_refused_before_anything_is_measured(
    measured: list[int], precis: Precis, tmp_path: Path
) -> None:
    outcome = precis("bench", "train", "--quick", "--against", tmp_path / "none.json")
    assert (outcome.code, measured) == (2, [])
    assert "none.json: not a baseline" in outcome.error


def test_files_that_cannot_be_written_are_refused_before_anything_is_measured(
    measured: list[int], precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("Ann sings.")
    for option in ("--out", "--write-baseline"):
        outcome = precis("bench", "train", "--quick", option, tmp_path / "notes.txt")
        assert (outcome.code, measured) == (2, [])
        assert "notes.txt: " in outcome.error


def test_a_ratio_is_compared_with_the_file_as_it_was_before(
    measured: list[int], precis: Precis, tmp_path: Path
) -> None:
    file = tmp_path / "base.json"
    assert precis("bench", "train", "--quick", "--write-baseline", file).code == 0
    file.write_text(file.read_text().replace("1.0", "4.0"))
    outcome = precis("bench", "train", "--quick", "--against", file, "--write-baseline", file)
    assert outcome.code == 1
    assert "was 4.00 (-75%)" in outcome.error
