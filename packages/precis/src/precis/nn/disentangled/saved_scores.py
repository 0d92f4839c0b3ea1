"""Disentangled attention for training that stores n x n tensors: the faster path if memory allows it.

`attend_keeping` is for up to a thousand tokens on the CPU, where recomputing the scores costs more than keeping the
weights. It keeps no other tensor of that size. Position scores are products with the table's rows in order of distance,
shifted into place (`inputs`), and their gradients use the reverse shift: nothing is gathered or scattered.

`attend_openly` is for other devices without a fused kernel. On a GPU the time is spent in passes over
n x n tensors, and this path makes fewer of them than transformers' eager DeBERTa-v2: forward and backward together move
85% of its bytes at 1,100 tokens, 76% at 512 in bf16, and less below (counted by a test). Queries and keys are
multiplied with a table row for each distance, and a strided view reads the scores of a pair from the products:
nothing is gathered or scaled twice, the matmul itself adds the content's products, and padding
is filled in place. In the backward pass gradients are written along the same view and summed by matmuls. transformers
adds the numbers to their places one by one, in a different order in every run, most of them to the two rows shared by
all far keys. The price is products with 2n rows instead of the table's: up to three times the multiplications of
attention without positions, which a GPU does faster than it reads the tensors that they replace.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.disentangled.inputs import DocumentGroup, Operands, Tables, documents_at_a_time, heads_first
from precis.nn.disentangled.recompute import Gradients
from precis.nn.dropout import dropout as drop
from precis.nn.dropout import factors

# Scores at a time: 4 MB of fp32 stay in the cache.
_SCORES = 1 << 20
_GAP = 16
# Columns are a multiple of this: matmuls prefer rows of 16 bytes.
_COLUMNS = 8


def attend_keeping(operands: Operands) -> Float[Tensor, "b h n e"]:
    """Compute mixed values with gradients; every document must have a valid key."""
    mixed: Tensor = _Keeping.apply(*operands.tensors, operands.options)
    return mixed


class _Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        operands = Operands(*inputs)
        rate = operands.options.dropout
        tables = Tables.of(operands, block=operands.keys.shape[-2])
        mixed = torch.empty_like(heads_first(operands.queries), memory_format=torch.contiguous_format)
        kept: list[Tensor] = []
        for group, documents in _documents(operands, tables):
            weights = torch.softmax(documents.scores(documents.spans[0]), dim=-1)
            kept.append(weights)
            if rate:
                by = factors(weights.shape, rate, dtype=weights.dtype, device=weights.device)
                kept.append(by)
                weights = weights * by
            mixed[:, group] = weights.to(mixed.dtype) @ documents.values
        ctx.options = operands.options
        ctx.save_for_backward(*operands.tensors, mixed, *kept)
        return mixed.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # read once: checkpointing allows no more
        *tensors, mixed = saved[:6]
        kept = iter(saved[6:])
        operands = Operands(*[*tensors, ctx.options])
        tables = Tables.of(operands, block=operands.keys.shape[-2])
        total = Gradients.zeros(operands, tables)
        for group, documents in _documents(operands, tables):
            given = heads_first(gradient[group]).contiguous()
            agreement = (given * mixed[:, group]).sum(-1, keepdim=True)
            weights = next(kept)
            by_weight = _product(given, documents.values).to(weights.dtype)
            used = weights
            if ctx.options.dropout:
                by = next(kept)
                by_weight.mul_(by)
                used = weights * by
            by_score = by_weight.sub_(agreement).mul_(weights).to(given.dtype)
            part = total.of_documents(group, documents.queries, documents.keys)
            part.add(documents.spans[0], by_score, used.to(given.dtype), given)
            part.finish()
        return (*total.finished(), None)


def _documents(operands: Operands, tables: Tables) -> Iterator[tuple[slice, DocumentGroup]]:
    """Yield groups of documents, with all rows and keys as one near band, whatever the table's reach."""
    batch, heads, length, _ = operands.queries.shape
    for group in documents_at_a_time(batch=batch, per_document=heads * length * length, most=_SCORES):
        yield group, DocumentGroup.of(operands, group, tables, block=length)


def _product(given: Float[Tensor, "h b n e"], values: Float[Tensor, "h b n e"]) -> Float[Tensor, "h b n n"]:
    """Return given @ values^T, with a gap after each row: otherwise, read column by column, rows a power of two apart
    would share the same few places of the processor's cache."""
    heads, batch, length, _ = given.shape
    out = given.new_empty(heads, batch, length, length + _GAP)[..., :length]
    torch.bmm(given.flatten(0, 1), values.flatten(0, 1).transpose(-1, -2), out=out.flatten(0, 1))
    return out


