"""Scores of disentangled attention by the equation, and the way that is taken for each shape, device and mode."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch

from precis.nn.attention import attend
from precis.nn.disentangled import bias as route
from precis.nn.disentangled import flash, flex
from precis.nn.disentangled.inputs import Operands
from precis.nn.padding import Documents
from precis.nn.relative_positions import OffsetRows
from tests.nn.disentangled.inputs import (
    BUCKETS,
    SCALE,
    assert_close_in,
    make_bias,
    operands,
    padding,
    plain,
    random_inputs,
)


def scores_by_the_equation(inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """c2p and p2c with the row of every pair (DeBERTa Eq. 4)."""
    queries, keys, _, position_keys, position_queries = inputs
    places = torch.arange(keys.shape[-2])
    row = BUCKETS(places[:, None] - places)  # (i j)
    c2p = torch.einsum("bhie,hije->bhij", queries, position_keys[:, row])
    return c2p + torch.einsum("bhje,hije->bhij", keys, position_queries[:, row])


@pytest.mark.parametrize("length", [1, 2, 9, 50])
def test_eq4_shifted_scores_are_those_of_the_equation(length: int) -> None:
    inputs = random_inputs(length)
    found = make_bias(inputs).rows(0, length, *inputs[:2])
    torch.testing.assert_close(found, scores_by_the_equation(inputs))


@pytest.mark.parametrize(("start", "stop"), [(0, 7), (13, 40), (55, 90), (89, 90)])
def test_eq4_gathered_rows_with_far_keys_are_those_of_the_equation(start: int, stop: int) -> None:
    inputs = random_inputs(90)
    found = make_bias(inputs).rows(start, stop, *inputs[:2])
    torch.testing.assert_close(found, scores_by_the_equation(inputs)[:, :, start:stop])


@pytest.mark.parametrize("kept", [("c2p",), ("p2c",)])
def test_either_score_alone(kept: tuple[str, ...]) -> None:
    inputs = random_inputs(70)
    one = make_bias(inputs, kept)
    some, all_ = one.rows(10, 30, *inputs[:2]), one.rows(0, 70, *inputs[:2])
    torch.testing.assert_close(some, all_[:, :, 10:30])


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str, *, of: Any = route) -> list[str]:
    calls = []
    way = getattr(of, name)
    monkeypatch.setattr(of, name, lambda *a, **k: calls.append(name) or way(*a, **k))  # type: ignore[func-returns-value]
    return calls


def test_attend_takes_the_fast_way_where_it_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRECIS_COMPILE", "0")
    thresholds = {"_BANDS_FROM": 30, "_KEEP_FROM": 25, "_RECOMPUTE_ABOVE": 50}
    for name, value in thresholds.items():
        monkeypatch.setattr(route, name, value)
    ways = ("attend_in_bands", "attend_keeping", "attend_recomputing")
    calls = [count_calls(monkeypatch, name) for name in ways]
    ways_of = {24: [0, 0, 0], 25: [0, 1, 0], 29: [0, 1, 0], 30: [1, 1, 0], 50: [1, 1, 0], 51: [1, 0, 1]}
    for length, expected in ways_of.items():
        inputs = random_inputs(length)
        mask = padding(length)[:, None, None]
        out = attend(*inputs[:3], bias=make_bias(inputs), mask=mask, scale=SCALE)
        torch.testing.assert_close(out, plain(inputs, mask[:, 0, 0]))
        learnt = [x.requires_grad_() for x in inputs]
        attend(*learnt[:3], bias=make_bias(learnt), mask=mask, scale=SCALE)
        assert [len(found) for found in calls] == expected
        for found in calls:
            found.clear()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU tensors go the way of those on CUDA, where the library is not installed."""
    monkeypatch.setattr(route, "_on_cpu", route._elsewhere)
    monkeypatch.setattr(flash, "serves", lambda device: False)
    monkeypatch.setattr(flex, "serves", lambda device: True)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.traced
