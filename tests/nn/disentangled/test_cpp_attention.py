"""The C++ kernel of disentangled attention: the plain path's numbers and gradients, its dropout.

How it is built: test_cpp_loader.py.
"""

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from precis.nn.attention import attend
from precis.nn.disentangled import bias as route
from precis.nn.disentangled import cpp_attention, cpp_build
from precis.nn.disentangled.cpp_attention import attend_compiled
from precis.nn.disentangled.inputs import Operands
from precis.nn.relative_positions import LogBuckets, OffsetRows
from tests.nn.disentangled import inputs as shared
from tests.nn.disentangled.inputs import make_bias, saved_tensors

SCALE = 0.1
SHORT = LogBuckets(32, 64)


def has_gcc() -> bool:
    if shutil.which("c++") is None:
        return False
    told = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in told


_HAS_LEVEL = torch.backends.cpu.get_cpu_capability() in cpp_build.LEVELS
needs_processor = pytest.mark.skipif(not _HAS_LEVEL, reason="there is no kernel for this processor")
needs_compiler = pytest.mark.skipif(
    not (_HAS_LEVEL and has_gcc()), reason="no GCC, or no kernel for this processor"
)


@pytest.fixture(params=["weights kept", "weights made again"])
def both_backwards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "weights made again":
        monkeypatch.setattr(cpp_attention, "_KEEP_UP_TO", 0)


