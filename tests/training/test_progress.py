"""The display of a run: a loss and a speed that do not jump, the time that is left, and how the run ended."""

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from precis.training.callbacks import StartInfo, StepInfo, TrainResult, ValidationInfo
from precis.training.progress import ProgressBar

START = StartInfo(
    folder=Path("run"), first_step=2, total_steps=12, trainable_parameters=5, parameters=1234, processes=1, device="cpu"
)  # fmt: skip
STEP = StepInfo(
    step=3, total_steps=12, loss=4.0, learning_rate=0.5, gradient_norm=1.0, tokens=100, seconds=2.0, skipped=False
)  # fmt: skip
RESULT = TrainResult(
    step=8, total_steps=12, best_step=4, best_metric=0.25, best_checkpoint=Path(), stopped_early=False,
    interrupted=False,
)  # fmt: skip


class Shown(ProgressBar):
    def __init__(self, *, terminal: bool = False) -> None:
        self.stream = io.StringIO()
        super().__init__(console=Console(file=self.stream, force_terminal=terminal, width=100))

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_loss_and_speed_of_the_bar_move_a_tenth_of_the_way() -> None:
    bar = Shown(terminal=True)
    bar.on_start(START)
    bar.on_step(STEP)
    bar.on_step(replace(STEP, step=4, loss=2.0, tokens=200))
    bar.on_end(None)
    assert "loss 3.800  rate 5.0e-01  55 tokens/s" in bar.stream.getvalue()


def test_a_skipped_step_leaves_the_loss_and_compiling_the_speed() -> None:
    bar = Shown(terminal=True)
    bar.on_start(START)
    bar.on_step(replace(STEP, seconds=32.0, compiling=30.0))
    bar.on_step(replace(STEP, step=4, loss=float("nan"), skipped=True))
    bar.on_end(None)
    assert "compiled in 30 s at step 3" in bar.stream.getvalue()
    assert "loss 4.000  rate 5.0e-01  50 tokens/s" in bar.stream.getvalue()


@pytest.mark.parametrize(
    ("step", "seconds", "left"),
    [(3, 2.0, "0:18"), (3, 140.0, "21:00"), (3, 402.0, "1:00:18"), (6, 8.0, "0:12"), (12, 8.0, "0:00")],
)
def test_the_time_left_is_that_of_the_steps_so_far_of_this_start(
    step: int, seconds: float, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [5.0]
    monkeypatch.setattr("precis.training.progress.time", SimpleNamespace(perf_counter=lambda: clock[0]))
    bar = Shown()
    bar.on_start(START)
    clock[0] += seconds
    bar.on_step(replace(STEP, step=step, record={"loss": 1.5, "tokens_per_second": 1234.0}))
    assert bar.lines[-1] == f"step {step}/12  loss 1.500  rate 5.0e-01  1,234 tokens/s  {left} left"


def test_the_start_names_what_is_trained_where_unless_nothing_is_left() -> None:
    bar = Shown()
    bar.on_start(START)
    bar.on_start(replace(START, processes=3))
    bar.on_start(replace(START, first_step=12))
    assert bar.lines == [
        "training 5 of 1,234 parameters on cpu: steps 3 to 12",
        "training 5 of 1,234 parameters on 3 processes, cpu: steps 3 to 12",
    ]


def test_a_validation_shows_its_scores_its_time_and_whether_it_is_the_best() -> None:
    bar = Shown()
    info = ValidationInfo(
        step=4, metrics={"loss": 1.5}, seconds=61.0, improved=True, best_step=4, best_value=1.5
    )
    bar.on_validation(info)
    bar.on_validation(replace(info, improved=False))
    assert bar.lines == [
        "validation at step 4: loss 1.500  (best so far)  [61 s]",
        "validation at step 4: loss 1.500  [61 s]",
    ]


def test_the_end_says_how_it_came() -> None:
    bar = Shown()
    for result in (
        RESULT,
        replace(RESULT, stopped_early=True),
        replace(RESULT, stopped_early=True, interrupted=True),
        replace(RESULT, best_step=None),
    ):
        bar.on_end(result)
    assert bar.lines == [
        "done at step 8 of 12; best at step 4: 0.250",
        "stopped early at step 8 of 12; best at step 4: 0.250",
        "interrupted at step 8 of 12; best at step 4: 0.250",
        "done at step 8 of 12",
    ]


def test_a_line_on_a_terminal_is_as_long_as_it_is_and_has_neither_colours_nor_markup() -> None:
    bar = Shown(terminal=True)
    metrics = {f"[bold]rouge{number}": 12.5 for number in range(9)}
    bar.on_validation(
        ValidationInfo(step=4, metrics=metrics, seconds=61.0, improved=False, best_step=4, best_value=1.5)
    )
    figures = "  ".join(f"[bold]rouge{number} 12.500" for number in range(9))
    assert bar.lines == [f"validation at step 4: {figures}  [61 s]"]
