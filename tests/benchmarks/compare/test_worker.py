"""A contender's process: what it measures of a pass."""

import sys
import time

import pytest
import torch

from benchmarks.compare import machine
from benchmarks.compare.machine import Moment, busy_seconds, describe
from benchmarks.compare.worker import peak_memory, time_passes

BLOCK_MB = 32


def one_pass() -> torch.Tensor:
    """Holds two blocks at a time, one after the other."""
    first = torch.zeros(BLOCK_MB, 2**18)
    second = first + 1
    del first
    return second.sum()


def test_peak_memory_is_that_of_the_tensors_held_at_the_same_time() -> None:
    found = peak_memory(one_pass)
    assert 2 * BLOCK_MB <= found["tensors_mb"] < 2 * BLOCK_MB + 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_peak_memory_of_the_process_counts_what_a_pass_adds() -> None:
    found = peak_memory(one_pass)
    assert 1.5 * BLOCK_MB < found["added_mb"] < 4 * BLOCK_MB
    assert found["process_mb"] > found["added_mb"]


def test_memory_of_tensors_outside_torch_is_not_measured() -> None:
    assert peak_memory(lambda: None, tensors=False)["tensors_mb"] is None


def test_a_turn_runs_until_its_seconds_are_over_and_at_least_once() -> None:
    assert time_passes(lambda: time.sleep(0.02), 0.0)["passes"] == 1
    found = time_passes(lambda: time.sleep(0.02), 0.1)
    assert 2 <= found["passes"] <= 5
    assert found["wall"] >= 0.02 > found["cpu"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_own_work_is_not_foreign() -> None:
    start = Moment.now()
    while time.perf_counter() - start.wall < 0.3:
        pass
    busy = Moment.now()
    foreign = start.foreign_cpus()
    assert foreign is not None
    assert foreign >= 0.0
    assert busy.own - start.own > 0.0


def test_stolen_time_is_busy_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = machine._TICKS
    line = "cpu  " + " ".join(str(n * ticks) for n in (1, 2, 4, 1000, 1000, 8, 16, 32, 5, 5))
    monkeypatch.setattr(machine, "_lines", lambda _: [line])
    assert busy_seconds() == 1 + 2 + 4 + 8 + 16 + 32


def test_the_head_of_a_report_says_what_was_run_and_with_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRECIS_COMPILE", "1")
    monkeypatch.setattr(
        sys, "argv", ["/somewhere/benchmarks/compare/__main__.py", "train", "--out", "a folder"]
    )
    found = describe()
    assert found["command"] == "python -m benchmarks.compare train --out 'a folder'"
    assert found["PRECIS_COMPILE"] == "1"
    assert {"precis", "commit", "kernel", "torch", "transformers", "ctranslate2", "peft", "load"} <= set(
        found
    )
