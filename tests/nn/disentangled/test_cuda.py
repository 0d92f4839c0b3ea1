"""On a CUDA device: every way of disentangled attention against exact numbers, at lengths aligned and not."""

from collections.abc import Callable, Sequence

import pytest
import torch

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, build_encoder
from precis.nn import packing
from precis.nn.attention import attend
from precis.nn.disentangled import bias as route
from precis.nn.disentangled import flash, flex
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.disentangled.flash import attend_flash
from precis.nn.disentangled.flex import attend_flex
from precis.nn.disentangled.inputs import Operands
from precis.nn.disentangled.recompute import attend_recomputing
from precis.nn.disentangled.saved_scores import attend_openly
from precis.nn.relative_positions import LogBuckets
from tests.nn.definition import attention_weights
from tests.nn.disentangled import inputs as shared
from tests.nn.disentangled.inputs import make_bias

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

DEVICE = "cuda"
BUCKETS = LogBuckets(256, 512)
WIDTH = 64
SCALE = (3 * WIDTH) ** -0.5
SHORT = [1, 2, 7, 8, 9, 63, 64, 65, 100, 127, 129, 255, 257, 399, 400, 401, 511, 512, 513]
LENGTHS = [*SHORT, 700, 777, 1023, 1024, 1025, 1100, 2047, 2048, 3001, 4096, 8191, 8192]
TRAINED = [2, 9, 65, 129, 257, 400, 513, 1025, 2048, 3001]
HALVES = [torch.bfloat16, torch.float16]
needs_library = pytest.mark.skipif(
    not flash.is_available(), reason="needs the extra `cuda` and an NVIDIA device"
)
needs_flex = pytest.mark.skipif(not flex.is_available(), reason="needs Triton")


