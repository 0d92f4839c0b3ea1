"""What watches a run writes what happened, once, and only from the step that the run resumed from."""

import io
import json
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from precis.training import Curves, JsonLines, ProgressBar, TensorBoard, standard_callbacks
from precis.training.callbacks import StepInfo, TrainResult, read_metrics
from precis.training.curves import _panels, draw_curves
from precis_text.errors import DivergedError
from tests.devices import chosen
from tests.training import tiny


def test_every_record_and_validation_is_one_json_line(tmp_path: Path) -> None:
    tiny.run(tmp_path, callbacks=[JsonLines()], log_every=5, validate=tiny.validation_loss, validate_every=6)

    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]

    assert [(line["kind"], line["step"]) for line in lines] == [
        ("train", 5),
        ("validation", 6),
        ("train", 10),
        ("train", 12),
        ("validation", 12),
    ]
    train_keys = {"epoch", "loss", "nll", "accuracy", "gradient_norm", "learning_rate", "tokens_per_second"}
    assert train_keys <= lines[0].keys()
    assert {"loss", "nll", "accuracy", "seconds"} <= lines[1].keys()
    assert lines[2]["epoch"] == 2.0


def test_a_record_is_the_mean_over_the_targets_since_the_last(tmp_path: Path) -> None:
    for every, name in ((1, "each"), (4, "window")):
        tiny.run(tmp_path / name, callbacks=[JsonLines()], log_every=every, steps=4)
    each = read_metrics(tmp_path / "each" / "metrics.jsonl")
    (window,) = read_metrics(tmp_path / "window" / "metrics.jsonl")

    totals = [r["tokens"] for r in each]
    targets = [now - before for now, before in zip(totals, [0, *totals], strict=False)]
    expected = sum(r["loss"] * count for r, count in zip(each, targets, strict=True)) / sum(targets)
    assert window["loss"] == pytest.approx(expected, rel=1e-9)
    assert window["learning_rate"] == pytest.approx(sum(r["learning_rate"] for r in each) / 4)


