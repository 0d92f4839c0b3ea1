"""`attend` with a prefix: every path gives Eq. 1, and blocks hide columns exactly."""

from typing import Any

import pytest
import torch

from precis.nn import attention, attention_rows
from precis.nn.attention import attend
from precis.nn.attention_rows import OwnKeys
from precis.nn.normalizers import Gumbel, TopP
from precis.nn.prefix_columns import PrefixBlocks, PrefixColumns
from precis.nn.score_bias import DenseBias

COLUMNS = 5


def inputs(
    *,
    batch: int = 2,
    heads: int = 3,
    queries: int = 12,
    keys: int = 12,
    width: int = 8,
    dtype: torch.dtype = torch.float64,
) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)  # noqa: E731
    q, k, v = (
        draw(batch, heads, queries, width),
        draw(batch, heads, keys, width),
        draw(batch, heads, keys, width),
    )
    return q, k, v, draw(heads, COLUMNS, width), draw(heads, COLUMNS, width)


def blocks(*, queries: int = 12, count: int = 2) -> PrefixBlocks:
    segments = torch.stack(
        [torch.arange(queries) * count // queries, torch.arange(queries) * count // (queries + 4)]
    )
    return PrefixBlocks(segments, torch.tensor([0, 0, 0, 1, 1]), count)


def by_hand(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    pk: torch.Tensor,
    pv: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    blocked: PrefixBlocks | None = None,
    scale: float = 1.0,
) -> torch.Tensor:
    """Eq. 1: softmax over [prefix, keys], with everything as one dense matrix."""
    batch = q.shape[0]
    keys = torch.cat([pk.expand(batch, -1, -1, -1), k], -2)
    values = torch.cat([pv.expand(batch, -1, -1, -1), v], -2)
    scores = scale * q @ keys.transpose(-1, -2)
    if bias is not None:
        scores[..., COLUMNS:] += bias
    if mask is not None:
        scores[..., COLUMNS:] = scores[..., COLUMNS:].masked_fill(~mask, -torch.inf)
    if blocked is not None:
        scores[..., :COLUMNS] = scores[..., :COLUMNS].masked_fill(~blocked.visible(), -torch.inf)
    return torch.softmax(scores, -1) @ values


@pytest.mark.parametrize("path", ["fused", "in parts"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("blocked", [None, blocks()])
@pytest.mark.parametrize("biased", [False, True])
def test_eq1_prefix_columns_join_the_softmax_on_every_path(
    monkeypatch: pytest.MonkeyPatch, path: str, padded: bool, blocked: PrefixBlocks | None, biased: bool
) -> None:
    monkeypatch.setattr(attention_rows, "_BESIDE_UP_TO", 0 if path == "fused" else 100)
    q, k, v, pk, pv = inputs()
    mask = (torch.arange(12) < torch.tensor([[12], [7]]))[:, None, None, :] if padded else None
    bias = torch.randn(1, 3, 12, 12, dtype=torch.float64) if biased else None
    found = attend(
        q,
        k,
        v,
        bias=DenseBias(bias) if bias is not None else None,
        mask=mask,
        prefix=PrefixColumns(pk, pv, blocked),
        scale=0.3,
    )
    expected = by_hand(q, k, v, pk, pv, bias=bias, mask=mask, blocked=blocked, scale=0.3)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)


def test_long_inputs_go_block_by_block_with_the_same_values_and_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = []
    for start in (1000, 4):
        monkeypatch.setattr(attention, "_BLOCK_FROM", start)
        monkeypatch.setattr(attention, "_BLOCK_ROWS", 5)
        q, k, v, pk, pv = inputs()
        pk.requires_grad_()
        found = attend(q, k, v, prefix=PrefixColumns(pk, pv, blocks()))
        found.square().sum().backward()
        results.append((found.detach(), pk.grad))
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_blocked_column_has_no_weight_at_all_in_any_precision(dtype: torch.dtype) -> None:
    q, k, v, pk, pv = inputs(dtype=dtype)
    pk = 10 * pk  # scores that stand out
    hidden = pv.clone()
    hidden[:, 3:] = 1e4  # the columns of segment 1
    seen = attend(q, k, v, prefix=PrefixColumns(pk, pv, blocks()))
    changed = attend(q, k, v, prefix=PrefixColumns(pk, hidden, blocks()))
    assert torch.equal(changed[0, :, :6], seen[0, :, :6])
    assert not torch.equal(changed[0, :, 6:], seen[0, :, 6:])


def test_own_keys_and_a_prefix_share_one_softmax() -> None:
    q, k, v, pk, pv = inputs()
    own = OwnKeys(torch.randn_like(q), torch.randn_like(q))
    mask = torch.ones(1, 1, 12, 13, dtype=torch.bool).tril(3)
    mask[..., -1] = True
    found = attend(q, k, v, mask=mask, own=own, prefix=PrefixColumns(pk, pv, blocks()))
    for i in range(12):
        row = slice(i, i + 1)
        keys, values = torch.cat([k, own.keys[..., row, :]], -2), torch.cat([v, own.values[..., row, :]], -2)
        one = by_hand(
            q[..., row, :], keys, values, pk, pv, mask=mask[..., row, :], blocked=blocks().rows(i, i + 1)
        )
        torch.testing.assert_close(found[..., row, :], one, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("normalize", [TopP(mass=0.8), Gumbel(temperature=0.5)])
def test_what_is_observed_is_what_the_values_are_mixed_with(normalize: TopP | Gumbel) -> None:
    q, k, v, pk, pv = inputs()
    seen: list[Any] = []
    prefix = PrefixColumns(pk, pv, blocks(), observe=seen.append)
    found = attend(q, k, v, prefix=prefix, normalize=normalize)
    values = torch.cat([pv.expand(2, -1, -1, -1), v], -2)
    torch.testing.assert_close(seen[0] @ values, found, atol=1e-12, rtol=1e-10)
    assert not seen[0][0, :, :6, 3:5].any()


def test_a_prefix_of_no_columns_changes_nothing() -> None:
    q, k, v, pk, pv = inputs()
    empty = PrefixColumns(pk[:, :0], pv[:, :0])
    torch.testing.assert_close(attend(q, k, v, prefix=empty), attend(q, k, v), atol=1e-12, rtol=1e-10)


def test_one_step_of_decoding_copies_no_keys() -> None:
    q, k, v, pk, pv = inputs(queries=1, keys=500)
    sizes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in (
                k.untyped_storage().data_ptr(),
                v.untyped_storage().data_ptr(),
            ):
                sizes.append(made.untyped_storage().nbytes())
            return made

    with Watch():
        attend(q, k, v, prefix=PrefixColumns(pk, pv))
    assert max(sizes) < k.untyped_storage().nbytes() / 2


def test_rows_and_cuts_leave_one_segment_for_all_queries_as_it_is() -> None:
    shared = PrefixBlocks(torch.tensor([[0], [1]]), torch.tensor([0, 1]), 2)
    assert shared.rows(3, 5) is shared
    columns = PrefixColumns(torch.zeros(1, 2, 4), torch.zeros(1, 2, 4), shared)
    refuse = lambda _: pytest.fail("was cut")  # noqa: E731
    assert columns.cut(refuse) is columns
    assert PrefixColumns(columns.keys, columns.values).cut(refuse).blocks is None
    own = PrefixBlocks(torch.tensor([[0, 1]]), torch.tensor([0, 1]), 2)
    cut = PrefixColumns(columns.keys, columns.values, own).cut(lambda segments: segments.flip(-1))
    assert cut.blocks is not None
    assert cut.blocks.segments.tolist() == [[1, 0]]
    assert own.rows(1, 2).segments.tolist() == [[1]]
