"""Disentangled attention on the CPU without gradients, for inputs not much longer than the table reaches.

Products with the table have one column a bucket; gathered into place and added up they are the additive mask of the
fused kernel, a block of query rows at a time. Up to about a thousand tokens nearly every key is near, and the bands of
`disentangled_inference` would multiply with one column a distance for nothing.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.nn.disentangled_tiles import against_table, documents_at_a_time, heads_first
from precis.nn.score_bias import DisentangledBias

_BLOCK = 256
# Scores at a time: 4 MB of fp32 stay in the cache.
_SCORES = 1 << 20


def attend_gathering(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
) -> Float[Tensor, "b h n e"]:
    """softmax(scale * q.k + position scores) @ v over the valid keys, of which every document has at least one."""
    batch, heads, length, _ = queries.shape
    index = bias.offsets.square(length, keys.device)
    mixed = torch.empty_like(heads_first(queries), memory_format=torch.contiguous_format)
    block = min(_BLOCK, length)
    for group in documents_at_a_time(batch=batch, per_document=heads * block * length, most=_SCORES):
        asking, asked, given = (heads_first(x[group]).contiguous() for x in (queries, keys, values))
        of_key = _products(asked, bias.position_queries)
        hidden = None if valid is None else _hidden(valid[group], keys.dtype)
        for start in range(0, length, block):
            rows = slice(start, start + block)
            of_query = _products(asking[:, :, rows], bias.position_keys)
            scores = _sum(of_query, of_key, index[rows], hidden)
            mixed[:, group, rows] = F.scaled_dot_product_attention(
                asking[:, :, rows], asked, given, attn_mask=scores, scale=scale
            )
    return mixed.transpose(0, 1)


def _products(
    states: Float[Tensor, "h b n e"], table: Float[Tensor, "h r e"] | None
) -> Float[Tensor, "h b n r"] | None:
    return None if table is None else against_table(states, table)


def _hidden(valid: Bool[Tensor, "b n"], dtype: torch.dtype) -> Float[Tensor, "b n"]:
    """Half the lowest number at padded keys, so that a score can be added to it."""
    lowest = torch.finfo(dtype).min / 2
    return torch.zeros(valid.shape, dtype=dtype, device=valid.device).masked_fill_(~valid, lowest)


def _sum(
    of_query: Float[Tensor, "h b i r"] | None,
    of_key: Float[Tensor, "h b n r"] | None,
    index: Int[Tensor, "i n"],
    hidden: Float[Tensor, "b n"] | None,
) -> Float[Tensor, "h b i n"]:
    """Each query's and each key's product with the row of their distance."""
    total: Tensor | None = None
    if of_query is not None:
        total = of_query.gather(-1, index.expand(*of_query.shape[:2], *index.shape))
    if of_key is not None:
        by_key = of_key.gather(-1, index.T.expand(*of_key.shape[:2], *index.T.shape)).transpose(-1, -2)
        total = by_key if total is None else total.add_(by_key)
    assert total is not None  # a bias has one of its tables
    return total if hidden is None else total.add_(hidden[:, None])
