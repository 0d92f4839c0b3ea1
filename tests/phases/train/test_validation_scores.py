"""Summaries of fixed dev documents are told at each validation and kept with the run."""

from pathlib import Path

import pytest
from torch import nn

from precis.evaluation.rouge import Rouge
from precis.phases.train.validation_scores import SAMPLES_FILE, Sample, SampleSummaries, rouge_with_bounds
from precis.training import callbacks
from precis.training.callbacks import StartInfo, ValidationInfo, read_metrics


class Scripted:
    """A validation whose model writes the same two summaries."""

    samples = (
        Sample(document="A", reference="r\none", summary="s " * 200),
        Sample(document="B", reference="two", summary=""),
    )

    def __call__(self, model: nn.Module) -> dict[str, float]:
        raise AssertionError("samples cost no pass of their own")


def begun(folder: Path, told: list[str], *, first_step: int = 0) -> SampleSummaries:
    watcher = SampleSummaries(Scripted(), told.append)  # type: ignore[arg-type]
    sizes = {"total_steps": 9, "trainable_parameters": 1, "parameters": 1, "processes": 1, "device": "cpu"}
    watcher.on_start(StartInfo(folder=folder, first_step=first_step, **sizes))  # type: ignore[arg-type]
    return watcher


def validate(watcher: SampleSummaries, step: int) -> None:
    watcher.on_validation(
        ValidationInfo(step=step, metrics={}, seconds=0.0, improved=True, best_step=step, best_value=1.0)
    )


def test_samples_are_told_on_one_short_line_each_and_references_once(tmp_path: Path) -> None:
    told: list[str] = []
    watcher = begun(tmp_path, told)
    for step in (2, 4):
        validate(watcher, step)
    watcher.on_end(None)
    assert [line.split(":")[0].strip() for line in told] == [
        "reference 1", "summary 1", "reference 2", "summary 2", "summary 1", "summary 2"
    ]  # fmt: skip
    assert told[0].endswith("r one")
    assert all(len(line) < 180 and "\n" not in line for line in told)
    assert told[1].endswith("...")
    assert told[-1].endswith("(empty)")


def test_samples_are_kept_whole_and_a_resumed_run_tells_no_step_twice(tmp_path: Path) -> None:
    watcher = begun(tmp_path, [])
    for step in (2, 4, 6):
        validate(watcher, step)
    watcher.on_end(None)
    again = begun(tmp_path, [], first_step=4)
    validate(again, 6)
    again.on_end(None)
    records = read_metrics(tmp_path / SAMPLES_FILE)
    assert [(r["step"], r["sample"]) for r in records] == [(s, n) for s in (2, 4, 6) for n in (1, 2)]
    assert records[0]["summary"] == "s " * 200


def test_a_disk_that_fails_once_delays_all_samples_of_a_step_and_their_references_are_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first sample could not be written, and the second was not even tried (seed 275)."""
    told: list[str] = []
    watcher = begun(tmp_path, told)

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as once:
        once.setattr(callbacks, "write_whole", broken)
        with pytest.raises(OSError, match="Input/output"):
            validate(watcher, 2)
    validate(watcher, 4)
    watcher.on_end(None)
    records = read_metrics(tmp_path / SAMPLES_FILE)
    assert [(r["step"], r["sample"]) for r in records] == [(s, n) for s in (2, 4) for n in (1, 2)]
    assert sum("reference" in line for line in told) == 2


def test_a_validation_without_samples_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Scripted, "samples", ())
    watcher = begun(tmp_path, [])
    validate(watcher, 2)
    watcher.on_end(None)
    assert not (tmp_path / SAMPLES_FILE).exists()


SUBJECTS = ("Ann sings", "Bob paints", "rain falls", "trains stop", "prices rise", "a bridge closes")
REFERENCES = [[f"{subject} in the town of number {index}"] for index, subject in enumerate(SUBJECTS)]


def test_the_same_text_for_every_document_is_chance_and_the_right_ones_are_not() -> None:
    constant = rouge_with_bounds(Rouge(), ["in the town of"] * len(REFERENCES), REFERENCES)
    assert constant["rougeL"] > 50
    assert constant["rougeL_lead"] <= 0
    right = rouge_with_bounds(Rouge(), [f"{subject} in town" for subject in SUBJECTS], REFERENCES)
    assert 0 < right["rougeL_lead"] < right["rougeL"]


def test_one_word_that_fits_by_accident_is_chance() -> None:
    texts = ["sings", *["zz"] * (len(REFERENCES) - 1)]
    found = rouge_with_bounds(Rouge(), texts, REFERENCES)
    assert found["rougeL"] > 0
    assert found["rougeL_lead"] <= 0
    assert rouge_with_bounds(Rouge(), ["Ann sings"], REFERENCES[:1])["rougeL_lead"] == 0