def random_inputs(
    length: int, dtype: torch.dtype, *, learnt: bool = False, width: int = WIDTH
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(length)
    shapes = [(2, 2, length, width)] * 3
    states = [torch.randn(shape, generator=generator) for shape in shapes]
    tables = [SCALE * torch.randn(2, BUCKETS.rows, width, generator=generator) for _ in range(2)]
    return [x.to(DEVICE, dtype).requires_grad_(learnt) for x in (*states, *tables)]


def padding(length: int) -> torch.Tensor:
    """The first document whole, of the second two thirds."""
    return (
        torch.arange(length, device=DEVICE)
        < torch.tensor([length, max(1, 2 * length // 3)], device=DEVICE)[:, None]
    )


def operands(
    inputs: Sequence[torch.Tensor], valid: torch.Tensor | None = None, dropout: float = 0.0
) -> Operands:
    return shared.operands(inputs, valid, buckets=BUCKETS, scale=SCALE, dropout=dropout)


def plain(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    """The definition, in the type of the inputs."""
    q, k, v, *_ = inputs
    # in blocks: by gathering, which holds the fewest numbers
    bias, length = make_bias(inputs, buckets=BUCKETS), q.shape[-2]
    scores = torch.cat([bias.rows(i, min(i + 256, length), q, k) for i in range(0, length, 256)], -2)
    return attention_weights(q, k, scores=scores, mask=valid[:, None, None], scale=SCALE) @ v


def assert_no_worse(found: torch.Tensor, half: torch.Tensor, exact: torch.Tensor) -> None:
    """In the mean values and gradients err at most twice as much as the plain path in the same type, or a rounding."""
    assert found.isfinite().all()
    rounding = torch.finfo(found.dtype).eps * exact.abs().mean()
    error, theirs = ((x.float() - exact).abs().mean() for x in (found, half))
    assert error <= 2 * theirs + rounding


def chosen(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    mask = valid[:, None, None]
    return attend(*inputs[:3], bias=make_bias(inputs, buckets=BUCKETS), mask=mask, scale=SCALE)


def without_library(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flash, "serves", lambda device: False)
        return chosen(inputs, valid)


def fused(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    """The plain path: scores handed to torch's fused kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DisentangledBias, "fused", lambda *_, **__: None)
        return chosen(inputs, valid)


def by_the_library(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    return attend_flash(operands(inputs, valid))


def by_flex(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    return attend_flex(operands(inputs, valid))


def openly(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    return attend_openly(operands(inputs, valid))


def recomputing(inputs: Sequence[torch.Tensor], valid: torch.Tensor) -> torch.Tensor:
    return attend_recomputing(operands(inputs, valid))


INFERRING = [
    chosen,
    fused,
    pytest.param(by_the_library, marks=needs_library),
    pytest.param(by_flex, marks=needs_flex),
]
TRAINING = [chosen, without_library, openly, recomputing, pytest.param(by_the_library, marks=needs_library)]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("way", INFERRING)
def test_inference_at_every_length_errs_no_more_than_the_plain_path(
    way: Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    for length in LENGTHS:
        half, valid = random_inputs(length, dtype), padding(length)
        with torch.no_grad():
            found = way(half, valid)
            exact, theirs = plain([x.float() for x in half], valid), plain(half, valid)
        real = valid[:, None].expand(found.shape[:-1])
        assert_no_worse(found[real], theirs[real], exact[real])


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
@pytest.mark.parametrize("way", TRAINING)
def test_gradients_at_every_length_err_no_more_than_the_plain_paths(
    way: Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    for length in TRAINED:
        given, valid = random_inputs(length, dtype, learnt=True), padding(length)
        exact_inputs = [x.detach().double().requires_grad_() for x in given]
        real = valid[:, None].expand(given[0].shape[:-1])

        def outcome(
            out: torch.Tensor, inputs: Sequence[torch.Tensor], real: torch.Tensor = real
        ) -> list[torch.Tensor]:
            return [out[real], *torch.autograd.grad(out[real].square().sum(), inputs)]

        found = outcome(way(given, valid), given)
        theirs = outcome(plain(given, valid), given)
        right = outcome(plain(exact_inputs, valid), exact_inputs)
        for one, other, exact in zip(found, theirs, right, strict=True):
            assert_no_worse(one, other, exact.float())


@pytest.mark.parametrize("way", TRAINING)
def test_gradients_are_the_same_bits_twice(
    way: Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor],
) -> None:
    inputs, valid = random_inputs(1500, torch.bfloat16, learnt=True), padding(1500)

    def gradients() -> tuple[torch.Tensor, ...]:
        out = way(inputs, valid)
        return torch.autograd.grad(out.square().sum(), inputs)

    assert all(torch.equal(one, other) for one, other in zip(gradients(), gradients(), strict=True))


@pytest.mark.parametrize("way", [chosen, without_library, fused])
@pytest.mark.parametrize("autocast", [False, True])
def test_heads_of_odd_widths_and_autocast_break_no_path(
    way: Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor], autocast: bool
) -> None:
    for width in (24, 25):
        for length in (65, 400, 513, 1025):
            inputs, valid = random_inputs(length, torch.bfloat16, width=width), padding(length)
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=autocast), torch.no_grad():
                found = way(inputs, valid)
            exact, theirs = plain([x.float() for x in inputs], valid), plain(inputs, valid)
            real = valid[:, None].expand(found.shape[:-1])
            assert_no_worse(found[real], theirs[real], exact[real])


@needs_library
@pytest.mark.parametrize("dtype", HALVES)
def test_an_encoder_on_a_packed_batch_gives_what_it_gives_on_a_padded_one(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """With the library and one launch a layer, and with the plain path in fp32."""
    torch.manual_seed(0)
    config = ZCodePPConfig(
        hidden_size=128,
        num_attention_heads=2,
        encoder_layers=3,
        vocab_size=50,
        dropout=0.0,
        attention_dropout=0.0,
    )
    encoder = build_encoder(config).to(DEVICE)
    lengths = torch.tensor([700, 3, 512, 333, 64], device=DEVICE)
    valid = torch.arange(700, device=DEVICE) < lengths[:, None]
    states = (
        torch.randn(5, 700, 128, generator=torch.Generator().manual_seed(1)).to(DEVICE) * valid[..., None]
    )
    with torch.no_grad(), monkeypatch.context() as patch:
        patch.setattr(flash, "serves", lambda device: False)
        patch.setattr(flex, "serves", lambda device: False)
        patch.setattr(packing, "WASTE", 2.0)
        exact = encoder(states, valid)[valid]
        theirs = encoder.to(dtype)(states.to(dtype), valid)[valid]
    launched = []
    way = route.attend_flash_packed  # type: ignore[attr-defined]
    monkeypatch.setattr(route, "attend_flash_packed", lambda *a, **k: launched.append(1) or way(*a, **k))  # type: ignore[func-returns-value]
    with torch.no_grad():
        found = encoder(states.to(dtype), valid)[valid]
    assert len(launched) == 3
    assert_no_worse(found, theirs, exact)


@needs_library
def test_dropout_on_the_device_follows_torchs_generator() -> None:
    inputs = random_inputs(300, torch.bfloat16, learnt=True)

    def outcome(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        out = attend_flash(operands(inputs, dropout=0.25))
        return [out, *torch.autograd.grad(out.square().sum(), inputs)]

    assert all(torch.equal(one, other) for one, other in zip(outcome(1), outcome(1), strict=True))
    assert not torch.equal(outcome(1)[0], outcome(2)[0])
