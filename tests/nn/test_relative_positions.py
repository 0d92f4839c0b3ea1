"""Distances and the rows they share."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers.models.t5.modeling_t5 import T5Attention

from precis.nn.relative_positions import CausalBuckets, LogBuckets, OffsetRows, TwoWayBuckets, near_rows


def test_causal_buckets_are_t5s() -> None:
    distances = torch.arange(-20, 400)
    expected = T5Attention._relative_position_bucket(
        -distances, bidirectional=False, num_buckets=32, max_distance=128
    )
    assert torch.equal(CausalBuckets(32, 128)(distances), expected)


def test_every_distance_beyond_the_table_shares_its_edge() -> None:
    buckets = LogBuckets(256, 512)
    far = buckets(torch.tensor([511, 512, 5000, -511, -512, -5000]))
    assert far.tolist() == [511, 511, 511, 1, 1, 1]


def test_near_distances_have_rows_of_their_own() -> None:
    buckets = LogBuckets(256, 512)
    near = buckets(torch.arange(-128, 129))
    assert near.tolist() == list(range(128, 385))


def test_without_log_buckets_every_distance_below_the_maximum_has_a_row() -> None:
    buckets = LogBuckets(0, 64)
    rows = buckets(torch.arange(-63, 64))
    assert buckets.rows == 128
    assert len(set(rows.tolist())) == 127


def test_no_rounding_of_the_logarithm_reaches_the_row_that_is_never_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Devices differ in a logarithm's last bit; at the farthest distance ceil() would make a whole bucket of it."""
    exact = torch.log
    monkeypatch.setattr(
        torch, "log", lambda x: torch.nextafter(exact(x), torch.tensor(torch.inf)) if x.dim() else exact(x)
    )
    assert LogBuckets(256, 512)(torch.tensor([511, -511])).tolist() == [511, 1]


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (16, 64), (8, 20)])
def test_two_way_buckets_equal_transformers_t5(buckets: int, farthest: int) -> None:
    distance = torch.arange(-3 * farthest, 3 * farthest + 1)  # query - key; theirs is key - query
    theirs = T5Attention._relative_position_bucket(
        -distance, bidirectional=True, num_buckets=buckets, max_distance=farthest
    )
    assert torch.equal(TwoWayBuckets(buckets, farthest)(distance), theirs)


def released(distance: torch.Tensor, buckets: int, maximum: int) -> torch.Tensor:
    """The rows as the released code finds them, reading a tensor for the logarithm."""
    middle = buckets // 2
    distance = distance.clamp(1 - maximum, maximum - 1)
    size = distance.abs().clamp(min=middle).float()
    scale = torch.log(torch.tensor((maximum - 1) / middle))
    logarithmic = (torch.ceil(torch.log(size / middle) / scale * (middle - 1)) + middle).clamp(
        max=2 * middle - 1
    )
    rows = torch.where(distance.abs() <= middle, distance, (logarithmic * distance.sign()).long())
    return (rows + buckets).clamp(0, 2 * buckets - 1)


def test_no_setting_moves_a_bucket() -> None:
    for maximum in (16, 64, 128, 512, 513, 1000, 1024):
        distance = torch.arange(-maximum - 2, maximum + 3)
        for buckets in {*range(4, 40), 64, 100, 128, 255, 256, 320, 512}:
            found = LogBuckets(buckets, maximum)(distance)
            assert torch.equal(found, released(distance, buckets, maximum)), (buckets, maximum)


@pytest.mark.traced
def test_buckets_are_one_graph() -> None:
    buckets, distance = LogBuckets(8, 16), torch.arange(-20, 21)
    whole = torch.compile(lambda x: buckets(x), backend="eager", fullgraph=True)
    assert torch.equal(whole(distance), buckets(distance))


@pytest.mark.parametrize("around", [lambda: torch.device("meta"), FakeTensorMode], ids=["meta", "fake"])
def test_buckets_can_be_made_where_tensors_have_no_values(around: Callable[[], Any]) -> None:
    with around():
        made = LogBuckets(8, 16)
    distance = torch.arange(-20, 21)
    assert torch.equal(made(distance), LogBuckets(8, 16)(distance))
    assert made.near == LogBuckets(8, 16).near