def random_inputs(
    length: int,
    *,
    batch: int = 2,
    heads: int = 2,
    width: int = 16,
    buckets: LogBuckets = SHORT,
    seed: int = 0,
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    states = (torch.randn(batch, length, heads, width, generator=generator) for _ in range(3))
    tables = (torch.randn(heads, buckets.rows, width, generator=generator) * 0.3 for _ in range(2))
    return [x.transpose(1, 2).requires_grad_() for x in states] + [x.requires_grad_() for x in tables]


BOTH = ("c2p", "p2c")


def operands(
    inputs: Sequence[torch.Tensor],
    valid: torch.Tensor | None = None,
    kept: Sequence[str] = BOTH,
    buckets: LogBuckets = SHORT,
    dropout: float = 0.0,
) -> Operands:
    return shared.operands(inputs, valid, kept, buckets=buckets, scale=SCALE, dropout=dropout)


def plain(
    inputs: Sequence[torch.Tensor],
    valid: torch.Tensor | None = None,
    kept: Sequence[str] = BOTH,
    buckets: LogBuckets = SHORT,
) -> torch.Tensor:
    return shared.plain(inputs, valid, kept, buckets=buckets, scale=SCALE)


def padding(batch: int, length: int) -> torch.Tensor:
    valid = torch.rand(batch, length, generator=torch.Generator().manual_seed(1)) > 0.3
    valid[:, 0] = True
    valid[0, length // 2 + 1 :] = False
    return valid


def same_with_gradients(found: torch.Tensor, expected: torch.Tensor, inputs: Sequence[torch.Tensor]) -> None:
    torch.testing.assert_close(found, expected)
    given = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    gradients = (torch.autograd.grad(x, inputs, given, allow_unused=True) for x in (found, expected))
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            largest = other.abs().max().item()  # gradients of tables are sums over all pairs
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * max(1.0, largest))


@needs_compiler
@pytest.mark.parametrize("kept", [("c2p", "p2c"), ("c2p",), ("p2c",)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 33, 128, 129, 300])
def test_it_gives_the_plain_path_and_its_gradients(
    length: int, masked: bool, kept: tuple[str, ...], both_backwards: str
) -> None:
    inputs = random_inputs(length)
    valid = padding(2, length) if masked else None
    found = attend_compiled(operands(inputs, valid, kept))
    same_with_gradients(found, plain(inputs, valid, kept), inputs)


@needs_compiler
@pytest.mark.parametrize("masked", [False, True])
def test_several_blocks_of_keys_and_a_far_field(masked: bool) -> None:
    """1,100 tokens: three blocks of keys, and rows of the table that whole strips share."""
    inputs = random_inputs(1100, batch=1, buckets=LogBuckets())
    valid = padding(1, 1100) if masked else None
    found = attend_compiled(operands(inputs, valid, buckets=LogBuckets()))
    same_with_gradients(found, plain(inputs, valid, buckets=LogBuckets()), inputs)


@needs_compiler
@pytest.mark.parametrize("kept", [("c2p", "p2c"), ("c2p",), ("p2c",)])
@pytest.mark.parametrize("real", [1100, 1060, 300])
def test_whole_blocks_of_far_keys(kept: tuple[str, ...], real: int) -> None:
    """Distances of 64 and more share a row: of 1,100 tokens most tiles meet blocks that have no other."""
    inputs = random_inputs(1100, batch=1)
    valid = None if real == 1100 else torch.arange(1100)[None] < real
    found = attend_compiled(operands(inputs, valid, kept))
    same_with_gradients(found, plain(inputs, valid, kept), inputs)


@needs_compiler
@pytest.mark.parametrize("length", [16, 90, 200])
def test_buckets_that_leave_rows_out(length: int, both_backwards: str) -> None:
    buckets = LogBuckets(64, 64)
    places, _ = OffsetRows(buckets).places(200, torch.device("cpu"))
    assert (places[:-1] - places[1:]).max() == 2
    inputs = random_inputs(length, buckets=buckets)
    found = attend_compiled(operands(inputs, buckets=buckets))
    same_with_gradients(found, plain(inputs, buckets=buckets), inputs)


@needs_compiler
def test_a_first_block_of_keys_that_is_all_padding() -> None:
    inputs = random_inputs(700, buckets=LogBuckets())
    valid = torch.ones(2, 700, dtype=torch.bool)
    valid[0, :600] = False
    found = attend_compiled(operands(inputs, valid, buckets=LogBuckets()))
    gradient = torch.autograd.grad(found.sum(), inputs[2], retain_graph=True)[0]
    assert (gradient[0, :, :600] == 0).all()  # a padded value weighs nothing, not nearly nothing
    same_with_gradients(found, plain(inputs, valid, buckets=LogBuckets()), inputs)


@needs_compiler
def test_large_scores_lose_no_digits_in_the_backward_pass(both_backwards: str) -> None:
    """Scores in the hundreds: one key has nearly all the weight."""
    inputs = [x.detach().requires_grad_() for x in random_inputs(80)]
    with torch.no_grad():
        inputs[0] *= 100
    exact = [x.detach().double().requires_grad_() for x in inputs]
    expected = torch.autograd.grad(plain(exact).square().sum(), exact)
    found = torch.autograd.grad(attend_compiled(operands(inputs)).square().sum(), inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-4 * other.abs().max().item())


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@needs_compiler
@pytest.mark.parametrize("count", [2, 4, 8])
def test_numbers_do_not_hang_on_threads(
    count: int, threads: Callable[[int], None], both_backwards: str
) -> None:
    """Many threads share a head, few take a head each: 4 heads, 5 tiles."""

    def run() -> tuple[torch.Tensor, ...]:
        inputs = random_inputs(600)
        found = attend_compiled(operands(inputs))
        return found, *torch.autograd.grad(found.square().sum(), inputs)

    alone = run()
    threads(count)
    for one, other in zip(run(), alone, strict=True):
        assert torch.equal(one, other)


@needs_compiler
def test_what_inference_mode_left_behind_serves_training() -> None:
    """Places are kept from call to call; 47 tokens are nobody else's."""
    inputs = random_inputs(47)
    with torch.inference_mode():
        first = attend_compiled(operands(inputs))
    found = attend_compiled(operands(inputs))
    same_with_gradients(found, plain(inputs), inputs)
    assert torch.equal(found, first)


@needs_compiler
@pytest.mark.parametrize("count", [1, 8])
def test_the_longest_input_whose_weights_are_kept(count: int, threads: Callable[[int], None]) -> None:
    """One document of one head, which eight threads share."""
    threads(count)
    inputs = random_inputs(512, batch=1, heads=1)
    found = attend_compiled(operands(inputs))
    same_with_gradients(found, plain(inputs), inputs)


@needs_compiler
@pytest.mark.parametrize("kept", [("c2p",), ("p2c",)])
def test_one_table_alone_over_several_blocks(kept: tuple[str, ...]) -> None:
    inputs = random_inputs(700, batch=1, buckets=LogBuckets())
    found = attend_compiled(operands(inputs, None, kept, LogBuckets()))
    same_with_gradients(found, plain(inputs, None, kept, LogBuckets()), inputs)


def errors_in_bf16(
    way: Callable[..., torch.Tensor],
    inputs: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor],
    valid: torch.Tensor | None,
) -> list[float]:
    """How far a way is off in bf16, in its result and in its gradients, relative to what fp64 says."""
    halves = [x.detach().bfloat16().requires_grad_() for x in inputs]
    found = way(halves, valid)
    assert found.dtype == torch.bfloat16
    given = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
    gradients = torch.autograd.grad(found, halves, given.bfloat16())
    assert all(one.dtype == torch.bfloat16 for one in gradients)
    with torch.no_grad():
        without = way(halves, valid)  # inference may take another path
    everything = (found, without, *gradients)
    expected = (exact[0], exact[0], *exact[1:])
    return [((a - b).norm() / b.norm()).item() for a, b in zip(everything, expected, strict=True)]