def test_a_broken_line_in_the_middle_is_an_error_and_at_the_end_is_not(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [r["step"] for r in read_metrics(path)] == [1, 2]

    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(ValueError, match="Unterminated"):
        read_metrics(path)


def test_a_value_that_is_not_finite_is_null(tmp_path: Path) -> None:
    with pytest.raises(DivergedError):
        tiny.run(tmp_path, callbacks=[JsonLines(), Curves()], validate=lambda _model: {"loss": math.nan})

    text = (tmp_path / "metrics.jsonl").read_text()
    assert "NaN" not in text
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["loss"] is None


def test_tensorboard_has_the_same_numbers(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tiny.run(tmp_path, callbacks=[JsonLines(), TensorBoard()], log_every=4, validate=tiny.validation_loss)

    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    records = read_metrics(tmp_path / "metrics.jsonl")
    shown = [(event.step, event.value) for event in events.Scalars("train/loss")]
    assert shown == [(r["step"], pytest.approx(r["loss"])) for r in records if r["kind"] == "train"]
    assert [event.step for event in events.Scalars("validation/nll")] == [12]


@pytest.mark.parametrize("make", [JsonLines, TensorBoard])
def test_a_callback_ends_without_an_error_if_its_run_did_not_start(
    make: Callable[[], JsonLines | TensorBoard],
) -> None:
    make().on_end(None)


@pytest.mark.long
@pytest.mark.long
@pytest.mark.draws
def test_the_curves_are_drawn_at_validations_and_at_the_end(tmp_path: Path) -> None:
    drawn: list[bool] = []

    def look(model: Any) -> Any:
        drawn.append((tmp_path / "curves.png").exists())
        return {**tiny.validation_loss(model), "rougeL": 20.0}

    tiny.run(tmp_path, callbacks=[JsonLines(), Curves()], validate=look, validate_every=6)

    assert drawn == [False, True]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.draws
def test_the_curves_mark_the_step_of_the_best_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[int | None] = []

    monkeypatch.setattr("precis.training.curves.draw_curves", lambda *_, kept: marked.append(kept))
    monkeypatch.setattr("precis.training.curves._SHARE", 0)  # each time, however long it takes
    losses = iter([3.0, 1.0, 2.0])
    tiny.run(
        tmp_path,
        callbacks=[JsonLines(), Curves()],
        validate=lambda _: {"loss": next(losses)},
        validate_every=4,
    )

    assert marked == [4, 8, 8, 8]


@pytest.mark.draws
def test_a_run_that_keeps_its_last_weights_marks_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[int | None] = []
    monkeypatch.setattr("precis.training.curves.draw_curves", lambda *_, kept: marked.append(kept))
    monkeypatch.setattr("precis.training.curves._SHARE", 0)
    losses = iter([1.0, 2.0, 3.0])
    callbacks = [JsonLines(), Curves(kept="last")]
    tiny.run(tmp_path, callbacks=callbacks, validate=lambda _: {"loss": next(losses)}, validate_every=4)

    assert marked == [4, 8, 12, 12]


@pytest.mark.long
def test_every_panel_of_the_curves_has_a_title_and_names_for_both_axes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    save = Figure.savefig

    def look(figure: Figure, *arguments: Any, **options: Any) -> None:
        drawn.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", look)
    names = ["loss", "mlm", "rtd", "csp", "rtd_accuracy", "mlm_accuracy", "learning_rate"]
    records = [
        {"kind": kind, "step": step, **dict.fromkeys(names, 1.0 / step)}
        for step in (1, 2)
        for kind in ("train", "validation")
    ]
    draw_curves(records, tmp_path / "curves.png", kept=2)

    panels = [axes for axes in drawn[0].axes if axes.get_visible()]
    assert (len(panels), len(drawn[0].axes)) == (7, 8)  # two rows of four
    lines = {line.get_label(): line for line in panels[0].get_lines()}
    assert [lines[name].get_linestyle() for name in ("training", "validation")] == ["-", "-"]
    assert [lines[name].get_marker() for name in ("training", "validation")] == ["None", "o"]
    draw_curves(records[:2], tmp_path / "curves.png")  # a line needs two points
    lines = {line.get_label(): line for line in drawn[1].axes[0].get_lines()}
    assert [lines[name].get_marker() for name in ("training", "validation")] == [".", "o"]
    pairs = [
        {"kind": kind, "step": step, "rouge1": 1.0, "rougeL": 2.0}
        for step in (1, 2)
        for kind in ("train", "validation")
    ]
    draw_curves(pairs, tmp_path / "curves.png")
    assert drawn[2].axes[0].get_legend_handles_labels()[1] == ["rouge1", "rougeL"]
    for axes in panels:
        assert axes.get_title()
        assert axes.get_xlabel() == "optimizer step"
        assert axes.get_ylabel()
        legend = axes.get_legend()
        assert legend is not None
        assert "kept: step 2" in [text.get_text() for text in legend.get_texts()]


def test_accuracies_and_scores_have_their_own_panels() -> None:
    names = {"loss", "rtd_accuracy", "mlm_accuracy", "rougeL", "loss/a", "learning_rate"}
    assert {title: shown for title, _, shown in _panels(names)} == {
        "Loss per target": ["loss", "nll"],
        "Loss of each set": ["loss/a"],
        "RTD accuracy": ["rtd_accuracy", "rtd_baseline"],
        "Accuracy": ["mlm_accuracy"],
        "Scores": ["rougeL"],
        "Learning rate": ["learning_rate"],
    }


def test_the_parts_of_an_extractors_loss_are_no_scores_and_one_step_has_a_point_and_a_whole_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *_, **__: drawn.append(figure))
    parts = {"loss": 3.0, "choice": 2.0, "length": 5.0, "first": 0.5}
    records = [{"kind": kind, "step": 1, **parts} for kind in ("train", "validation")]
    draw_curves(records, tmp_path / "curves.png", kept=1)

    panels = {axes.get_title(): axes for axes in drawn[0].axes if axes.get_visible()}
    assert [*panels] == ["Loss per target", "Choice loss", "Length loss", "Accuracy"]
    for axes in panels.values():
        assert axes.lines[0].get_marker() == "."
        assert all(float(place).is_integer() for place in axes.get_xticks())


@pytest.mark.draws
def test_drawing_takes_no_more_than_a_twentieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int | None] = []
    clock = [0.0]

    def draw(_records: Any, _path: Path, *, kept: int | None = None) -> None:
        drawn.append(kept)
        clock[0] += 2.0

    def look(_model: Any) -> Any:
        clock[0] += 15.0  # from one validation to the next
        return {"loss": 100.0 - clock[0]}

    monkeypatch.setattr("precis.training.curves.draw_curves", draw)
    # the module's own name alone: a service of other tests, in a thread of this process, waits by the real clock
    monkeypatch.setattr("precis.training.curves.time", SimpleNamespace(monotonic=lambda: clock[0]))
    tiny.run(tmp_path, callbacks=[JsonLines(), Curves()], validate=look, validate_every=1)

    assert drawn == [1, 4, 7, 10, 12]  # the last at the end


