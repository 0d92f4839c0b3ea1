"""`benchmarks/gpu/attention.py` without a device: ways take turns, and one that fails does not stop the others."""

import argparse
from collections.abc import Callable

import pytest
import torch

from benchmarks.gpu import attention
from precis.nn.score_bias import DisentangledBias


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Instead of clocks: what the passes give, in order; the n-th takes n ms."""
    found: list[object] = []

    def clock(work: Callable[[], object]) -> float:
        found.append(work())
        return float(len(found))

    monkeypatch.setattr(attention, "time_ms", clock)
    monkeypatch.setattr(attention, "peak_mb", lambda work: 2.0)
    return found


def failing(*, after: int) -> Callable[[], object]:
    passes: list[int] = []

    def work() -> object:
        passes.append(1)
        if len(passes) > after:
            raise RuntimeError("illegal address\n\nmore about it")
        return "late"

    return work


def unbuildable() -> Callable[[], object]:
    raise ValueError("no such kernel")


def test_ways_take_turns_and_one_that_fails_is_named_and_leaves_the_others(turns: list[object]) -> None:
    builds: dict[str, Callable[[], Callable[[], object]]] = {
        "a": lambda: lambda: "a",
        "unbuildable": unbuildable,
        "late": lambda: failing(after=1),
        "b": lambda: lambda: "b",
    }
    found = attention.race(builds, rounds=3)
    assert turns == [*("a", "late", "b"), *("b", "a"), *("a", "b")]
    assert found["unbuildable"] == {"error": "ValueError: no such kernel"}
    assert found["late"] == {"error": "RuntimeError: illegal address; more about it"}
    assert found["a"] == {"peak_mb": 2.0, "ms": 5.0, "ms_low": 1.0, "ms_high": 6.0}


def test_a_way_that_is_wrong_is_named_and_those_that_agree_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_cpu(batch: int, length: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        states = torch.randn(batch, length, 768, dtype=dtype, generator=generator)
        return states, 0.1 * torch.randn(512, 768, dtype=dtype, generator=generator)

    def other(states: torch.Tensor, bias: DisentangledBias) -> torch.Tensor:
        assert bias.position_keys is not None
        return states + bias.position_keys.sum()

    monkeypatch.setattr(attention, "inputs", on_cpu)
    ways = {"plain": attention.plain, "attend": attention.chosen, "zero": lambda states, bias: 0 * states}
    monkeypatch.setattr(attention, "FORWARD", ways)
    monkeypatch.setattr(attention, "TRAINING", {"recomputing": attention.recomputing, "other": other})
    wrong = attention.wrong_at(24)
    assert set(wrong) == {"zero", "other"}
    assert all(error.startswith("AssertionError") for error in wrong.values())


def test_a_row_says_what_was_measured_or_why_it_was_not(
    turns: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_cpu(batch: int, length: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(batch, length, 768, dtype=dtype), torch.zeros(512, 768, dtype=dtype)

    monkeypatch.setattr(attention, "inputs", on_cpu)
    monkeypatch.setattr(attention, "TOKENS", 16)
    monkeypatch.setattr(attention, "FORWARD", {"plain": attention.plain, "triton": attention.kernel})
    monkeypatch.setattr(attention, "transformers_core", lambda batch, length: unbuildable())
    options = argparse.Namespace(dtype="fp32", rounds=1, peak_tflops=1.0)
    rows = attention.rows_of(16, options, backward=False, wrong={"triton": "AssertionError: nothing alike"})
    plain, theirs = rows
    assert (plain["way"], plain["tokens"], plain["batch"], plain["ms"]) == ("plain", 16, 1, 1.0)
    assert plain["share_of_peak"] == 4 * 12 * 16**2 * 64 / 1e9
    assert theirs["error"] == "ValueError: no such kernel"
