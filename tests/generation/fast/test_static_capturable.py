"""A CUDA graph could hold a step of a fixed shape: asked without a GPU, by the operators of each call."""

from collections.abc import Callable

import pytest
import torch

from precis.generation.fast.packed_linear import AsGiven
from precis.generation.fast.packed_prophetnet import PackedProphetNet
from precis.generation.fast.packed_zcodepp import PackedZCodePP
from precis.generation.fast.static_shapes import Shape, StaticBatch
from precis.generation.fast.token_rules import TokenRules
from precis.generation.fast.token_search import BeamSettings
from tests.capturable import Trace
from tests.fast_cases import prophet, prophet_settings
from tests.tiny_models import tiny

ALL_RULES = {
    "no_repeat_ngram_size": 3,
    "min_new_tokens": 4,
    "forced_bos_token_id": 5,
    "forced_eos_token_id": 2,
    "suppress_tokens": [7, 8],
    "begin_suppress_tokens": [9],
}
SEARCHES = [
    None,
    BeamSettings(beams=1, length_penalty=1.0, early_stopping=False),
    BeamSettings(beams=5, length_penalty=0.6, early_stopping=True),
    BeamSettings(beams=5, length_penalty=1.4, early_stopping="never"),
]


def elsewhere(kind: str, dtype: torch.dtype, settings: BeamSettings | None) -> StaticBatch:
    """A batch on a device that is no CPU: its tensors have shapes and no numbers, and its ways are those of CUDA."""
    made = {"zcodepp": tiny("zcodepp", seed=3)[0], "prophetnet": prophet(0)}[kind].to("meta").to(dtype)
    pack = PackedProphetNet if kind == "prophetnet" else PackedZCodePP
    packed = pack(made, rows=3, weights=AsGiven())
    device = torch.device("meta")
    source = torch.empty(3, 20, made.config.hidden_size, dtype=dtype, device=device)
    rules = TokenRules.of(prophet_settings(**ALL_RULES), (), device=device)
    keys = packed.source_keys(source)
    shape = Shape.around(documents=3, beams=settings.beams if settings else 1, source=20, steps=18)
    batch = StaticBatch(packed, shape, rules, settings, keys)
    batch.restart(keys, torch.ones(3, 20, dtype=torch.bool, device=device), rules)
    return batch


@pytest.mark.parametrize("settings", SEARCHES, ids=lambda s: "greedy" if s is None else f"{s.beams} beams")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
@torch.no_grad()
def test_every_step_is_the_same_and_never_waits_for_the_device(
    kind: str, dtype: torch.dtype, settings: BeamSettings | None
) -> None:
    made = elsewhere(kind, dtype, settings)
    traces = []
    for _ in range(3):
        with Trace() as trace:
            made.search()
        traces.append(trace.calls)
    assert len(traces[0]) > 50
    assert traces[0] == traces[1] == traces[2]


def _grow(place: list[int]) -> torch.Tensor:
    place[0] += 1
    return torch.zeros(8)[: place[0]]


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).any()),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x + torch.tensor([1.0, 2.0, 3.0]),
        lambda x: torch.isin(x, x),
        lambda x: x.unique(),
        lambda x: x.to("meta"),
    ],
)
def test_the_trace_refuses_what_waits(step: Callable[[torch.Tensor], object]) -> None:
    given = torch.arange(3.0)
    with torch.no_grad(), pytest.raises(AssertionError, match=r"captured|mixes"), Trace():
        step(given)


def test_the_trace_tells_steps_apart_that_differ() -> None:
    kept, other, place = torch.zeros(4), torch.zeros(4), [0]
    steps: list[Callable[[], object]] = [
        lambda: kept + 1,
        lambda: kept + 2,
        lambda: other + 1,
        lambda: kept[1:] + 1,
        lambda: _grow(place) + 1,
        lambda: _grow(place) + 1,
    ]
    calls = []
    for step in steps:
        with torch.no_grad(), Trace() as trace:
            step()
        calls.append(trace.calls)
    assert all(one != another for i, one in enumerate(calls) for another in calls[:i])
    with torch.no_grad(), Trace() as again:
        kept + 1
    assert again.calls == calls[0]