def test_without_the_library_scores_are_held_or_made_again_and_flex_attention_infers(
    monkeypatch: pytest.MonkeyPatch, autocast: bool
) -> None:
    monkeypatch.setattr(route, "_FLEX_FROM", 30)
    calls = [
        count_calls(monkeypatch, name) for name in ("attend_openly", "attend_recomputing", "attend_flex")
    ]
    for bound, length, expected in (
        (1 << 32, 20, [1, 0, 0]),
        (1 << 32, 1100, [1, 0, 1]),
        (99, 30, [0, 1, 1]),
    ):
        monkeypatch.setattr(route, "_OPEN_BYTES", bound)
        inputs = random_inputs(length, batch=1, dtype=torch.float32)
        mask = padding(length, batch=1)[:, None, None]
        learnt = [x.clone().requires_grad_() for x in inputs]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            trained = attend(*learnt[:3], bias=make_bias(learnt), mask=mask, scale=SCALE)
            found = attend(*inputs[:3], bias=make_bias(inputs), mask=mask, scale=SCALE)
        expected_values = plain(inputs, mask[:, 0, 0])
        torch.testing.assert_close(trained, expected_values, atol=1e-5, rtol=1e-5)
        if expected[2]:  # the shortest takes the plain path, in autocast's type
            torch.testing.assert_close(found, expected_values, atol=1e-5, rtol=1e-5)
        assert [len(ways) for ways in calls] == expected
        for ways in calls:
            ways.clear()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.traced
