"""disentangled-flash behind `attend`, its kernels run by Triton's interpreter on CPU tensors.

`test_flash.py` runs this file in a process of its own, since TRITON_INTERPRET=1 has to be set before the
kernels are imported. The library's functions refuse tensors that are not on CUDA; only that refusal is taken out.
"""

import inspect
import os
from collections.abc import Callable, Sequence

import pytest
import torch
from disentangled_flash.training import _kernels as library
from disentangled_flash.tuning import KernelConfig

from precis.nn.attention import DisentangledSelfAttention, attend
from precis.nn.disentangled import bias as route
from precis.nn.disentangled import flash
from precis.nn.disentangled.flash import attend_flash, attend_flash_packed
from precis.nn.layer_plan import Global
from precis.nn.packing import Packing
from precis.nn.padding import Documents
from precis.nn.relative_positions import OffsetRows, PositionTable
from tests.nn.disentangled.inputs import BUCKETS, SCALE, make_bias, operands, plain

WIDTH = 32
HEADS = 2
NAMES = ("q", "k", "v", "position_keys", "position_queries")


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed tiles, and CPU tensors let in."""
    assert os.environ.get("TRITON_INTERPRET") == "1", "run test_flash.py"
    for name in ("training_attention", "training_attention_packed"):
        source = inspect.getsource(getattr(library, name))
        assert source.count('device.type != "cuda"') == 1
        scope: dict = {}
        exec(source.replace('device.type != "cuda"', 'device.type != "cpu"'), vars(library), scope)
        monkeypatch.setattr(library, name, scope[name])
    tiles = dict.fromkeys(("forward_config", "dq_config", "dkv_config"), KernelConfig(64, 64, 4))
    monkeypatch.setattr(flash, "launches", lambda *_: tiles)
    monkeypatch.setattr(route, "_on_cpu", route._elsewhere)
    monkeypatch.setattr(flash, "serves", lambda device: True)
    monkeypatch.setattr(route, "_FLASH_FROM", 1)


def random_inputs(
    length: int, *, batch: int = 2, dtype: torch.dtype = torch.float32, learnt: bool = True, seed: int = 0
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, HEADS, length, WIDTH)] * 3 + [(HEADS, BUCKETS.rows, WIDTH)] * 2
    made = [torch.randn(shape, generator=generator).mul(0.5).to(dtype) for shape in shapes]
    return [x.requires_grad_(learnt) for x in made]


def by_the_library(
    inputs: Sequence[torch.Tensor],
    valid: torch.Tensor | None = None,
    kept: Sequence[str] = ("c2p", "p2c"),
    dropout: float = 0.0,
) -> torch.Tensor:
    return attend_flash(operands(inputs, valid, kept, dropout=dropout))


def assert_same(
    found: torch.Tensor,
    expected: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    *,
    real: torch.Tensor | None = None,
    atol: float = 1e-5,
) -> None:
    """Values and gradients; `real`: the rows (b n) that count."""
    if real is not None:
        found, expected = (x.transpose(1, 2)[real] for x in (found, expected))
    torch.testing.assert_close(found, expected, atol=atol, rtol=1e-5)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=found.dtype)
    ours = torch.autograd.grad((found * weights).sum(), inputs, allow_unused=True)
    theirs = torch.autograd.grad((expected * weights).sum(), inputs, allow_unused=True)
    for name, one, other in zip(NAMES, ours, theirs, strict=True):
        if other is None:
            assert one is None
            continue
        torch.testing.assert_close(one, other, atol=5 * atol, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")  # type: ignore[misc]


@pytest.mark.parametrize("length", [1, 96, 128, 160])
def test_values_and_gradients_are_the_plain_paths(length: int) -> None:
    inputs = random_inputs(length, batch=1 + (length < 100))
    assert_same(by_the_library(inputs), plain(inputs), inputs)


@pytest.mark.parametrize("kept", [("c2p",), ("p2c",)])
def test_either_position_score_alone_is_enough(kept: Sequence[str]) -> None:
    inputs = random_inputs(50)
    assert_same(by_the_library(inputs, kept=kept), plain(inputs, kept=kept), inputs)


def test_padding_is_not_seen() -> None:
    """At either end, in between, and everywhere; the first without a kernel for this shape."""
    inputs, calls = random_inputs(70, batch=3), []
    places = torch.arange(70)
    spans = torch.stack([places < 70, places < 9, (places > 20) & (places < 66)])
    holes = torch.rand(3, 70, generator=torch.Generator().manual_seed(7)) > 0.4
    holes[2] = False
    way = flash._attend_padded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flash, "_attend_padded", lambda *a, **k: calls.append(1) or way(*a, **k))  # type: ignore[func-returns-value]
        for valid, padded in ((spans, []), (holes, [1])):
            found = by_the_library(inputs, valid)
            assert calls == padded
            assert found.isfinite().all()
            assert_same(found, plain(inputs, valid), inputs, real=valid)
    empty = found[2]
    torch.testing.assert_close(empty, inputs[2][2].mean(-2, keepdim=True).expand_as(empty))
    with torch.no_grad():
        inferred, expected = by_the_library(inputs, spans), plain(inputs, spans)
    torch.testing.assert_close(
        inferred.transpose(1, 2)[spans], expected.transpose(1, 2)[spans], atol=1e-5, rtol=1e-5
    )


def test_without_gradients_the_values_are_the_same() -> None:
    inputs = random_inputs(70, learnt=False)
    with torch.no_grad():
        torch.testing.assert_close(by_the_library(inputs), plain(inputs), atol=1e-5, rtol=1e-5)


def test_half_precision_errs_hardly_more_than_the_plain_path() -> None:
    """In fp16; the interpreter reads bf16 as integers."""
    inputs = random_inputs(96, batch=1, dtype=torch.float16)
    exact = [x.detach().double().requires_grad_() for x in inputs]

    def errors(way: Callable[..., torch.Tensor], given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        out = way(given)
        grads = torch.autograd.grad(out.square().sum(), given)
        return [out, *grads]

    reference = errors(plain, exact)
    for ours, theirs, right in zip(
        errors(by_the_library, inputs), errors(plain, inputs), reference, strict=True
    ):
        worst = (theirs.double() - right).abs().mean()
        assert (ours.double() - right).abs().mean() <= 1.5 * worst


def kept_weights(batch: int, length: int, rate: float) -> torch.Tensor:
    """What the kernels multiply weights with, by the seed that `attend_flash` draws after `manual_seed(5)`."""
    torch.manual_seed(5)
    seed = torch.randint(2**62, (1,))
    torch.manual_seed(5)
    kept = library.dropout_keep_mask(
        seed, stream_start=0, streams=batch * HEADS, length=length, dropout_p=rate
    )
    return kept.view(batch, HEADS, length, length) / (1 - rate)


def test_dropout_follows_torchs_generator_in_both_passes() -> None:
    length, rate = 48, 0.25
    inputs = random_inputs(length)
    keep = kept_weights(2, length, rate)
    assert 0.2 < (keep == 0).double().mean() < 0.3
    found = by_the_library(inputs, dropout=rate)
    assert_same(found, plain(inputs, keep=keep), inputs)
    torch.manual_seed(5)
    assert torch.equal(by_the_library(inputs, dropout=rate), found)
    assert not torch.equal(by_the_library(inputs, dropout=rate), found)


def test_training_can_follow_inference() -> None:
    """What inference mode worked out for a length is kept, and has to serve passes with gradients."""
    flash.plan.cache_clear()
    inputs = random_inputs(20, batch=1)
    with torch.inference_mode():
        inferred = by_the_library(inputs)
    learnt = by_the_library(inputs)
    assert torch.equal(learnt, inferred)
    assert torch.autograd.grad(learnt.sum(), inputs[0])[0].isfinite().all()


def test_gradients_are_the_same_bits_twice() -> None:
    inputs = random_inputs(70, batch=1)

    def gradients() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(by_the_library(inputs).square().sum(), inputs)

    assert all(torch.equal(one, other) for one, other in zip(gradients(), gradients(), strict=True))


def test_packed_documents_do_not_see_each_other() -> None:
    lengths = (5, 40, 1, 70)
    inputs = random_inputs(sum(lengths), batch=1)
    bounds = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    found = attend_flash_packed(operands(inputs), Documents(bounds, 70))
    parts = [
        plain([*(x[..., a:b, :] for x in inputs[:3]), *inputs[3:]])
        for a, b in zip(bounds.tolist(), bounds.tolist()[1:], strict=False)
    ]
    assert_same(found, torch.cat(parts, -2), inputs)


@pytest.mark.parametrize("autocast", [False, True])
def test_attend_takes_it_inside_autocast_and_outside(monkeypatch: pytest.MonkeyPatch, autocast: bool) -> None:
    inputs = random_inputs(40)
    calls = []
    way = route.attend_flash  # type: ignore[attr-defined]
    monkeypatch.setattr(route, "attend_flash", lambda *a, **k: calls.append(1) or way(*a, **k))  # type: ignore[func-returns-value]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        found = attend(*inputs[:3], bias=make_bias(inputs), scale=SCALE)
    assert calls
    assert found.dtype == torch.float32
    assert_same(found, plain(inputs), inputs)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_layer_on_a_packed_batch_is_one_launch(monkeypatch: pytest.MonkeyPatch, dropout: float) -> None:
    torch.manual_seed(0)
    layer = DisentangledSelfAttention(HEADS * WIDTH, heads=HEADS, dropout=dropout)
    table = PositionTable(torch.randn(BUCKETS.rows, HEADS * WIDTH), OffsetRows(BUCKETS))
    valid = torch.arange(60) < torch.tensor([60, 3, 31, 30])[:, None]
    packing = Packing.of(valid, Global(), seen=valid.numpy())
    assert packing is not None
    states = torch.randn(4, 60, HEADS * WIDTH)
    expected = layer.eval()(states, positions=table, mask=valid[:, None, None])
    launched = []
    way = library.training_attention_packed
    monkeypatch.setattr(
        library,
        "training_attention_packed",
        lambda *a, **k: launched.append(1) or way(*a, **k),  # type: ignore[func-returns-value]
    )
    layer.train()
    tokens = packing.split(states).requires_grad_()
    mixed = packing.join(layer(tokens, positions=table, mask=None, packing=packing))
    assert launched == [1]
    if not dropout:
        torch.testing.assert_close(mixed[valid], expected[valid], atol=1e-5, rtol=1e-5)
    gradient = torch.autograd.grad(mixed.sum(), tokens)[0]
    assert gradient.isfinite().all()