@needs_compiler
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("length", "width"), [(16, 64), (33, 16), (128, 64), (300, 64), (90, 15), (1100, 64)]
)
def test_bf16_is_no_further_off_than_the_plain_path(length: int, width: int, masked: bool) -> None:
    """The same numbers of bf16 in fp64 are the truth; a width of 15 has no pairs."""
    inputs = random_inputs(length, batch=1, width=width)
    valid = padding(1, length) if masked else None
    doubles = [x.detach().bfloat16().double().requires_grad_() for x in inputs]
    mixed = plain(doubles, valid)
    given = torch.randn(mixed.shape, generator=torch.Generator().manual_seed(2)).bfloat16().double()
    exact = [mixed, *torch.autograd.grad(mixed, doubles, given)]

    def cpp_attention(halves: Sequence[torch.Tensor], valid: torch.Tensor | None) -> torch.Tensor:
        return attend_compiled(operands(halves, valid))

    ours = errors_in_bf16(cpp_attention, inputs, exact, valid)
    theirs = errors_in_bf16(plain, inputs, exact, valid)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine <= 1.05 * other, (ours, theirs)
        assert mine < 0.01, ours


@needs_compiler
@pytest.mark.parametrize("learning", [False, True])
def test_bf16_draws_the_same_dropout_in_both_passes(learning: bool, both_backwards: str) -> None:
    """Weights and values in bf16: the same weights go as in fp32, and where they went no gradient comes back."""
    inputs = [x.detach().bfloat16().requires_grad_(learning) for x in random_inputs(96, width=96)]
    eye = torch.eye(96).expand(2, 2, 96, 96)

    def run(numbers: Sequence[torch.Tensor], values: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return attend_compiled(operands([*numbers[:2], values, *numbers[3:]], dropout=0.25))

    numbers = [x.detach().float().requires_grad_(learning) for x in inputs]
    in_full, in_half = run(numbers, eye), run(inputs, eye.bfloat16())
    assert torch.equal(in_full == 0, in_half == 0)
    if learning:
        given = torch.randn(in_full.shape, generator=torch.Generator().manual_seed(2)).bfloat16()
        found = torch.autograd.grad(in_half, inputs[:2], given)
        expected = torch.autograd.grad(in_full, numbers[:2], given.float())
        for one, other in zip(found, expected, strict=True):
            assert (one - other).norm() < 0.01 * other.norm()


@needs_compiler
@pytest.mark.parametrize(("length", "batch"), [(96, 8), (560, 1)])
def test_dropout_takes_away_its_share_and_gradients_see_the_same_weights(
    length: int, batch: int, both_backwards: str
) -> None:
    """Values that are the identity show the weights themselves; 560 tokens are two blocks of keys."""
    inputs = random_inputs(length, batch=batch, width=length)
    eye = torch.eye(length).expand(batch, 2, length, length)

    def run(values: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return attend_compiled(operands([*inputs[:2], values, *inputs[3:]], dropout=0.25))

    weights = attend_compiled(operands([*inputs[:2], eye, *inputs[3:]]))
    dropped = run(eye)
    kept = dropped != 0
    torch.testing.assert_close(dropped, weights * kept / 0.75)
    share = 1 - kept.float().mean().item()
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / kept.numel()) ** 0.5
    same_with_gradients(run(inputs[2]), (weights * kept / 0.75) @ inputs[2], inputs)


@needs_compiler
def test_weights_are_kept_of_short_inputs_that_learn_alone() -> None:
    def kept(length: int, learning: bool = True) -> Any:
        inputs = random_inputs(length, batch=1)
        with torch.set_grad_enabled(learning):
            mixed = attend_compiled(operands(inputs))
        return saved_tensors(mixed)[-1].numel() if learning else mixed.grad_fn

    assert kept(512) == 2 * 512 * 512
    assert kept(513) == 0
    assert kept(512, learning=False) is None


@needs_compiler
def test_attend_takes_it_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counting(given: Operands) -> torch.Tensor:
        calls.append(given)
        return attend_compiled(given)

    monkeypatch.setattr(route, "attend_compiled", counting)
    monkeypatch.setenv("PRECIS_COMPILE", "0")
    inputs = random_inputs(40)
    expected = attend(*inputs[:3], bias=make_bias(inputs, buckets=SHORT), scale=SCALE)
    assert not calls
    monkeypatch.delenv("PRECIS_COMPILE")
    found = attend(*inputs[:3], bias=make_bias(inputs, buckets=SHORT), scale=SCALE)
    assert len(calls) == 1
    same_with_gradients(found, expected, inputs)
    in_double = [x.detach().double() for x in inputs]
    attend(*in_double[:3], bias=make_bias(in_double, buckets=SHORT), scale=SCALE)
    nobody = torch.zeros(2, 1, 1, 40, dtype=torch.bool)
    torch.testing.assert_close(
        attend(*inputs[:3], bias=make_bias(inputs, buckets=SHORT), mask=nobody, scale=SCALE),
        inputs[2].mean(2, keepdim=True).expand_as(inputs[2]),
    )
    everything = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    torch.testing.assert_close(
        attend(*inputs[:3], bias=make_bias(inputs, buckets=SHORT), mask=everything, scale=SCALE), expected
    )
    in_fp16 = [x.detach().half() for x in inputs]
    attend(*in_fp16[:3], bias=make_bias(in_fp16, buckets=SHORT), scale=SCALE)
    assert len(calls) == 1  # fp64, fp16, documents without a token and masks of other shapes go the plain way
    in_bf16 = [x.detach().bfloat16() for x in inputs]
    attend(*in_bf16[:3], bias=make_bias(in_bf16, buckets=SHORT), scale=SCALE)
    assert len(calls) == 2


@needs_compiler
def test_pairs_of_bf16_numbers_are_not_flushed_where_half_of_a_pair_is_zero() -> None:
    """The last key of an odd length stands beside nothing: as fp32 the two would be a denormal number."""
    length = 17
    inputs = [torch.zeros(1, 1, length, 16, dtype=torch.bfloat16) for _ in range(3)]
    inputs[2][0, 0, :, 0] = torch.arange(length)
    inputs += [torch.zeros(1, SHORT.rows, 16, dtype=torch.bfloat16) for _ in range(2)]
    torch.set_flush_denormal(True)
    try:
        found = attend_compiled(operands(inputs))
    finally:
        torch.set_flush_denormal(False)
    assert found[0, 0, :, 0].tolist() == [8.0] * length


@needs_compiler
def test_a_thread_that_has_computed_nothing_yet_may_begin_with_the_kernel() -> None:
    inputs = [x.detach() for x in random_inputs(20)]
    expected = attend_compiled(operands(inputs))
    before, found = torch.get_num_threads(), []
    torch.set_num_threads(before + 1)
    try:
        work = threading.Thread(target=lambda: found.append(attend_compiled(operands(inputs))))
        work.start()
        work.join()
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1
    assert torch.equal(found[0], expected)
