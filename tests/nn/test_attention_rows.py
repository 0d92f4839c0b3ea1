"""Each path gives Eq. 1's numbers; scores handed to a fused kernel begin, row by row, at multiples of 16 bytes."""

from collections.abc import Sequence

import pytest
import torch

from precis.nn import attention_rows
from precis.nn.attention import attend
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.prefix_columns import PrefixColumns
from precis.nn.relative_positions import LogBuckets, OffsetRows
from precis.nn.score_bias import DenseBias

LENGTHS = [*range(1, 601), 601, 777, 1023, 1024, 1025, 1100]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
BUCKETS = LogBuckets(8, 16)
MUST_ALIGN = attention_rows._must_align


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What the fused kernel is given as a mask, with the plain path taken and alignment asked for as on CUDA."""
    found = []

    def kernel(
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        *,
        attn_mask: torch.Tensor,
        **options: object,
    ) -> torch.Tensor:
        found.append(attn_mask)
        return queries

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", kernel)
    monkeypatch.setattr(DisentangledBias, "fused", lambda *_, **__: None)
    monkeypatch.setattr(attention_rows, "_must_align", lambda device: True, raising=False)
    return found


def random_bias(
    length: int,
    dtype: torch.dtype,
    *,
    kept: Sequence[str] = ("c2p", "p2c"),
    learnt: bool = False,
    width: int = 2,
) -> tuple[tuple[torch.Tensor, torch.Tensor, torch.Tensor], DisentangledBias]:
    generator = torch.Generator().manual_seed(length)
    shapes = [(1, 1, length, width)] * 2 + [(1, BUCKETS.rows, width)] * 2
    q, k, c2p, p2c = (
        torch.randn(shape, generator=generator).to(dtype).requires_grad_(learnt) for shape in shapes
    )
    offsets = OffsetRows(BUCKETS)
    return (q, k, k), DisentangledBias(
        c2p if "c2p" in kept else None, p2c if "p2c" in kept else None, offsets
    )


def assert_aligned(scores: torch.Tensor, why: object) -> None:
    """Eight elements are 16 bytes or more."""
    *rows, last = scores.stride()
    assert last == 1, why
    assert all(start % 8 == 0 for start in (scores.storage_offset(), *rows)), (why, scores.stride())


def unaligned(
    learnt: tuple[tuple[torch.Tensor, torch.Tensor, torch.Tensor], DisentangledBias], start: int, stop: int
) -> torch.Tensor:
    """The scores as they are where a gradient is asked for: these are never fused, nor arranged for it."""
    (queries, keys, _), bias = learnt
    return bias.rows(start, stop, queries, keys).detach()


@pytest.mark.long
@pytest.mark.parametrize(
    "dtype",
    [*DTYPES[:2], pytest.param(torch.float16, marks=pytest.mark.slow)],  # slow on a CPU
)
@pytest.mark.many_steps
def test_position_scores_of_every_length_are_aligned_and_the_same_numbers(
    handed: list[torch.Tensor], dtype: torch.dtype
) -> None:
    for length in LENGTHS:
        slow = dtype == torch.float16 and length > 200  # a CPU multiplies it number by number
        states, bias = random_bias(length, dtype)
        learnt = random_bias(length, dtype, learnt=True)
        attend(*states, bias=bias)
        start = 0
        for scores in handed:
            assert_aligned(scores, length)
            stop = start + scores.shape[-2]
            assert slow or torch.equal(scores, unaligned(learnt, start, stop))
            start = stop
        assert start == length
        handed.clear()


@pytest.mark.many_steps
@pytest.mark.parametrize("kept", [("c2p",), ("p2c",), ("c2p", "p2c")])
def test_padding_and_either_score_alone_are_aligned(
    handed: list[torch.Tensor], kept: tuple[str, ...]
) -> None:
    lowest = torch.finfo(torch.bfloat16).min
    for length in (*range(1, 140), 511, 513, 777, 1100):
        states, bias = random_bias(length, torch.bfloat16, kept=kept)
        learnt = random_bias(length, torch.bfloat16, kept=kept, learnt=True)
        mask = torch.rand(1, 1, 1, length, generator=torch.Generator().manual_seed(1)) > 0.3
        attend(*states, bias=bias)
        attend(*states, bias=bias, mask=mask)
        bare, masked = handed[: len(handed) // 2], handed[len(handed) // 2 :]
        for scores in handed:
            assert_aligned(scores, length)
        expected = torch.cat([unaligned(learnt, 0, length)]) if length <= 1024 else torch.cat(bare, -2)
        assert torch.equal(torch.cat(bare, -2), expected)
        assert torch.equal(torch.cat(masked, -2), expected.masked_fill(~mask, lowest))
        handed.clear()


@pytest.mark.many_steps
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_dense_scores_and_prefixes_are_aligned(handed: list[torch.Tensor], dtype: torch.dtype) -> None:
    width, lowest = 8, torch.finfo(dtype).min
    table = torch.randn(1, 2, 90, 90, generator=torch.Generator().manual_seed(2)).to(dtype)
    prefix = PrefixColumns(keys=torch.zeros(2, 5, width), values=torch.zeros(2, 5, width))
    for length in range(9, 90):
        states = torch.zeros(3, 2, length, width, dtype=dtype)
        valid = torch.arange(length) < torch.tensor([length, 1, 0])[:, None]
        mask, dense = valid[:, None, None], table[..., :length, :length]
        asked = [
            ({"mask": mask}, torch.zeros(()).masked_fill(~mask, lowest).to(dtype)),
            ({"bias": DenseBias(dense)}, dense),
            ({"bias": DenseBias(dense), "mask": mask}, dense.masked_fill(~mask, lowest)),
            ({"bias": DenseBias(dense[..., -1:, :])}, dense[..., -1:, :]),
        ]
        for given, expected in asked:
            queries = states[..., -1:, :] if expected.shape[-2] == 1 and "mask" not in given else states  # type: ignore[operator]
            attend(queries, states, states, **given)  # type: ignore[arg-type]
            assert_aligned(handed[-1], given)
            assert torch.equal(handed[-1], expected)
            attend(states, states, states, **(given if queries is states else {"mask": mask}), prefix=prefix)  # type: ignore[arg-type]
            assert_aligned(handed[-1], given)
            assert (handed[-1][..., :5] == 0).all()
        handed.clear()


@pytest.mark.parametrize("width", [5, 12, 24])
def test_heads_of_any_width_give_the_plain_numbers(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """With alignment on, and the kernel for the CPU."""
    monkeypatch.setattr(DisentangledBias, "fused", lambda *_, **__: None)
    states, bias = random_bias(37, torch.float32, width=width)
    expected = attend(*states, bias=bias)
    monkeypatch.setattr(attention_rows, "_must_align", lambda device: True)
    assert torch.equal(attend(*states, bias=bias), expected)


def test_inside_autocast_a_query_that_may_attend_nowhere_still_gets_a_mean() -> None:
    """autocast would cast fp32's lowest number to -inf in bf16, and lose the alignment of what it casts."""
    states = torch.randn(2, 2, 9, 8, generator=torch.Generator().manual_seed(3))
    mask = torch.zeros(2, 1, 1, 9, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = attend(states, states, states, mask=mask)
    assert mixed.dtype == torch.bfloat16
    expected = states.mean(-2, keepdim=True).expand_as(states)
    torch.testing.assert_close(mixed.float(), expected, atol=0.01, rtol=0.01)


@pytest.mark.parametrize(
    ("scores", "is_so"),
    [
        (torch.zeros(3, 16), True),
        (torch.zeros(3, 12), False),
        (torch.zeros(3, 24)[:, :12], True),
        (torch.zeros(3, 24)[:, 8:], True),
        (torch.zeros(3, 24)[:, 1:9], False),
        (torch.zeros(3, 32)[:, ::2], False),
        (torch.zeros(16, 16).T[:, :8], False),
    ],
)
def test_rows_are_aligned_that_begin_at_multiples_of_eight_numbers(scores: torch.Tensor, is_so: bool) -> None:
    assert attention_rows.is_aligned(scores) == is_so
    found = attention_rows.aligned(scores)
    assert attention_rows.is_aligned(found)
    assert (found is scores) == is_so
    assert torch.equal(found, scores)


def test_a_sum_and_a_row_of_parts_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In aligned memory; copies of it would cost as much again."""
    monkeypatch.setattr(attention_rows, "aligned", lambda _: pytest.fail("copied"))
    one, two = torch.randn(3, 5), torch.randn(3, 5)
    assert torch.equal(attention_rows.summed([one, two]), one + two)
    assert torch.equal(attention_rows.side_by_side([one, two]), torch.cat([one, two], dim=-1))
    for found in (attention_rows.summed([one, two]), attention_rows.side_by_side([one, two])):
        assert_aligned(found, "of two parts")
    learnt = one.clone().requires_grad_()
    assert attention_rows.summed([learnt]) is learnt
    assert torch.equal(attention_rows.summed([learnt, two]), one + two)
    assert attention_rows.side_by_side([learnt, two]).stride() == (10, 1)


def test_scores_of_another_type_are_handed_over_in_that_of_the_queries(handed: list[torch.Tensor]) -> None:
    queries, keys, values = torch.randn(3, 1, 2, 9, 8)
    scores = torch.randn(1, 2, 9, 9)
    attend(queries, keys, values, bias=DenseBias(scores.bfloat16()))
    attend(queries, keys, values, bias=DenseBias(scores))
    assert [given.dtype for given in handed] == [torch.float32] * 2
    torch.testing.assert_close(handed[0], scores.bfloat16().float())


def test_parts_are_the_same_while_torch_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    one, two = torch.randn(3, 5), torch.randn(3, 5)
    assert torch.equal(attention_rows.summed([one, two]), one + two)
    assert torch.equal(attention_rows.side_by_side([one, two]), torch.cat([one, two], dim=-1))


def test_a_kernel_for_the_cpu_gets_scores_without_a_copy(
    handed: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_rows, "_must_align", MUST_ALIGN)
    queries, keys, values = torch.randn(3, 1, 2, 9, 8)
    scores = torch.randn(1, 2, 9, 9)
    attend(queries, keys, values, bias=DenseBias(scores))
    assert handed[0].data_ptr() == scores.data_ptr()
    assert MUST_ALIGN(torch.device("cuda"))


@pytest.mark.parametrize(("queries", "is_fused"), [(8, False), (9, True)])
def test_up_to_8_queries_are_mixed_beside_a_prefix(
    handed: list[torch.Tensor], queries: int, is_fused: bool
) -> None:
    asking, states = torch.randn(1, 2, queries, 8), torch.randn(1, 2, 9, 8)
    columns = torch.randn(2, 5, 8)
    attend(asking, states, states, prefix=PrefixColumns(columns, columns))
    assert len(handed) == is_fused


@pytest.mark.parametrize(("device", "is_fused"), [("cpu", False), ("meta", True)])
def test_the_kernel_for_the_cpu_drops_no_weights(
    handed: list[torch.Tensor], device: str, is_fused: bool
) -> None:
    states = torch.randn(1, 2, 9, 8, device=device)
    attend(states, states, states, dropout=0.5)
    assert len(handed) == is_fused


def test_autocast_leaves_double_precision_as_it_is() -> None:
    states = torch.randn(1, 2, 9, 8, dtype=torch.float64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = attend(states, states, states)
    torch.testing.assert_close(found, attend(states, states, states))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("columns", [0, 5])
def test_an_exported_program_computes_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, masked: bool, biased: bool, columns: int
) -> None:
    states, bias = random_bias(40, torch.float64, width=8)
    prefix = torch.randn(2, 1, columns, 8, dtype=torch.float64)
    given = {
        "bias": bias if biased else None,
        "mask": torch.rand(1, 1, 1, 40, generator=torch.Generator().manual_seed(1)) > 0.3 if masked else None,
        "prefix": PrefixColumns(*prefix) if columns else None,
    }
    expected = attend(*states, **given)  # type: ignore[arg-type]
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    torch.testing.assert_close(attend(*states, **given), expected)  # type: ignore[arg-type]
