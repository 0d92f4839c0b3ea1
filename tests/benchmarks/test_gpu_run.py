"""`make gpu` as far as a CPU takes it: the dry walk, stages that crash, goals, exit statuses, and what is counted."""

import importlib
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.compare.train import _fused_on_cpu
from benchmarks.gpu import __main__ as command
from benchmarks.gpu import (
    decoding,
    exactness,
    flops,
    goals,
    machine,
    peers,
    race,
    speed,
    stages,
    suite,
    training,
)
from benchmarks.gpu.device import Device
from benchmarks.gpu.notes import Notes, Row
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.recipes.run_plan import ZCodePPShape
from precis_text.errors import UserError

ROOT = Path(__file__).parents[2]


class Clock(Device):
    """A device whose n-th timing is n ms, and which says in which order passes ran."""

    def __init__(self) -> None:
        super().__init__("cpu")
        object.__setattr__(self, "order", [])

    def time_ms(self, one_pass: Any, count: int) -> float:
        self.order.append(one_pass())  # type: ignore[attr-defined]
        return float(len(self.order))  # type: ignore[attr-defined]

    def peak_mb(self, one_pass: Any) -> float:
        return 2.0


@pytest.fixture
def run(tmp_path: Path) -> race.StageRun:
    """A dry stage with a minute to go."""
    return stage_run(tmp_path, Device("cpu"))


def stage_run(folder: Path, device: Device, *, seconds: float = 60.0) -> race.StageRun:
    return race.StageRun(
        device=device, notes=Notes(folder / "rows.json"), deadline=time.monotonic() + seconds, dry=True
    )


# --- contenders in turn -------------------------------------------------------------------------------------------


def failing(error: Exception) -> Any:
    def build() -> Any:
        raise error

    return build


def test_contenders_take_turns_and_one_that_fails_leaves_the_others(tmp_path: Path) -> None:
    clock = Clock()
    calls: list[int] = []

    def late() -> str:
        calls.append(1)
        if len(calls) > 4:  # two to warm up, one to see how long it takes, the first round
            raise RuntimeError("illegal address\n\nmore about it")
        return "late"

    found = stage_run(tmp_path, clock)
    builds = {
        "a": lambda: lambda: "a",
        "broken": failing(ValueError("no such kernel")),
        "absent": failing(UserError("is not installed")),
        "late": lambda: late,
        "b": lambda: lambda: "b",
    }
    race.race("here", builds, found, seconds=1.0, about={"tokens": 7})
    rows = {row["contender"]: row for row in found.notes.rows}
    assert clock.order == ["a", "late", "b", "a", "late", "b", "b", "a"]  # type: ignore[attr-defined]
    assert rows["broken"]["failed"] == "ValueError: no such kernel"
    assert rows["absent"]["left_out"] == "is not installed"
    assert rows["late"]["failed"] == "RuntimeError: illegal address; more about it"
    assert (rows["a"]["rounds_ms"], rows["a"]["ms"], rows["a"]["tokens"]) == ([4.0, 8.0], 6.0, 7)
    assert json.loads((tmp_path / "rows.json").read_text()) == found.notes.rows


@pytest.mark.slow
def test_values_that_are_far_from_the_first_contenders_are_no_row_of_times(run: race.StageRun) -> None:
    values = {
        "a": torch.ones(4),
        "near": torch.full((4,), 1.01),
        "far": torch.zeros(4),
        "other": torch.zeros(4),
    }
    builds = {name: lambda value=value: lambda: value for name, value in values.items()}
    race.race("here", builds, run, seconds=0.1, about={}, alike=("a", "near", "far"))
    rows = {row["contender"]: row for row in run.notes.rows}
    assert rows["near"]["distance"] == pytest.approx(0.01, rel=1e-3)
    assert rows["far"]["failed"].startswith("ValueError: its values are 1 of their norm away")
    assert "ms" in rows["other"]


def test_nothing_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    late = stage_run(tmp_path, Device("cpu"), seconds=-1)
    race.race("here", {"a": failing(AssertionError())}, late, seconds=1.0, about={})
    late.attempt("there", "b", failing(AssertionError()))
    assert [row["left_out"] for row in late.notes.rows] == ["no time was left"] * 2


