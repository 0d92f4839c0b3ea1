"""The library's kernels give the plain path's numbers, in Triton's interpreter on the CPU."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from precis.nn.disentangled import flash, flex
from precis.nn.disentangled.inputs import Operands
from precis.nn.padding import Documents
from tests.nn.disentangled.inputs import BUCKETS, SCALE, operands, random_inputs

CASES = Path(__file__).with_name("interpreted_flash.py")


@pytest.mark.skipif(
    importlib.util.find_spec("disentangled_flash") is None or importlib.util.find_spec("triton") is None,
    reason="needs the extra `cuda` and Triton, which are on Linux only",
)
@pytest.mark.slow
def test_kernels_in_the_interpreter_give_the_plain_path() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        str(CASES),
    ]
    ran = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


class Library:
    """Stands for the library: notes what it is given, and gives the values back."""

    def __init__(self) -> None:
        self.calls: list[dict[str, object]] = []

    def training_attention_packed(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        *tables: torch.Tensor,
        max_seqlen: int,
        **settings: object,
    ) -> torch.Tensor:
        *_, bounds = tables
        self.calls.append({"bounds": bounds.tolist(), "longest": max_seqlen, **settings})
        return torch.cat([x.transpose(0, 1).flatten(1) for x in values[None]], dim=-1)

    def training_attention(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        *others: torch.Tensor,
        **settings: object,
    ) -> torch.Tensor:
        self.calls.append({"valid": others[-1].tolist(), **settings})
        return values.transpose(1, 2).flatten(2)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    stub = ModuleType("disentangled_flash.training")
    vars(stub)["_kernels"] = found
    monkeypatch.setitem(sys.modules, "disentangled_flash", ModuleType("disentangled_flash"))
    monkeypatch.setitem(sys.modules, "disentangled_flash.training", stub)
    asked = lambda operands, *, longest, sequences, **_: ([None], {"asked": (longest, sequences)})  # noqa: E731
    monkeypatch.setattr(flash, "_call", asked)
    return found


def test_a_batch_is_one_row_of_documents_between_their_bounds(library: Library) -> None:
    inputs = random_inputs(9)
    found = flash.attend_flash(operands(inputs))
    torch.testing.assert_close(found, inputs[2])
    assert library.calls == [{"bounds": [0, 9, 18, 27], "longest": 64, "asked": (64, 3)}]


@pytest.mark.parametrize(("longest", "rounded"), [(1, 64), (64, 64), (65, 128)])
def test_the_longest_length_is_rounded_up_to_64(library: Library, longest: int, rounded: int) -> None:
    given = operands(random_inputs(longest, batch=1))
    found = flash.attend_flash_packed(given, Documents(torch.tensor([0, longest]), longest))
    torch.testing.assert_close(found, given.values)
    assert library.calls[0] == {"bounds": [0, longest], "longest": rounded, "asked": (rounded, 1)}


@pytest.mark.parametrize(
    ("rows", "bounds"),
    [
        (["111"], [0, 0, 3, 3]),
        (["110", "011", "010"], [0, 0, 2, 3, 4, 6, 6, 7, 8, 9]),
        (["111", "000"], [0, 0, 3, 3, 3, 6, 6]),  # one without a document is one span
        (["101"], None),
        (["111", "101"], None),
    ],
)
def test_a_row_is_cut_into_what_is_before_its_document_the_document_and_the_rest(
    rows: list[str], bounds: list[int] | None
) -> None:
    valid = torch.tensor([[mark == "1" for mark in row] for row in rows])
    starts = torch.arange(0, 3 * len(rows) + 1, 3, dtype=torch.int32)
    found = flash._span_bounds(valid, starts)
    if bounds is None:
        assert found is None
    else:
        assert found is not None
        assert found.tolist() == bounds
        assert found.dtype == torch.int32


def test_gaps_and_passes_without_gradients_take_the_padded_form(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = []

    def padded(operands: Operands, valid: torch.Tensor | None) -> torch.Tensor:
        ways.append("padded")
        return operands.queries

    monkeypatch.setattr(flash, "_attend_padded", padded)
    inputs = random_inputs(9)
    whole = torch.arange(9) < torch.tensor([[9], [4], [1]])
    flash.attend_flash(operands(inputs, whole))
    assert (ways, len(library.calls)) == ([], 1)
    with torch.no_grad():
        flash.attend_flash(operands(inputs, whole))
    gaps = whole.clone()
    gaps[0, 3] = False
    flash.attend_flash(operands(inputs, gaps))
    assert (ways, len(library.calls)) == (["padded"] * 2, 1)


def given(
    width: int = 32,
    *,
    batch: int = 3,
    heads: int = 2,
    length: int = 9,
    dtype: torch.dtype = torch.float32,
    distance: int = 16,
) -> Operands:
    buckets = SimpleNamespace(max_distance=distance, span=8)
    queries = torch.empty(batch, heads, length, width, dtype=dtype, device="meta")
    found = object.__new__(Operands)  # of which `takes` reads these two
    object.__setattr__(found, "queries", queries)
    object.__setattr__(found, "options", SimpleNamespace(offsets=SimpleNamespace(buckets=buckets)))
    return found


@pytest.mark.parametrize(
    ("shape", "asked", "taken"),
    [
        ({"width": 32}, {}, True),
        ({"width": 128}, {}, True),
        ({"width": 48}, {}, False),
        ({"dtype": torch.float64}, {}, False),
        ({"dtype": torch.bfloat16}, {}, True),
        ({}, {"longest": 8192}, True),
        ({}, {"longest": 8193}, False),
        ({}, {"longest": 1}, True),
        ({}, {"longest": 0}, False),
        ({}, {"sequences": (1 << 15) - 1}, True),
        ({}, {"sequences": 1 << 15}, False),
        # places of 32 bits: batch x heads x length x (2 x distance + width)
        ({"batch": 1 << 10, "length": 1 << 14, "heads": 1}, {}, True),
        ({"batch": 1 << 10, "length": 1 << 15, "heads": 1}, {}, False),
        ({"batch": 1 << 10, "length": 1 << 14, "heads": 1, "distance": 48}, {}, False),
        ({"batch": 1 << 10, "length": 1 << 14, "heads": 1, "distance": 40}, {}, True),
    ],
)
def test_the_kernels_take_what_their_widths_types_lengths_and_places_allow(
    shape: dict[str, Any], asked: dict[str, int], taken: bool
) -> None:
    assert flash.takes(given(**shape), **{"longest": 9, "sequences": 3, **asked}) == taken


def test_a_plan_has_the_row_of_each_distance_from_the_past_to_the_future(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    position = ModuleType("disentangled_flash.position")
    vars(position)["gradient_band"] = lambda places, device: len(places)
    monkeypatch.setitem(sys.modules, "disentangled_flash", ModuleType("disentangled_flash"))
    monkeypatch.setitem(sys.modules, "disentangled_flash.position", position)
    for longest in (1, 5, 40):
        found = flash.plan.__wrapped__(BUCKETS, longest, torch.device("cpu"))
        rows = BUCKETS(torch.arange(-(longest - 1), longest))
        assert torch.equal(found.places.long() + found.rows.start, rows)
        assert found.rows == slice(int(rows.min()), int(rows.max()) + 1)
        assert found.band == 2 * longest - 1


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_the_library_serves_new_enough_devices_where_it_is_there(
    is_there: bool, is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "is_available", lambda: is_there)
    monkeypatch.setattr(flash, "_is_new_enough", lambda index: is_new)
    assert flash.serves(torch.device("cuda:0")) == (is_there and is_new)
    assert not flash.serves(torch.device("cpu"))
    monkeypatch.setattr(flex, "is_available", lambda: is_there)
    assert flex.serves(torch.device("cuda:0")) == is_there
    assert not flex.serves(torch.device("cpu"))


def test_the_padded_form_gets_the_mask_and_gives_heads_back(library: Library) -> None:
    inputs, valid = random_inputs(9), torch.arange(9) < torch.tensor([[9], [4], [1]])
    torch.testing.assert_close(flash._attend_padded(operands(inputs, valid), valid), inputs[2])
    assert library.calls == [{"valid": valid.tolist(), "has_padding": True, "asked": (9, 3)}]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_the_library_gets_the_rows_in_use_of_tables_that_are_not_scaled(
    padded: bool, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = ModuleType("disentangled_flash.position")
    vars(position)["pad_position_table"] = lambda table: table
    monkeypatch.setitem(sys.modules, "disentangled_flash", ModuleType("disentangled_flash"))
    monkeypatch.setitem(sys.modules, "disentangled_flash.position", position)
    found = flash.Plan(slice(2, 7), torch.arange(17), "band")
    monkeypatch.setattr(flash, "plan", lambda buckets, longest, device: found)
    monkeypatch.setattr(flash, "launches", lambda workload, device, dropped: {"for": (*workload, dropped)})
    inputs = random_inputs(9)
    (c2p, p2c, places), settings = flash._call(
        operands(inputs, kept=("c2p",), dropout=dropout), longest=9, sequences=3, padded=padded
    )
    torch.testing.assert_close(c2p, inputs[3][:, 2:7] / SCALE)
    assert p2c is None
    assert places is found.places
    seed = settings.pop("dropout_seed")
    assert (None if seed is None else seed.shape) == ((1,) if dropout else None)
    form = ("strict", "padded" if padded else "packed", padded)
    assert settings == {
        "score_scale": SCALE,
        "strict_fp32": True,
        "gradient_band": "band",
        "dropout_p": dropout,
        "for": (9, 8, 3 * 2, 5, "float64", True, False, *form, dropout > 0.0),
    }


@pytest.mark.parametrize(
    ("learning", "dropped", "forward"),
    [(True, False, "training_forward"), (False, True, "training_forward"), (False, False, "inference")],
)
def test_tiles_are_asked_for_by_families_of_lengths_and_of_programs(
    learning: bool, dropped: bool, forward: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = ModuleType("disentangled_flash.tuning")
    vars(tuning).update(
        KernelConfig=lambda *tiles: tiles,
        length_family=lambda longest: f"length {longest}",
        occupancy_family=lambda programs: f"programs {programs}",
        resolve_launch_config=lambda *asked: asked,
    )
    monkeypatch.setitem(sys.modules, "disentangled_flash", ModuleType("disentangled_flash"))
    monkeypatch.setitem(sys.modules, "disentangled_flash.tuning", tuning)
    monkeypatch.setattr(flash, "_profiles", lambda: 7)
    with torch.set_grad_enabled(learning):
        found = flash.launches((9, 8, 6, "others"), torch.device("cuda", 1), dropped)
    phases = {"forward_config": forward}
    if learning:
        phases |= {"dq_config": "backward_dq", "dkv_config": "backward_dkv"}
    assert found == {
        name: (7, "auto", 1, ("length 9", 8, "programs 6", "others", phase, dropped), 6)
        for name, phase in phases.items()
    }
