"""A step waits for the device once; seeds are a pure function of the place in a run."""

import itertools
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from precis.training.updates import (
    Totals,
    Updater,
    add_to_window,
    mixed_seed,
    scalars,
    seed_position,
    window_means,
)
from tests.training import tiny


class Operations(TorchDispatchMode):
    """The names of all operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_numbers_get_to_the_device_without_a_copy_from_the_host() -> None:
    there = torch.zeros((), dtype=torch.float64, device="meta")

    with Operations() as operations:
        together = scalars([there, 3, 0.5, True], torch.device("meta"))

    assert (together.shape, together.dtype) == ((4,), torch.float64)
    assert not {"_to_copy", "copy_", "lift_fresh"} & set(operations.names)


def test_scalars_keep_their_values_in_fp64() -> None:
    values = [torch.tensor([2.5]), torch.tensor(7), 2**40 + 1, True]

    assert scalars(values, torch.device("cpu")).tolist() == [2.5, 7.0, 2.0**40 + 1, 1.0]  # type: ignore[arg-type]


def test_a_step_of_several_micro_batches_reads_from_the_device_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    for name in ("tolist", "item", "__float__", "__bool__", "__int__"):
        real = getattr(Tensor, name)

        def counted(self: Tensor, *, name: str = name, real: Any = real) -> Any:
            reads.append(name)
            return real(self)

        monkeypatch.setattr(Tensor, name, counted)

    tiny.run(tmp_path, steps=5, gradient_accumulation=3, save_every=100)

    assert reads.count("tolist") == 5
    assert len(reads) == 5, reads


def test_no_two_places_share_a_seed() -> None:
    places = list(itertools.product(range(3), range(200), range(4), range(4)))

    seeds = {mixed_seed(*place) for place in places}

    assert len(seeds) == len(places)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_order_of_the_numbers_matters_and_negative_ones_are_allowed() -> None:
    assert (
        len(
            {
                mixed_seed(1, 2),
                mixed_seed(2, 1),
                mixed_seed(1, 2, 0),
                mixed_seed(-1, 2),
                mixed_seed(2**70 + 5, 2),
            }
        )
        == 5
    )


def test_seeds_never_change_between_versions() -> None:
    """A changed seed would change every resumed curve: this value is part of the checkpoint format."""
    assert mixed_seed(0, 0, 0, 0) == 1195769770526638388
    assert mixed_seed(1, 2, 3, 4) == 1852695968745914623


def test_the_same_place_draws_the_same_numbers_whatever_came_before() -> None:
    draws = []
    for disturbance in (0, 5):
        torch.rand(disturbance)
        seed_position(seed=3, step=7, rank=0, micro_batch=1)
        draws.append(torch.rand(4))

    assert torch.equal(draws[0], draws[1])


def test_gradients_are_synchronized_with_the_last_micro_batch() -> None:
    asked: list[object] = []
    model = tiny.TinyModel()
    updater = object.__new__(Updater)
    updater._model = model

    def no_sync(owner: object) -> AbstractContextManager[None]:
        asked.append(owner)
        return nullcontext()

    accelerator: Any = SimpleNamespace(no_sync=no_sync)
    updater.accelerator = accelerator
    for last in (True, False):
        with updater._sync_only_if(last):
            pass
        assert asked == ([] if last else [model])


def test_the_gradient_of_two_turns_has_the_norm_of_their_parts_together() -> None:
    shared: dict[str, Any] = {"stop": 0, "parts": {}, "counts": {}}
    first = Totals(loss=6.0, targets=4, tokens=10, gradient_norm=3.0, **shared)
    both = first.and_then(Totals(loss=2.0, targets=2, tokens=7, gradient_norm=4.0, **shared))
    one, none = (Totals(loss=6.0, targets=count, tokens=10, gradient_norm=3.0, **shared) for count in (1, 0))
    assert [each.mean_loss for each in (first, one, none)] == [1.5, 6.0, 6.0]
    assert (both.gradient_norm, both.loss, both.targets, both.tokens) == (5.0, 10.0, 4, 17)
    assert first.and_then(one).loss == 6.0 + 4 * 6.0  # a loss a target weighs as much in either turn
    asked = replace(one, stop=1)
    assert (first.and_then(asked).stop, asked.and_then(first).stop) == (1, 1)  # a wish to stop in either turn


def _window(*steps: dict[str, Any]) -> dict[str, float]:
    """Return the sums of steps of two seconds each."""
    window: dict[str, float] = {}
    usual: dict[str, Any] = {
        "loss": 6.0, "targets": 4, "tokens": 10, "stop": 0, "parts": {}, "counts": {}, "gradient_norm": 3.0,
    }  # fmt: skip
    for number, step in enumerate(steps, start=1):
        totals = Totals(**{**usual, **step})
        add_to_window(window, totals, learning_rate=0.1 * number, seconds=2.0)
    return window


def test_a_record_has_means_over_the_steps_that_were_not_skipped_and_the_speed_of_all() -> None:
    parts = {"parts": {"mlm": 8.0, "rtd": 5.0}, "counts": {"mlm": 2, "rtd": 0}}
    record = window_means(
        _window(parts, {"loss": float("nan")}, {"loss": 2.0, "targets": 0, "gradient_norm": 1.0})
    )
    assert record == {
        "loss": 8.0 / 4, "mlm": 4.0, "rtd": 5.0, "gradient_norm": 2.0, "learning_rate": pytest.approx(0.2),
        "skipped": 1.0, "tokens_per_second": 5.0,
    }  # fmt: skip


def test_a_record_of_skipped_steps_alone_has_no_loss_and_one_of_no_targets_is_no_division_by_zero() -> None:
    skipped = window_means(_window(*[{"gradient_norm": float("inf")}] * 2))
    assert skipped == {
        "learning_rate": pytest.approx(0.15), "skipped": 2.0, "tokens_per_second": 5.0,
    }  # fmt: skip
    empty = _window({"loss": 6.0, "targets": 0})
    empty["seconds"] = 0.0  # a clock that stood still
    assert (window_means(empty)["loss"], window_means(empty)["tokens_per_second"] > 1e9) == (6.0, True)