def attend_openly(operands: Operands) -> Float[Tensor, "b h n e"]:
    """Compute mixed values with gradients; a document of only padding gives the mean of its values."""
    options = operands.options
    batch, heads, length, _ = operands.queries.shape
    asking, asked, mixing = (heads_first(x) for x in (operands.queries, operands.keys, operands.values))
    rows = options.offsets.descending(length - 1, asked.device)  # of the distances n-1, n-2, ..., -(n-1)
    of_keys = _for_distances(operands.position_keys, rows)
    of_queries = _for_distances(operands.position_queries, rows.flip(0))
    # one axis for heads and documents: writing to a view of the scores would need a copy in the backward pass
    scores: Tensor = _PositionScores.apply(asking, asked, of_keys, of_queries)
    scores.baddbmm_((asking * options.scale).flatten(0, 1), asked.flatten(0, 1).transpose(1, 2))
    if options.valid is not None:
        hidden = ~options.valid.repeat(heads, 1)[:, None]  # (h*b 1 n)
        scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
    weights = drop(scores.softmax(-1), options.dropout, training=options.dropout > 0.0)
    return torch.bmm(weights, mixing.flatten(0, 1)).unflatten(0, (heads, batch)).transpose(0, 1)


def _for_distances(
    table: Float[Tensor, "h r e"] | None, rows: Int[Tensor, " o"]
) -> Float[Tensor, "h _ e"] | None:
    """Return a row for each distance, and unused rows up to a multiple of `_COLUMNS`."""
    if table is None:
        return None
    return table[:, torch.cat([rows, rows[-1:].expand(-len(rows) % _COLUMNS)])]


class _PositionScores(torch.autograd.Function):
    """Both position scores, or the one with a table, of all heads and documents: (h*b n n)."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Float[Tensor, "h b n e"],
        keys: Float[Tensor, "h b n e"],
        of_keys: Float[Tensor, "h o e"] | None,
        of_queries: Float[Tensor, "h o e"] | None,
    ) -> Float[Tensor, "c n n"]:
        ctx.save_for_backward(queries, keys, of_keys, of_queries)
        parts = []
        if of_keys is not None:
            parts.append(_in_columns(_by_distance(queries, of_keys)))
        if of_queries is not None:
            parts.append(_in_columns(_by_distance(keys, of_queries)).transpose(1, 2))
        return (
            parts[0] + parts[1] if len(parts) == 2 else parts[0].clone(memory_format=torch.contiguous_format)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Float[Tensor, "c n n"]) -> tuple[Tensor | None, ...]:
        queries, keys, of_keys, of_queries = ctx.saved_tensors
        by_query, by_of_keys = _gradients(queries, of_keys, gradient)
        by_key, by_of_queries = _gradients(keys, of_queries, gradient.transpose(1, 2))
        return by_query, by_key, by_of_keys, by_of_queries


def _gradients(
    states: Float[Tensor, "h b n e"], table: Float[Tensor, "h o e"] | None, gradient: Float[Tensor, "c n n"]
) -> tuple[Tensor | None, Tensor | None]:
    """Compute gradients of states and table."""
    if table is None:
        return None, None
    heads, _, length, _ = states.shape
    by_distance = gradient.new_zeros(len(gradient), length, table.shape[1])
    _in_columns(by_distance).copy_(gradient)
    flat = by_distance.view(heads, -1, table.shape[1])  # (h b*n o)
    return torch.bmm(flat, table).view(states.shape), torch.bmm(flat.transpose(1, 2), states.flatten(1, 2))


def _by_distance(states: Float[Tensor, "h b n e"], table: Float[Tensor, "h o e"]) -> Float[Tensor, "c n o"]:
    """Compute products of all states with all rows, the documents of a head in one matmul."""
    return torch.bmm(states.flatten(1, 2), table.transpose(1, 2)).view(-1, states.shape[2], table.shape[1])


def _in_columns(by_distance: Float[Tensor, "c n o"]) -> Float[Tensor, "c n n"]:
    """View out[i, j] = by_distance[i, j - i + n - 1], which has index i * (o - 1) + j + n - 1 in the flat tensor."""
    count, length, columns = by_distance.shape
    size, strides = (count, length, length), (length * columns, columns - 1, 1)
    return by_distance.as_strided(size, strides, length - 1)
