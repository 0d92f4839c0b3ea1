"""Disentangled attention on CUDA by one Triton kernel: forward only, memory linear in length.

Like FlashAttention (Dao et al. 2022, Alg. 1), with position scores looked up in two tables, every query against every
row of the position keys (b h n r) and every key against every row of the position queries. Of a block of queries only
the near keys are looked up one by one; all far keys share a row, so that their scores are one number a query and one
number a key, and the inner loop over them is that of plain attention.

`attend` does not choose it: it has run in Triton's interpreter only, on a CPU. `benchmarks/gpu/` times it beside
FlexAttention. This module needs Triton, which comes with torch's CUDA builds.
"""

# Triton's compiler and not Python reads the kernels, so that they have no annotations.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor

from precis.nn.score_bias import DisentangledBias

_ROWS = 64
_KEYS = 64
_LOG2E = 1.4426950408889634
_LOWEST = tl.constexpr(-1e30)  # of a padded key: all of them together give a mean, not NaN


def attend_triton(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
) -> Float[Tensor, "b h n e"]:
    """softmax(scale * q.k + position scores) @ v.

    Raises:
        ValueError: the width of a head is not a power of two from 16 on.
    """
    batch, heads, length, width = queries.shape
    if width < 16 or width & (width - 1):
        raise ValueError(f"head width {width}: this kernel takes 16, 32, 64, 128 or 256")
    queries, keys, values = queries.contiguous(), keys.contiguous(), values.contiguous()
    nothing = queries.new_empty(1)
    c2p = _against(queries, bias.position_keys)
    p2c = _against(keys, bias.position_queries)
    rows = bias.offsets.descending(length - 1, queries.device).int()
    ends = bias.offsets.ends(queries.device).int()
    mixed = torch.empty_like(queries)
    grid = (triton.cdiv(length, _ROWS), batch * heads)
    _forward[grid](
        queries,
        keys,
        values,
        nothing if c2p is None else c2p,
        nothing if p2c is None else p2c,
        rows,
        ends,
        nothing if valid is None else valid.to(torch.int8),
        mixed,
        length,
        heads,
        bias.buckets.rows,
        bias.buckets.saturation,
        scale * _LOG2E,
        C2P=c2p is not None,
        P2C=p2c is not None,
        PADDED=valid is not None,
        WIDTH=width,
        ROWS=_ROWS,
        KEYS=_KEYS,
        PRECISION="ieee" if queries.dtype == torch.float32 else "tf32",
    )
    return mixed


def _against(
    states: Float[Tensor, "b h n e"], table: Float[Tensor, "h r e"] | None
) -> Float[Tensor, "b h n r"] | None:
    """Dot products with the table, in the unit of the kernel's exponentials (base 2)."""
    return None if table is None else (states @ (table * _LOG2E).transpose(-1, -2)).contiguous()


@triton.jit
def _forward(
    queries, keys, values, c2p, p2c, table_rows, ends, valid, mixed,
    length, heads, table_size, saturation, scale,
    C2P: tl.constexpr, P2C: tl.constexpr, PADDED: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of queries of one head: far past, near keys, far future."""
    start = tl.program_id(0) * ROWS
    head = tl.program_id(1).to(tl.int64)
    base = head * length
    i = start + tl.arange(0, ROWS)
    e = tl.arange(0, WIDTH)
    places = (base + i)[:, None] * WIDTH + e[None, :]
    query = tl.load(queries + places, mask=(i < length)[:, None], other=0.0)
    total = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    summed = tl.zeros([ROWS], dtype=tl.float32)
    highest = tl.full([ROWS], float("-inf"), dtype=tl.float32)
    valid_row = valid + (head // heads) * length
    first = tl.maximum(0, start - saturation + 1)
    last = tl.minimum(length, start + ROWS - 1 + saturation)
    total, summed, highest = _keys(
        total, summed, highest, query, keys, values, c2p, p2c, table_rows, ends, valid_row,
        i, base, 0, first, length, table_size, scale,
        C2P, P2C, PADDED, False, WIDTH, KEYS, PRECISION,
    )  # fmt: skip
    total, summed, highest = _keys(
        total, summed, highest, query, keys, values, c2p, p2c, table_rows, ends, valid_row,
        i, base, first, last, length, table_size, scale,
        C2P, P2C, PADDED, True, WIDTH, KEYS, PRECISION,
    )  # fmt: skip
    total, summed, highest = _keys(
        total, summed, highest, query, keys, values, c2p, p2c, table_rows, ends + 1, valid_row,
        i, base, last, length, length, table_size, scale,
        C2P, P2C, PADDED, False, WIDTH, KEYS, PRECISION,
    )  # fmt: skip
    result = (total / summed[:, None]).to(mixed.dtype.element_ty)
    tl.store(mixed + places, result, mask=(i < length)[:, None])


@triton.jit
def _keys(
    total, summed, highest, query, keys, values, c2p, p2c, table_rows, end, valid_row,
    i, base, first, last, length, table_size, scale,
    C2P: tl.constexpr, P2C: tl.constexpr, PADDED: tl.constexpr, NEAR: tl.constexpr,
    WIDTH: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The keys from `first` to `last` added; NEAR: each distance is looked up, else all share the row at `end`."""
    e = tl.arange(0, WIDTH)
    there = i < length
    far = tl.load(end)
    if C2P and not NEAR:
        of_query = tl.load(c2p + (base + i) * table_size + far, mask=there, other=0.0).to(tl.float32)
    for begin in range(first, last, KEYS):
        j = begin + tl.arange(0, KEYS)
        inside = j < last
        places = (base + j)[:, None] * WIDTH + e[None, :]
        key = tl.load(keys + places, mask=inside[:, None], other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale
        if NEAR:
            both = there[:, None] & inside[None, :]
            row = tl.load(table_rows + (length - 1) - (i[:, None] - j[None, :]), mask=both, other=0)
            if C2P:
                score += tl.load(c2p + (base + i)[:, None] * table_size + row, mask=both, other=0.0).to(
                    tl.float32
                )
            if P2C:
                score += tl.load(p2c + (base + j)[None, :] * table_size + row, mask=both, other=0.0).to(
                    tl.float32
                )
        else:
            if C2P:
                score += of_query[:, None]
            if P2C:
                of_key = tl.load(p2c + (base + j) * table_size + far, mask=inside, other=0.0)
                score += of_key.to(tl.float32)[None, :]
        if PADDED:
            real = tl.load(valid_row + j, mask=inside, other=0) != 0
            score = tl.where(real[None, :], score, _LOWEST)
        score = tl.where(inside[None, :], score, float("-inf"))
        now = tl.maximum(highest, tl.max(score, axis=1))
        weight = tl.exp2(score - now[:, None])
        shrink = tl.exp2(highest - now)
        value = tl.load(values + places, mask=inside[:, None], other=0.0)
        total = total * shrink[:, None] + tl.dot(weight.to(value.dtype), value, input_precision=PRECISION)
        summed = summed * shrink + tl.sum(weight, axis=1)
        highest = now
    return total, summed, highest