@pytest.mark.long
def test_curves_a_run_that_is_not_finite_are_drawn_without_a_complaint(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    draw_curves([{"kind": "validation", "step": 1, "loss": None}], tmp_path / "curves.png")

    assert [str(warning.message) for warning in recwarn] == []


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    draw_curves([], tmp_path / "curves.png")

    assert not (tmp_path / "curves.png").exists()


def _console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=terminal, width=100), stream


def test_without_a_terminal_there_is_a_plain_line_for_each_record_and_no_bar(tmp_path: Path) -> None:
    console, stream = _console(terminal=False)
    began = time.perf_counter()

    tiny.run(tmp_path, callbacks=[ProgressBar(console=console)], log_every=6, validate=tiny.validation_loss)

    lines = stream.getvalue().splitlines()
    assert lines[0] == f"training 240 of 240 parameters on {chosen()}: steps 1 to 12"
    assert lines[1].startswith("step 6/12  loss ")
    assert "tokens/s" in lines[1]
    assert lines[1].endswith(" left")
    assert lines[2].startswith("step 12/12  loss ")
    assert lines[3].startswith("validation at step 12: loss ")
    assert "(best so far)" in lines[3]
    assert int(lines[3].rpartition("[")[2].removesuffix(" s]")) <= time.perf_counter() - began + 1
    assert lines[4].startswith("done at step 12 of 12; best at step 12: ")
    assert len(lines) == 5
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_there_is_a_bar_with_loss_speed_and_time_left(tmp_path: Path) -> None:
    console, stream = _console(terminal=True)

    tiny.run(tmp_path, callbacks=[ProgressBar(console=console)])

    assert "12/12" in stream.getvalue()
    assert "tokens/s" in stream.getvalue()
    assert "step 10/12  loss" not in stream.getvalue()