def test_every_way_serves_every_type_inside_autocast_and_outside(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(route, "_FLEX_FROM", 30)
    inputs = [x.to(dtype) for x in random_inputs(40)]
    for autocast in (False, True):
        for learnt in (False, True):
            given = [x.detach().requires_grad_(learnt) for x in inputs]
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                found = attend(*given[:3], bias=make_bias(given), scale=SCALE)
            assert found.dtype == dtype
            assert_close_in(found.detach(), inputs, None)
            if learnt:
                assert all(g.dtype == dtype for g in torch.autograd.grad(found.sum(), given))


def test_other_masks_and_empty_documents_take_the_plain_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRECIS_COMPILE", "0")
    monkeypatch.setattr(route, "_BANDS_FROM", 4)
    banded = count_calls(monkeypatch, "attend_in_bands")
    inputs = random_inputs(9)
    empty = torch.ones(3, 1, 1, 9, dtype=torch.bool)
    empty[1] = False
    out = attend(*inputs[:3], bias=make_bias(inputs), mask=empty, scale=SCALE)
    torch.testing.assert_close(out[1], inputs[2][1].mean(-2, keepdim=True).expand_as(out[1]))
    triangle = torch.ones(9, 9, dtype=torch.bool).tril()[None, None]
    attend(*inputs[:3], bias=make_bias(inputs), mask=triangle, scale=SCALE)
    assert not banded


def test_table_rows_are_worked_out_once_for_all_layers() -> None:
    shared = OffsetRows(BUCKETS)
    assert shared.descending(40, torch.device("cpu")) is shared.descending(40, torch.device("cpu"))
    assert (
        shared.descending(2, torch.device("cpu")).tolist()
        == BUCKETS(torch.tensor([2, 1, 0, -1, -2])).tolist()
    )
    assert shared.ends(torch.device("cpu")).tolist() == [2 * 8 - 1, 1]


@pytest.mark.parametrize(
    ("start", "stop", "length", "way"),
    [(0, 9, 9, "_shifted"), (1, 9, 9, "_gathered"), (0, 8, 9, "_gathered"),
     (0, 512, 512, "_shifted"), (0, 513, 513, "_gathered")],
)  # fmt: skip
def test_all_rows_of_up_to_512_keys_are_shifted_and_others_gathered(
    start: int, stop: int, length: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = []
    for name in ("_shifted", "_gathered"):
        way_of = getattr(route.DisentangledBias, name)

        def recorded(*given: Any, name: str = name, way_of: Callable[..., Any] = way_of) -> Any:
            ways.append(name)
            return way_of(*given)

        monkeypatch.setattr(route.DisentangledBias, name, recorded)
    inputs = random_inputs(length, batch=1)
    make_bias(inputs).rows(start, stop, *inputs[:2])
    assert ways == [way]


@pytest.mark.usefixtures("elsewhere")
def test_scores_are_held_up_to_a_bound_of_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = [x.requires_grad_() for x in random_inputs(20, batch=3, heads=2, dtype=torch.float32)]
    asked = list[str]()

    def way(name: str, given: Operands) -> torch.Tensor:
        asked.append(name)
        return given.values

    for name in ("attend_openly", "attend_recomputing"):
        monkeypatch.setattr(route, name, partial(way, name))
    for room in (0, -1):
        monkeypatch.setattr(route, "_OPEN_BYTES", 3 * 2 * 20 * 20 * 4 + room)
        route._elsewhere(operands(learnt))
    assert asked == ["attend_openly", "attend_recomputing"]


@pytest.mark.parametrize("way", ["attend_in_bands", "attend_flex"])
def test_weights_that_are_dropped_without_gradients_take_the_plain_path(
    way: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("PRECIS_COMPILE", "0")
    monkeypatch.setattr(route, "_BANDS_FROM", 4)
    monkeypatch.setattr(route, "_FLEX_FROM", 4)
    if way == "attend_flex":
        request.getfixturevalue("elsewhere")
    monkeypatch.setattr(route, way, lambda given: pytest.fail("was asked"))
    inputs = random_inputs(9)
    assert make_bias(inputs).fused(*inputs[:3], mask=None, scale=SCALE, dropout=0.5) is None


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The library is there and gives values back; these are the lengths and sequences that it was asked for."""
    asked = []

    def takes(given: Operands, *, longest: int, sequences: int) -> bool:
        asked.append((longest, sequences))
        return given.options.scale == SCALE

    monkeypatch.setattr(route, "_on_cpu", route._elsewhere)
    monkeypatch.setattr(flash, "serves", lambda device: True)
    monkeypatch.setattr(flash, "takes", takes)
    monkeypatch.setattr(route, "attend_flash", lambda given: given.values)
    monkeypatch.setattr(route, "attend_flash_packed", lambda given, documents: given.values)
    return asked


@pytest.mark.parametrize(
    ("length", "scale", "is_taken"), [(128, SCALE, True), (127, SCALE, False), (128, 1.0, False)]
)
def test_the_library_attends_from_128_tokens_on_where_it_takes_them(
    library: list[tuple[int, int]], length: int, scale: float, is_taken: bool
) -> None:
    """Each row counts as three documents: what is before its own, its own, and the rest."""
    inputs = random_inputs(length, batch=3)
    found = make_bias(inputs).fused(*inputs[:3], mask=None, scale=scale, dropout=0.0)
    assert (found is inputs[2]) == is_taken
    assert library == ([(length, 9)] if length >= 128 else [])


@pytest.mark.parametrize(
    ("longest", "scale", "is_taken"), [(128, SCALE, True), (127, SCALE, False), (128, 1.0, False)]
)
def test_the_library_attends_to_a_row_of_documents_in_one_launch(
    library: list[tuple[int, int]], longest: int, scale: float, is_taken: bool
) -> None:
    inputs = random_inputs(300, batch=1)
    documents = Documents(torch.tensor([0, 100, 228, 300]), longest)
    found = make_bias(inputs).fused(*inputs[:3], mask=None, scale=scale, dropout=0.0, documents=documents)
    assert (found is inputs[2]) == is_taken
    assert library == ([(longest, 3)] if longest >= 128 else [])