@pytest.mark.parametrize("length", [1, 2, 5, 16, 17, 40])
def test_rows_of_offsets_are_those_of_their_distances(length: int) -> None:
    buckets, cpu = LogBuckets(8, 16), torch.device("cpu")
    rows, descending = OffsetRows(buckets), buckets(torch.arange(length - 1, -length, -1))
    assert torch.equal(rows.descending(length - 1, cpu), descending)
    places, used = rows.places(length, cpu)
    assert used == slice(int(descending.min()), int(descending.max()) + 1)
    assert rows.used(length) == used
    assert torch.equal(places, (descending - used.start).int())


def test_near_rows_are_made_once_for_all_passes_and_of_use_to_gradients() -> None:
    buckets, cpu = LogBuckets(6, 14), torch.device("cpu")
    with torch.inference_mode():
        first = OffsetRows(buckets).descending(3, cpu)
    assert OffsetRows(buckets).descending(3, cpu).data_ptr() == first.data_ptr()
    assert not first.is_inference()


def test_no_pass_under_a_tracer_leaves_its_tensors_to_others() -> None:
    buckets, cpu = LogBuckets(6, 12), torch.device("cpu")
    with FakeTensorMode():
        OffsetRows(buckets).descending(3, cpu)
    assert OffsetRows(buckets).descending(3, cpu).tolist() == buckets(torch.arange(3, -4, -1)).tolist()


_GRAPHS = """
import torch

from precis.nn.relative_positions import LogBuckets, OffsetRows

buckets, cpu = LogBuckets(8, 16), torch.device("cpu")
for length in (10, 40):
    expected = OffsetRows(buckets).descending(length, cpu)
    ready = OffsetRows(buckets).on(cpu)
    within = torch.compile(lambda: ready.descending(length, cpu) + 0, backend="eager", fullgraph=True)
    alone = torch.compile(
        lambda: OffsetRows(buckets).descending(length, cpu) + 0, backend="eager", fullgraph=True
    )
    assert torch.equal(within(), expected)
    assert torch.equal(alone(), expected)
"""


@pytest.mark.long
def test_a_graph_finds_the_same_rows_whoever_made_them() -> None:
    """In a process of its own: dynamo cannot build an object whose methods check their shapes."""
    done = subprocess.run([sys.executable, "-c", _GRAPHS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_rows_are_the_same_in_whatever_type_a_model_is_built(dtype: torch.dtype) -> None:
    right = LogBuckets(256, 512)
    torch.set_default_dtype(dtype)
    try:
        built = LogBuckets(256, 512)
        assert built.near == right.near
        assert torch.equal(built(torch.arange(-600, 600)), right(torch.arange(-600, 600)))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("buckets", [LogBuckets(0, 16), LogBuckets(0, 2)])
def test_from_saturation_on_all_distances_share_one_row_and_none_before(buckets: LogBuckets) -> None:
    far = buckets.saturation
    for side in (1, -1):
        rows = buckets(side * torch.tensor([far - 1, far, far + 1, 1000]))
        assert rows[0] != rows[1]
        assert rows[1] == rows[2] == rows[3]
    assert buckets.rows == 2 * buckets.max_distance


def test_near_rows_are_the_same_while_torch_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    buckets, cpu = LogBuckets(6, 14), torch.device("cpu")
    expected = near_rows(buckets, cpu)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(near_rows(buckets, cpu), expected)


def test_without_numbers_buckets_are_those_of_the_released_models_and_show_only_their_settings() -> None:
    assert LogBuckets() == LogBuckets(256, 512)
    assert repr(LogBuckets()) == "LogBuckets(buckets=256, max_distance=512)"
    assert CausalBuckets() == CausalBuckets(32, 128)
    assert TwoWayBuckets() == TwoWayBuckets(32, 128)
