"""A finished training says where the model lies, how long it took, how good it is, and what to type next."""

from dataclasses import replace
from pathlib import Path

from precis.phases.train.training_session import closing_lines
from precis.training import Trained, TrainResult

RESULT = TrainResult(
    step=2000,
    total_steps=2500,
    best_step=1800,
    best_metric=31.2,
    best_checkpoint=Path("run/checkpoints/best-00001800"),
    stopped_early=True,
    interrupted=False,
    seconds=3723.0,
    metric="rougeL",
)
DONE = Trained(folder=Path("run"), result=RESULT, model=Path("run/model"))


def test_the_closing_summary_has_place_time_best_score_and_what_is_next() -> None:
    assert closing_lines(Path("run/model"), done=DONE, commands=["precis evaluate", "precis summarize"]) == [
        "model: run/model",
        "time:  1 h 2 min of training, 2,000 steps, stopped early of 2,500",
        "best:  rougeL 31.200 at step 1,800",
        "next:  precis evaluate",
        "       precis summarize",
    ]


def test_a_training_that_exports_its_last_weights_says_so() -> None:
    lines = closing_lines(Path("run/model"), done=replace(DONE, kept="last"))
    assert lines[-1] == "best:  rougeL 31.200 at step 1,800; the last weights, of step 2,000, are exported"


def test_without_validation_there_is_no_best_score() -> None:
    bare = replace(DONE, result=replace(RESULT, best_step=None, best_metric=None, seconds=62.0))
    lines = closing_lines(Path("run/adapter"), kind="adapter", done=bare)
    assert [line.partition(":")[0] for line in lines] == ["adapter", "time"]
    assert "1 min 2 s" in lines[1]