def test_the_bar_is_taken_away_when_the_run_fails(tmp_path: Path) -> None:
    console, _ = _console(terminal=True)

    def fail(_model: Any, _batch: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tiny.run(tmp_path, callbacks=[ProgressBar(console=console)], loss=fail)

    assert console._live_stack == []


def test_a_resumed_run_says_where_it_resumes(tmp_path: Path) -> None:
    console, stream = _console(terminal=False)
    tiny.run(tmp_path)
    (tmp_path / "checkpoints" / "step-00000012" / "state.json").unlink()

    tiny.run(tmp_path, callbacks=[ProgressBar(console=console)])

    assert stream.getvalue().splitlines()[:2] == [
        f"resuming from {tmp_path}/checkpoints/step-00000008",
        f"training 240 of 240 parameters on {chosen()}: steps 9 to 12",
    ]


@pytest.mark.draws
def test_standard_callbacks_write_all_the_files_of_a_run_folder(tmp_path: Path) -> None:
    tiny.run(tmp_path, callbacks=standard_callbacks())

    names = {path.name for path in tmp_path.iterdir()}
    assert {"metrics.jsonl", "tensorboard", "curves.png", "checkpoints"} <= names


def test_a_callback_that_fails_at_the_start_still_ends_the_others(tmp_path: Path) -> None:
    class Fails:
        def on_start(self, info: Any) -> None:
            raise ZeroDivisionError

        def on_step(self, info: StepInfo) -> None: ...
        def on_validation(self, info: Any) -> None: ...
        def on_end(self, result: Any) -> None: ...

    with pytest.raises(ZeroDivisionError):
        tiny.run(tmp_path, callbacks=[Fails(), *standard_callbacks()])


class Failing(tiny.Witness):
    """A callback whose `verb` raises `error`, after noting that it was called."""

    def __init__(self, verb: str, error: Exception) -> None:
        super().__init__()
        self._verb, self._error = verb, error

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("_") and name == self._verb:

            def fail(info: Any) -> None:
                found(info)
                raise self._error

            return fail
        return found


@pytest.mark.parametrize("verb", ["on_step", "on_validation", "on_end"])
def test_a_callback_that_fails_later_is_named_once_and_the_run_goes_on(
    verb: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = Failing(verb, OSError(28, "No space left on device", "curves.png")), tiny.Witness()

    result = tiny.run(tmp_path, callbacks=[bad, good], validate=tiny.validation_loss, validate_every=4)

    assert result.step == 12
    assert (len(bad.steps), len(bad.validations), len(bad.ends)) == (12, 3, 1)
    assert (len(good.steps), len(good.validations), len(good.ends)) == (12, 3, 1)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "Failing failed (OSError: [Errno 28] No space left on device: 'curves.png'); the run continues, and later "
        "errors of this callback are not shown"
    ]


def test_a_library_that_is_missing_leaves_its_callback_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    absent = Failing("on_start", ModuleNotFoundError("No module named 'tensorboard'"))

    assert tiny.run(tmp_path, callbacks=[absent]).step == 12

    assert (absent.steps, absent.ends) == ([], [])
    assert "No module named 'tensorboard'" in caplog.text


def test_an_error_at_the_end_does_not_hide_what_ended_the_run(tmp_path: Path) -> None:
    def breaks(model: Any, batch: Any) -> Any:
        raise MemoryError("the real one")

    with pytest.raises(MemoryError, match="the real one"):
        tiny.run(tmp_path, loss=breaks, callbacks=[Failing("on_end", OSError(28, "full"))])


@pytest.mark.parametrize("until", [8, 12])
def test_a_full_disk_delays_records_and_never_leaves_half_a_line(tmp_path: Path, until: int) -> None:
    """As one: a file may not grow beyond a limit, for a while, or until the run ends."""
    resource = pytest.importorskip("resource", reason="Windows has no limits")

    class Full(tiny.Witness):
        def on_step(self, info: StepInfo) -> None:
            size = (tmp_path / "metrics.jsonl").stat().st_size
            limit = size + 40 if 4 <= info.step < until else resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        tiny.run(tmp_path, callbacks=[Full(), JsonLines()], log_every=1, save_every=100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, before)

    assert [record["step"] for record in read_metrics(tmp_path / "metrics.jsonl")] == [*range(1, 13)]


@pytest.mark.parametrize("copies", [True, False])
def test_the_next_records_go_to_a_file_that_replaces_the_first_one(tmp_path: Path, copies: bool) -> None:
    class Replaces(tiny.Witness):
        def on_step(self, info: StepInfo) -> None:
            file = tmp_path / "metrics.jsonl"
            if info.step == 3:
                text = file.read_text()
                file.unlink()
                file.write_text(text if copies else "")

    tiny.run(tmp_path, callbacks=[JsonLines(), Replaces()], log_every=1, steps=5)
    steps = [record["step"] for record in read_metrics(tmp_path / "metrics.jsonl")]
    assert steps == ([1, 2, 3, 4, 5] if copies else [4, 5])


@pytest.mark.parametrize(("kept", "step"), [("best", 4), ("last", 6)])
def test_the_last_plot_marks_the_kept_step_and_a_run_that_failed_is_drawn_too(
    kept: Any, step: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    marked: list[int | None] = []
    curves = Curves(kept=kept)
    monkeypatch.setattr(curves, "_draw", lambda: marked.append(curves._marked))
    curves.on_end(None)
    result = TrainResult(
        step=6,
        total_steps=6,
        best_step=4,
        best_metric=0.5,
        best_checkpoint=tmp_path,
        stopped_early=False,
        interrupted=False,
    )
    curves.on_end(result)
    assert marked == [None, step]
