"""Claims about experiments made of steps: what is done stays done, what was stopped goes on, settings are kept."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from precis.config import Settings
from precis.errors import UserError
from precis.recipes.pretraining_runs import SpansAlone
from precis.recipes.reproduce_ablation import VARIANTS, variant
from precis.recipes.reproduce_ablation import table as ablation_table
from precis.recipes.reproduce_fewshot import STARTS
from precis.recipes.reproduce_fewshot import table as fewshot_table
from precis.recipes.reproduction import SCALES
from precis.recipes.study import Interrupted, Step, Study


@dataclass(frozen=True, kw_only=True)
class Size(Settings):
    rows: int = 3


def test_done_steps_are_not_run_again_and_a_stopped_one_is(tmp_path: Path) -> None:
    ran: list[str] = []

    def work(name: str, *, stop: bool = False) -> Step:
        def run(place: Path) -> dict[str, int]:
            ran.append(name)
            assert place.is_dir()
            if stop:
                raise Interrupted
            return {"found": len(name)}

        return Step(name, run)

    study = Study(tmp_path / "s", Size(), name="test")
    with pytest.raises(Interrupted):
        study.work([work("a"), work("bb", stop=True), work("c")], lambda _: None)
    again = Study(tmp_path / "s", Size(), name="test")
    results = again.work([work("a"), work("bb"), work("c")], lambda _: None)
    assert ran == ["a", "bb", "bb", "c"]
    assert {name: result["found"] for name, result in results.items()} == {"a": 1, "bb": 2, "c": 1}


def test_time_spent_before_an_interruption_counts_and_tidying_waits_for_the_result(tmp_path: Path) -> None:
    tries: list[int] = []

    def run(place: Path) -> dict[str, int]:
        tries.append(1)
        (place / "needed").write_text("to go on")
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        if len(tries) == 1:
            raise Interrupted
        return {}

    step = Step("a", run, tidy=lambda place: (place / "needed").unlink(missing_ok=True))
    study = Study(tmp_path / "s", Size(), name="test")
    with pytest.raises(Interrupted):
        study.work([step], lambda _: None)
    assert (study.place("a") / "needed").exists()
    found = study.work([step], lambda _: None)["a"]
    assert found["cpu_seconds"] >= 0.1
    assert not (study.place("a") / "needed").exists()
    (study.place("a") / "needed").write_text("left by a kill")
    study.work([step], lambda _: None)
    assert not (study.place("a") / "needed").exists()
    assert len(tries) == 2


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(tmp_path / "s", Size(), name="test")
    holds = (
        "import sys; from pathlib import Path; from precis.training.lock import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holds, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UserError, match="another process"):
            study.work([], lambda _: None)
        other.communicate()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="without torchrun"):
        study.work([], lambda _: None)


def test_a_folder_of_another_experiment_or_scale_is_refused(tmp_path: Path) -> None:
    Study(tmp_path / "s", Size(), name="one")
    for name, rows in (("two", 3), ("one", 4)):
        with pytest.raises(UserError, match="holds one with other settings or data"):
            Study(tmp_path / "s", Size(rows=rows), name=name)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        Study(tmp_path / "file", Size(), name="one")


def result(value: float) -> dict[str, object]:
    examples = {name: [value, value + 10.0] for name in ("rouge1", "rouge2", "rougeL")}
    return {"examples": examples, "span_loss": value, "cpu_seconds": 60 * value, "tokens": 5}


def test_the_few_shot_table_averages_sampling_seeds_and_compares_each_start_with_the_one_above() -> None:
    scale = SCALES["micro"]
    results: dict[str, dict[str, object]] = {"pack": result(1), "phase1": result(1)}
    for start, base in zip(STARTS, (10.0, 20.0, 30.0), strict=True):
        results |= {
            f"{start}-{size}-{seed}": result(base + seed) for size in (10, 100, 1000) for seed in range(3)
        }
        results |= {f"{start}-all": result(base), f"{start}-0": result(base)}
    del results["scratch-0"]
    rows = [line for line in fewshot_table(scale, results).splitlines() if line.startswith("| 10 ")]
    assert rows[0].startswith("| 10 | scratch | 16.0 [")  # mean of 10, 11, 12 and of these plus 10
    assert "| 15.0, 16.0, 17.0 |" in rows[0]
    assert (
        "| 10.0 [10.0, 10.0] | 13.6/2.6/11.0 |" in rows[1]
    )  # paired by draw: the spread of the draws drops out
    assert json.dumps(scale.to_dict())


def test_the_ablation_changes_one_thing_at_a_time() -> None:
    scale = SCALES["micro"]
    whole = variant(scale, VARIANTS[0], seed=1)
    spans = variant(scale, "without RTD", seed=1)
    plain = variant(scale, "without disentangled attention", seed=1)
    gaps = variant(scale, "gap sentences instead of spans", seed=1)
    assert isinstance(spans.objective, SpansAlone)
    assert (spans.model, spans.corruption, spans.train) == (whole.model, whole.corruption, whole.train)
    assert plain.model.encoder_positions == "bucketed"
    assert (plain.objective, plain.corruption, plain.train) == (
        whole.objective,
        whole.corruption,
        whole.train,
    )
    assert gaps.corruption.unit == "sentences"
    assert (gaps.objective, gaps.model, gaps.train) == (whole.objective, whole.model, whole.train)
    results = {
        f"{stage}-{name.replace(' ', '-')}-{seed}": result(float(seed + 1))
        for stage in ("pretrained", "tuned")
        for name in VARIANTS
        for seed in (0, 1)
    }
    rows = [line for line in ablation_table(scale, results).splitlines() if line.startswith("| without RTD")]
    assert rows[0].startswith("| without RTD | 1.000, 2.000 | 2 |")
