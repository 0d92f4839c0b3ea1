"""`benchmarks.compare` without measuring: what is run, what is written, and what is refused in time."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import harness, report
from benchmarks.compare.__main__ import Subject, main
from benchmarks.compare.results import Failure, Measured, Results, Sample
from precis_text.errors import UserError
from tests.outcomes import Run, runner

SUBJECTS = [subject.value for subject in Subject if subject is not Subject.everything]


@dataclass
class Measuring:
    """Instead of measuring, every contender takes a second; what was asked for is kept.

    Ours takes as many as `slow` says of each measuring in turn, then one second again. `broken` fails in the first cell
    of each subject; the subject of number `bursting` ends with an error after it.
    """

    settings: list[Any] = field(default_factory=list)
    broken: str = ""
    bursting: int = -1
    error: Exception = field(default_factory=lambda: OSError("no space left"))
    slow: list[float] = field(default_factory=list)

    def __call__(self, contenders: Any, cells: Any, settings: Any, *, notify: Any, keep: Any) -> Results:
        self.settings.append(settings)
        ours = self.slow.pop(0) if self.slow else 1.0
        found = [
            Measured(cell=cell.name, contender=c.name, samples=(_sample(c.name, ours),), memory=None)
            for cell in cells
            for c in contenders
            if cell.name not in c.skip and (c.name, cell) != (self.broken, cells[0])
        ]
        broken = [c for c in contenders if c.name == self.broken]
        failed = [
            Failure(contender=c.name, cell=cells[0].name, error="no memory", log=("its last line",))
            for c in broken
        ]
        results = Results(settings=settings, measured=tuple(found), left_out=(), failed=tuple(failed))
        keep(results)
        if len(self.settings) - 1 == self.bursting:
            raise self.error
        return results


def _sample(contender: str, ours: float) -> Sample:
    seconds = ours if contender.startswith("precis") else 1.0
    return Sample(wall=seconds, cpu=seconds, passes=1, foreign=0.0)


@pytest.fixture
def compare(capfd: pytest.CaptureFixture[str]) -> Run:
    return runner(main, capfd)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    measuring = Measuring()
    monkeypatch.setattr(harness, "measure", measuring)
    return measuring


def test_all_runs_every_subject_each_with_its_outputs(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    outcome = compare("all", "--quick", "--out", tmp_path, "--write-baseline", tmp_path / "base.json")
    assert outcome.code == 0
    assert len(measured.settings) == len(SUBJECTS)
    for subject in SUBJECTS:
        assert json.loads((tmp_path / f"bench-{subject}.json").read_text())["bench"] == subject
        assert (tmp_path / f"bench-{subject}.png").exists()
    assert sorted(json.loads((tmp_path / "base.json").read_text())) == sorted(SUBJECTS)
    assert compare("all", "--quick", "--against", tmp_path / "base.json").code == 0


def test_a_training_step_is_shown_in_tokens_a_second(measured: Measuring, compare: Run) -> None:
    outcome = compare("train", "--quick")
    assert "tokens/s" in outcome.out
    assert "1,152" in outcome.out


def test_a_missing_baseline_is_refused_before_anything_is_measured(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    outcome = compare("train", "--quick", "--against", tmp_path / "none.json")
    assert (outcome.code, measured.settings) == (2, [])
    assert "none.json: not a baseline" in outcome.error


def test_files_that_cannot_be_written_are_refused_before_anything_is_measured(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("Ann sings.")
    for option in ("--out", "--write-baseline"):
        outcome = compare("train", "--quick", option, tmp_path / "notes.txt")
        assert (outcome.code, measured.settings) == (2, [])
        assert "notes.txt: " in outcome.error


def test_a_ratio_is_compared_with_the_file_as_it_was_before(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    file = tmp_path / "base.json"
    assert compare("train", "--quick", "--write-baseline", file).code == 0
    file.write_text(file.read_text().replace("1.0", "4.0"))
    outcome = compare("train", "--quick", "--against", file, "--write-baseline", file)
    assert outcome.code == 1
    assert "was 4.00 (-75%)" in outcome.error
    assert len(measured.settings) == 1 + 3  # what fell is measured twice more


def test_what_falls_in_one_run_of_two_is_no_problem(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    file = tmp_path / "base.json"
    assert compare("train", "--quick", "--write-baseline", file).code == 0
    measured.settings.clear()
    measured.slow = [3.0, 1.0]
    outcome = compare("train", "--quick", "--against", file)
    assert (outcome.code, len(measured.settings)) == (0, 2)
    assert "train: measured again, since" in outcome.err
    assert "no ratio fell" in outcome.out


def test_memory_is_the_benchmarks_own_choice_unless_the_user_says(measured: Measuring, compare: Run) -> None:
    for options in ([], ["--memory"], ["--no-memory"]):
        assert compare("train", "--quick", *options).code == 0
    assert compare("train").code == 0
    assert [settings.memory for settings in measured.settings] == [False, True, False, True]


def test_a_contender_that_fails_is_named_and_the_rest_is_measured_and_written(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    measured.broken = "BART"
    outcome = compare("encoder", "--quick", "--out", tmp_path)
    assert outcome.code == 1
    assert outcome.error == "error: encoder: BART, forward 64: no memory"
    assert "    its last line" in outcome.err
    content = json.loads((tmp_path / "bench-encoder.json").read_text())
    assert [failure["contender"] for failure in content["failed"]] == ["BART"]
    assert content["ratios"]
    assert content["whole"]


def test_a_subject_that_breaks_keeps_what_it_measured_and_the_later_ones_run(
    measured: Measuring, compare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "write_plot", lambda *_: None)  # slow, and looked at elsewhere
    measured.bursting = 1
    outcome = compare("all", "--quick", "--out", tmp_path)
    assert outcome.code == 1
    broken = [*SUBJECTS][1]
    assert outcome.err.splitlines()[-1] == f"error: {broken}: OSError: no space left"
    assert "Traceback" not in outcome.err
    assert len(measured.settings) == len(SUBJECTS)
    whole = {
        subject: json.loads((tmp_path / f"bench-{subject}.json").read_text())["whole"] for subject in SUBJECTS
    }
    assert whole == {subject: subject != broken for subject in SUBJECTS}


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OSError("no space left"), 1, "error: encoder: OSError: no space left"),
        (UserError("peft is not installed"), 2, "error: encoder: peft is not installed"),
    ],
)
def test_where_a_subject_broke_is_shown_under_debug_alone(
    error: Exception, code: int, line: str, measured: Measuring, compare: Run
) -> None:
    measured.bursting, measured.error = 0, error
    outcome = compare("encoder", "--quick")
    assert (outcome.code, outcome.error) == (code, line)
    measured.settings.clear()
    shown = compare("encoder", "--quick", "--debug")
    assert (shown.code, shown.err.splitlines()[-1]) == (code, line)
    assert "in __call__" in shown.err


def test_what_the_user_can_mend_does_not_hide_what_failed(measured: Measuring, compare: Run) -> None:
    measured.bursting, measured.error, measured.broken = 1, UserError("peft is not installed"), "BART"
    outcome = compare("all", "--quick")
    assert outcome.code == 1
    assert f"{[*SUBJECTS][1]}: peft is not installed" in outcome.error
    assert "encoder: BART, forward 64: no memory" in outcome.error


def test_a_ratio_of_the_baseline_that_could_not_be_measured_fails_the_run(
    measured: Measuring, compare: Run, tmp_path: Path
) -> None:
    file = tmp_path / "base.json"
    assert compare("encoder", "--quick", "--write-baseline", file).code == 0
    measured.broken = "BART"
    outcome = compare("encoder", "--quick", "--against", file)
    assert outcome.code == 1
    assert "compared" in outcome.out
    assert "forward 64: time of BART / precis, CPU: absent from this run" in outcome.error