def test_a_contender_that_takes_the_device_with_it_is_named_and_ends_the_process(tmp_path: Path) -> None:
    class Lost(Device):
        def is_lost(self) -> bool:
            return True

    found = stage_run(tmp_path, Lost("cpu"))
    with pytest.raises(race.DeviceLostError):
        race.race("here", {"bad": failing(RuntimeError("misaligned address"))}, found, seconds=1, about={})
    race.race(
        "here", {"bad": failing(AssertionError())}, found, seconds=1, about={}
    )  # passed over from now on
    assert [row["failed"] for row in Notes(tmp_path / "rows.json").rows] == [
        "RuntimeError: misaligned address"
    ]


class Card:
    """What of `torch.cuda` a `Device` asks, noting the order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        for name, given in {"memory_allocated": 3 * 2**20, "max_memory_allocated": 10 * 2**20}.items():
            monkeypatch.setattr(torch.cuda, name, self._noting(name, given))
        for name in ("synchronize", "reset_peak_memory_stats", "empty_cache"):
            monkeypatch.setattr(torch.cuda, name, self._noting(name, None))
        monkeypatch.setattr(torch.cuda, "Event", self._event)

    def _noting(self, name: str, given: Any) -> Any:
        return lambda *_: self.calls.append(name) or given  # type: ignore[func-returns-value]

    def _event(self, *, enable_timing: bool) -> Any:
        assert enable_timing
        event = SimpleNamespace(record=self._noting("record", None), elapsed_time=lambda _: 12.0)
        event.synchronize = self._noting("wait for the event", None)
        return event


def test_a_card_s_time_is_between_two_events_on_an_idle_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(monkeypatch)
    assert Device("cuda").time_ms(lambda: card.calls.append("pass"), 3) == 4.0
    assert card.calls == ["synchronize", "record", *["pass"] * 3, "record", "wait for the event"]


def test_a_card_s_peak_is_above_what_was_held(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(monkeypatch)
    assert Device("cuda").peak_mb(lambda: card.calls.append("pass")) == 7.0
    started, ran = card.calls.index("reset_peak_memory_stats"), card.calls.index("pass")
    assert card.calls.index("memory_allocated") < started < ran < card.calls.index("max_memory_allocated")
    assert card.calls[ran + 1] == "synchronize"


def test_a_device_that_answers_with_an_error_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("CUDA error: misaligned address")

    monkeypatch.setattr(torch.cuda, "synchronize", fails)
    assert Device("cuda").is_lost()
    assert not Device("cpu").is_lost()


# --- stages in processes of their own -----------------------------------------------------------------------------


def outcome_of(name: str, folder: Path, *, seconds: float = 120.0) -> stages.Outcome:
    stage = stages.Stage(name=name, make=f"tests.benchmarks.gpu_stages:{name}", share=1)
    return stages.run(stage, folder, deadline=time.monotonic() + seconds, dry=True)


@pytest.mark.slow
def test_a_crash_costs_its_contender_and_no_other(tmp_path: Path) -> None:
    found = outcome_of("dies", tmp_path)
    assert (found.status, found.processes, found.error) == ("done", 2, "")
    assert [row["contender"] for row in found.rows] == ["first", "second", "third"]
    assert found.failures() == ["here, second: its process was ended by SIGKILL while it was at work"]


@pytest.mark.slow
def test_a_lost_device_costs_a_process(tmp_path: Path) -> None:
    found = outcome_of("loses_the_device", tmp_path)
    assert (found.status, found.processes) == ("done", 2)
    assert found.failures() == ["here, first: misaligned address"]


def test_a_stage_that_breaks_is_named_with_its_last_lines(tmp_path: Path) -> None:
    found = outcome_of("raises", tmp_path)
    assert (found.status, found.processes) == ("failed", 1)
    assert found.error.startswith("its process ended with status 1: ")
    assert found.error.endswith("ValueError: nobody in particular")
    assert [row["said"] for row in found.rows] == ["good"]


def test_a_stage_is_stopped_at_its_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_GRACE", 0.1)  # importing torch takes longer
    found = outcome_of("raises", tmp_path, seconds=0.3)
    assert found.status == "failed"
    assert found.error.startswith("its process was stopped at the end of its time")
    late = outcome_of("raises", tmp_path, seconds=-1)
    assert (late.processes, late.error) == (0, "no time was left for it")


@pytest.mark.parametrize("stage", stages.STAGES, ids=lambda stage: stage.name)
def test_every_stage_can_be_found(stage: stages.Stage) -> None:
    module, function = stage.make.split(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_what_a_stage_leaves_over_is_the_next_ones() -> None:
    chosen = list(stages.STAGES)
    ends = [command.deadline(chosen, n, began=100.0, minutes=8.0) for n in range(len(chosen))]
    assert ends == sorted(ends)
    assert ends[-1] == 100.0 + 480 - command._END
    assert ends[0] < 100.0 + 30  # of all stages the first has the least


# --- the command --------------------------------------------------------------------------------------------------


def rows_of_a_machine(**facts: Any) -> list[Row]:
    return [{"cell": "machine", "contender": "facts", **facts}]


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> dict[str, stages.Outcome]:
    """What stages end with, by name; the others end well."""
    found: dict[str, stages.Outcome] = {}

    def run(stage: stages.Stage, folder: Path, **_: Any) -> stages.Outcome:
        return found.get(stage.name, stages.Outcome(status="done", seconds=1.0, processes=1))

    monkeypatch.setattr(command, "run", run)
    return found


def test_without_a_card_the_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "make gpu DRY=1" in said.err


def test_the_json_holds_stages_goals_and_failures(
    faked: dict[str, stages.Outcome], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all.json"
    assert command.main(["--dry", "--out", str(out)]) == 0
    whole = json.loads(out.read_text())
    assert (whole["whole"], whole["dry"], whole["failures"]) == (True, True, [])
    assert list(whole["stages"]) == [stage.name for stage in stages.STAGES]
    assert {goal["verdict"] for goal in whole["goals"]} == {"waiting"}
    faked["tests"] = stages.Outcome(status="failed", seconds=1.0, processes=1, error="status 4: [x] no card")
    assert command.main(["--dry", "--out", str(out), "--only", "machine", "tests"]) == 1
    assert json.loads(out.read_text())["failures"] == ["tests: status 4: [x] no card"]
    assert "FAILED tests: status 4: [x] no card" in capsys.readouterr().out


def test_the_json_is_written_after_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, seen = tmp_path / "all.json", []

    def run(stage: stages.Stage, folder: Path, **_: Any) -> stages.Outcome:
        seen.append(json.loads(out.read_text())["whole"] if out.exists() else None)
        return stages.Outcome(status="done", seconds=1.0, processes=1)

    monkeypatch.setattr(command, "run", run)
    command.main(["--dry", "--out", str(out), "--only", "machine", "tests", "encoder"])
    assert seen == [None, False, False]
    assert json.loads(out.read_text())["whole"]


# --- goals --------------------------------------------------------------------------------------------------------


def timed(cell: str, contender: str, rounds: list[float], peak_mb: float = 100.0) -> Row:
    return {"cell": cell, "contender": contender, "rounds_ms": rounds, "peak_mb": peak_mb}


def verdicts(
    found: dict[str, list[Row]], *, card: str | None = "NVIDIA H200", dry: bool = False
) -> dict[str, Any]:
    return {o.goal.name: o for o in goals.outcomes(found, card=card, dry=dry)}


def test_a_goal_is_met_from_its_figure_on() -> None:
    cell = speed.cell("forward", 2048)
    rows = [
        timed(cell, peers.OURS, [10.0, 10.0, 20.0], 101.0),
        timed(cell, peers.FLASH, [9.6, 9.0, 20.0], 100.0),
        timed(cell, peers.THEIRS, [21.0, 19.9, 60.0]),
    ]
    found = verdicts({"attention": rows})
    level = found[f"attention {cell}: time of {peers.FLASH} / ours"]
    assert (level.ratio.value, level.ratio.low, level.ratio.high) == pytest.approx((0.96, 0.9, 1.0))
    assert level.verdict == "met"  # 4% slower
    assert found[f"attention {cell}: time of {peers.THEIRS} / ours"].verdict == "met"
    assert found[f"attention {cell}: memory of {peers.FLASH} / ours"].verdict == "missed"
    rows[1]["rounds_ms"] = [9.4, 9.4, 18.8]
    rows[2]["rounds_ms"] = [19.9, 19.9, 60.0]
    found = verdicts({"attention": rows})
    assert found[f"attention {cell}: time of {peers.FLASH} / ours"].verdict == "missed"  # 6% slower
    assert found[f"attention {cell}: time of {peers.THEIRS} / ours"].verdict == "missed"


def test_a_goal_without_a_figure_waits_and_says_why() -> None:
    cell = speed.cell("forward", 512)
    rows = [
        timed(cell, peers.OURS, [1.0]),
        {"cell": cell, "contender": peers.FLASH, "left_out": "is not installed"},
    ]
    found = verdicts({"attention": rows})
    waiting = found[f"attention {cell}: time of {peers.FLASH} / ours"]
    assert (waiting.verdict, waiting.why) == ("waiting", f"{peers.FLASH}: is not installed")
    absent = found[f"decoding {decoding.cell('bf16', 1, 5)}: time of {decoding.BART} / ours"]
    assert (absent.verdict, absent.why) == ("waiting", f"stage decoding lacks a figure of {decoding.BART}")


@pytest.mark.parametrize(
    ("card", "dry", "why"),
    [(None, False, "no card"), ("NVIDIA A10", False, "not NVIDIA A10"), ("NVIDIA H100", True, "dry")],
)
def test_goals_wait_for_the_card_that_they_are_for(card: str | None, dry: bool, why: str) -> None:
    cell = decoding.cell("bf16", 1, 1)
    rows = [timed(cell, decoding.FAST, [1.0]), timed(cell, decoding.BART, [4.0])]
    found = verdicts({"decoding": rows}, card=card, dry=dry)
    outcome = found[f"decoding {cell}: time of {decoding.BART} / ours"]
    assert (outcome.verdict, outcome.ratio.value) == ("waiting", 4.0)
    assert why in outcome.why
    assert verdicts({"decoding": rows})[outcome.goal.name].verdict == "met"


def test_the_share_of_the_peak_is_that_of_the_faster_step() -> None:
    peak = {"cell": "peak of matrix products", "contender": "bf16", "tflops": 800.0}
    work = 25.6e12  # takes 32 ms at the peak
    rows = [
        {"cell": training.JOINT, "contender": training.EAGER, "flops": work, "rounds_ms": [160.0]},
        {
            "cell": training.JOINT,
            "contender": training.COMPILED,
            "flops": work,
            "rounds_ms": [80.0, 100.0, 160.0],
        },
    ]
    share = goals.share_of_peak({"machine": [peak], "training": rows})
    assert share == pytest.approx((0.32, 0.2, 0.4))
    rows[1] = {"cell": training.JOINT, "contender": training.COMPILED, "failed": "no compiler"}
    assert goals.share_of_peak({"machine": [peak], "training": rows}) == pytest.approx((0.2, 0.2, 0.2))
    with pytest.raises(goals.MissingError, match="stage machine"):
        goals.share_of_peak({"training": rows})


# --- exactness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True])
def test_the_reference_is_the_plain_path_in_fp64(padded: bool) -> None:
    case = exactness._Case(70, torch.float64, "cpu", padded=padded)
    plain, _ = exactness.way_of("plain")
    assert case.error_of_values(plain) < 1e-12
    assert case.error_of_gradients(plain) < 1e-12


def test_a_wrong_way_is_named_and_those_that_are_right_are_not(
    run: race.StageRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows() -> dict[str, Row]:
        return {row["contender"]: row for row in run.notes.rows}

    monkeypatch.setattr(exactness, "TOY_LENGTHS", (33,))
    monkeypatch.setattr(exactness, "TOY_FLEX_LENGTHS", ())
    monkeypatch.setitem(
        exactness._WAYS, "bands", ("tests.benchmarks.test_gpu_run", "without_position_queries", False)
    )
    monkeypatch.setitem(exactness._WAYS, "keeping", ("precis.nn.no_such_module", "attend_nowhere", True))
    exactness.stage(run)
    assert "values are off by" in rows()["bands"]["wrong"]
    assert "no_such_module" in rows()["keeping"]["left_out"]
    for name in ("plain", "attend", "open", "recomputing"):
        assert "wrong" not in rows()[name]
        assert rows()[name]["errors"]["gradients"] > 0
    said = exactness.summary(run.notes.rows)
    assert [way for dtype, way, _ in said if dtype == "fp16"] == [
        "plain",
        "attend",
        "open",
        "recomputing",
        "bands",
    ]
    assert any(way == "keeping" and why.startswith("2 times") for _, way, why in said)


def without_position_queries(operands: Any) -> Any:
    """A way that forgets a part of the scores."""
    from precis.nn.disentangled.bias import DisentangledBias

    queries, keys, options = operands.queries, operands.keys, operands.options
    bias = DisentangledBias(operands.position_keys, None, options.offsets)
    scores = options.scale * queries @ keys.mT + bias.rows(0, queries.shape[-2], queries, keys)
    if options.valid is not None:
        scores = scores.masked_fill(~options.valid[:, None, None], torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ operands.values


def test_errors_are_measured_by_the_plain_paths_and_by_rounding() -> None:
    assert exactness.misses({"values": 0.015}, None, 0.0078) == ""
    assert "values are off by 0.02" in exactness.misses({"values": 0.02}, None, 0.0078)
    assert exactness.misses({"values": 0.02}, {"values": 0.011}, 0.0078) == ""
    assert "gradients" in exactness.misses({"values": 0.0, "gradients": float("nan")}, {}, 0.0078)


# --- what is counted ----------------------------------------------------------------------------------------------

SHAPE = ZCodePPShape(
    vocab_size=300,
    hidden_size=32,
    num_attention_heads=2,
    intermediate_size=48,
    encoder_layers=3,
    decoder_layers=2,
    encoder_positions="bucketed",  # no position products, of which a way may compute more than are needed
    dropout=0.0,
    attention_dropout=0.0,
)


def test_the_paper_count_of_a_step_is_what_torch_counts() -> None:
    model = ZCodePPForConditionalGeneration(ZCodePPConfig(**SHAPE.to_dict()))
    ids, labels = torch.randint(4, 300, (5, 20)), torch.randint(4, 300, (5, 7))
    counter = FlopCounterMode(display=False, custom_mapping=_fused_on_cpu())
    with counter, torch.no_grad():
        model(input_ids=ids, labels=labels)
    work = flops.Work(rows=5, read=20, written=7)
    assert flops.of_step(SHAPE, work) == 3 * counter.get_total_flops()


def test_generator_and_detection_are_counted_with_the_rest() -> None:
    work = flops.Work(rows=5, read=20, written=7, detected=24, masked=4)
    alone = flops.Work(rows=5, read=20, written=7)
    more = flops.of_step(SHAPE, work, generator_layers=2) - flops.of_step(SHAPE, alone)
    encoders = flops.encoder(SHAPE, rows=5, length=24) * 5 // 3  # three layers, and two of the generator
    heads = 5 * 24 * (2 * 32 * 32 + 2 * 32) + 5 * 4 * (2 * 32 * 32 + 2 * 32 * 300)
    assert more == 3 * (encoders + heads)


def test_the_paper_count_of_a_pre_training_step_is_what_torch_counts(
    run: race.StageRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = training._recipe(run, dropout=False)
    plain = replace(recipe, model=replace(recipe.model, encoder_positions="bucketed"))  # type: ignore[arg-type]
    monkeypatch.setattr(training, "_recipe", lambda *_, **__: plain)
    step = training._joint(run, dropout=False)
    counter = FlopCounterMode(display=False, custom_mapping=_fused_on_cpu())
    with counter, torch.no_grad():
        step.objective(step.model, step.batches.batch(0))
    assert 3 * counter.get_total_flops() == step.flops


def test_position_products_are_at_most_the_table_s_rows() -> None:
    with_positions = replace(SHAPE, encoder_positions="disentangled")
    for length, rows in ((100, 199), (1000, 512)):
        more = flops.encoder(with_positions, rows=2, length=length) - flops.encoder(
            SHAPE, rows=2, length=length
        )
        assert more == 3 * (2 * 4 * length * rows * 32 + 4 * rows * 32**2)


def test_pytest_s_report_is_counted() -> None:
    report = """<testsuites><testsuite>
      <testcase classname="tests.a" name="one"/>
      <testcase classname="tests.a" name="two"><skipped message="no card"/></testcase>
      <testcase classname="tests.b" name="three"><failure message="wrong"/></testcase>
      <testcase classname="tests.b" name="four"><error message="broken"/></testcase>
    </testsuite></testsuites>"""
    assert suite.counts(report) == {
        "passed": 1,
        "skipped": 1,
        "not passed": ["tests.b.three", "tests.b.four"],
    }


# --- the stages themselves, at toy sizes --------------------------------------------------------------------------


@pytest.mark.slow  # make gpu DRY=1 goes there too
def test_attention_is_timed_beside_transformers_after_their_values_agree(run: race.StageRun) -> None:
    speed.attention(run)
    rows = {(row["cell"], row["contender"]): row for row in run.notes.rows}
    assert {cell for cell, _ in rows} == {"forward 32", "forward+backward 32"}
    for cell, contender in rows:
        if contender != peers.FLASH:
            assert rows[cell, contender]["ms"] > 0
    assert 0 < rows["forward 32", peers.THEIRS]["distance"] < 0.02
    flash = rows["forward 32", peers.FLASH]
    assert "ms" in flash or "not installed" in flash["left_out"]


@pytest.mark.parametrize("length", [40, 700])
def test_the_contenders_compute_the_same_below_and_beyond_the_table(length: int) -> None:
    shape: dict[str, Any] = {"batch": 1, "length": length, "learns": False, "device": Device("cpu")}
    made = peers.layers(peers.TOY_SIZE, **shape, dtype=torch.float32)
    ours, theirs, floor = (
        peers.layer_pass(made[name](), peers.TOY_SIZE, **shape, dtype=torch.float32)()
        for name in (peers.OURS, peers.THEIRS, peers.FLOOR)
    )
    assert isinstance(ours, torch.Tensor)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    assert float((ours - floor).norm() / ours.norm()) > 0.3  # type: ignore[operator]  # a way that forgot positions would be noticed


def test_the_machine_says_versions_and_peaks(run: race.StageRun) -> None:
    machine.stage(run)
    rows = {row["contender"]: row for row in run.notes.rows}
    assert rows["facts"]["torch"] == torch.__version__
    assert rows["facts"]["disentangled-flash"]
    for name in ("bf16", "fp16", "tf32", "fp32"):
        assert 0 < rows[name]["tflops_low"] <= rows[name]["tflops"] <= rows[name]["tflops_high"]


@pytest.mark.slow
def test_the_dry_walk_goes_through_every_stage(tmp_path: Path) -> None:
    out = tmp_path / "dry.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "--dry", "--out", str(out), "--minutes", "15"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    whole = json.loads(out.read_text())
    assert whole["whole"]
    assert not whole["failures"]
    assert [stage["status"] for stage in whole["stages"].values()] == ["done"] * len(stages.STAGES)
    kinds = {
        name: {(row["cell"], row["contender"]) for row in stage["rows"] if "ms" in row}
        for name, stage in whole["stages"].items()
    }
    assert (training.JOINT, training.COMPILED) in kinds["training"]
    assert (training.PAIRS, training.EAGER) in kinds["training"]
    for dtype in decoding.DTYPES:
        cell = decoding.cell(dtype, 1, 1)
        assert {(cell, who) for who in (decoding.FAST, decoding.GENERATE, decoding.BART)} <= kinds["decoding"]
    shares = [goal["value_low_high"] for goal in whole["goals"] if "share" in goal["goal"]]
    assert shares[0][0] > 0
