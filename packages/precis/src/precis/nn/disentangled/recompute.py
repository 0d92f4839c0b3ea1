"""Disentangled attention for training: the backward pass recomputes scores, a block of rows at a time.

Memory grows with the length and not with its square, and no gradient is scattered: the numbers of one distance are
written along the same strided view that the forward pass reads, then one matmul sums them. Every run gives the same
numbers. Stored between the passes are inputs, output, and each row's log-sum-exp (as in FlashAttention, Dao et al.
2022, appendix B.4).
"""

from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from precis.nn.disentangled.bands import Attended, attend_in_bands, is_available
from precis.nn.disentangled.inputs import (
    Band,
    DocumentGroup,
    Operands,
    Tables,
    by_key,
    by_row,
    documents_at_a_time,
    exact,
    heads_first,
    key_columns,
    query_columns,
    strips,
    tiles,
)

_BLOCK = 128
_SCORES = 1 << 20


def attend_recomputing(operands: Operands) -> Float[Tensor, "b h n e"]:
    """Compute mixed values with gradients; every document must have a valid key."""
    # the options contain no tensor that a checkpoint frees
    mixed: Tensor = _Recomputing.apply(*operands.tensors, operands.options)
    return mixed


class _Recomputing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        operands = Operands(*inputs)
        ctx.options = operands.options
        ctx.seed = int(torch.randint(2**62, ())) if operands.options.dropout else 0
        attended = _forward(operands, ctx.seed)
        ctx.save_for_backward(*operands.tensors, attended.mixed, attended.lse)
        return attended.mixed.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, mixed, lse = ctx.saved_tensors
        operands = Operands(*[*tensors, ctx.options])
        return (*_backward(operands, ctx.seed, heads_first(gradient), Attended(mixed, lse)), None)


def _forward(operands: Operands, seed: int) -> Attended:
    dtype, device = operands.queries.dtype, operands.queries.device
    if dtype == exact(dtype) and not operands.options.dropout and device.type == "cpu" and is_available():
        return attend_in_bands(operands)
    tables = Tables.of(operands, block=_BLOCK)
    attended = Attended.empty(operands)
    for group in _groups(operands):
        documents = DocumentGroup.of(operands, group, tables, block=_BLOCK, seed=seed)
        for index, band in enumerate(documents.spans):
            scores = documents.scores(band)
            attended.lse[:, group, band.asking] = scores.logsumexp(-1)
            weights = torch.softmax(scores, dim=-1)
            by = documents.factors(index, band)
            if by is not None:
                weights.mul_(by)
            attended.mixed[:, group, band.asking] = weights.to(dtype) @ documents.values
    return attended


def _backward(
    operands: Operands, seed: int, gradient: Float[Tensor, "h b n e"], attended: Attended
) -> tuple[Tensor | None, ...]:
    """Compute gradients of the operands' tensors, in their order."""
    tables = Tables.of(operands, block=_BLOCK)
    total = Gradients.zeros(operands, tables)
    # D of FlashAttention's Eq. 4
    agreement = (gradient * attended.mixed).sum(-1, dtype=attended.lse.dtype)
    for group in _groups(operands):
        documents = DocumentGroup.of(operands, group, tables, block=_BLOCK, seed=seed)
        part = total.of_documents(group, documents.queries, documents.keys)
        for index, band in enumerate(documents.spans):
            given = gradient[:, group, band.asking].contiguous()
            weights = documents.scores(band)
            weights.sub_(attended.lse[:, group, band.asking, None]).exp_()
            by_weight = (given @ documents.values.transpose(-1, -2)).to(weights.dtype)
            by = documents.factors(index, band)
            if by is not None:
                by_weight.mul_(by)
            by_score = by_weight.sub_(agreement[:, group, band.asking, None]).mul_(weights)
            if documents.empty is not None:
                by_score.masked_fill_(documents.empty, 0.0)
            if by is not None:
                weights.mul_(by)
            part.add(band, by_score.to(given.dtype), weights.to(given.dtype), given)
        part.finish()
    return total.finished()


def _groups(operands: Operands) -> list[slice]:
    batch, heads, length, _ = operands.queries.shape
    per_document = heads * min(_BLOCK, length) * length
    return documents_at_a_time(batch=batch, per_document=per_document, most=_SCORES)


@final
@dataclass(frozen=True)
class Gradients:
    """Gradients of a whole batch; documents are added through `of_documents`. Sums are in at least fp32."""

    operands: Operands
    tables: Tables
    queries: Float[Tensor, "b h n e"]
    keys: Float[Tensor, "b h n e"]
    values: Float[Tensor, "b h n e"]
    c2p: Float[Tensor, "h o e"] | None  # by distance, as in `Tables`
    p2c: Float[Tensor, "h o e"] | None
    c2p_ends: Float[Tensor, "h 2 e"] | None
    p2c_ends: Float[Tensor, "h 2 e"] | None

    @classmethod
    def zeros(cls, operands: Operands, tables: Tables) -> "Gradients":
        def like(table: Tensor | None) -> Tensor | None:
            return None if table is None else torch.zeros_like(table, dtype=exact(table.dtype))

        ends = [
            None if table is None else like(table[:, tables.ends])
            for table in (operands.position_keys, operands.position_queries)
        ]
        return cls(
            operands, tables, c2p=like(tables.c2p), p2c=like(tables.p2c), c2p_ends=ends[0], p2c_ends=ends[1],
            **{name: torch.empty_like(operands.queries) for name in ("queries", "keys", "values")},
        )  # fmt: skip

    def of_documents(
        self, group: slice, asking: Float[Tensor, "h b n e"], asked: Float[Tensor, "h b n e"]
    ) -> "DocumentGradients":
        """Return sums for some rows of the batch, given their queries and keys."""
        kind = exact(asking.dtype)
        states = (torch.zeros_like(asking, dtype=kind) for _ in range(3))
        far = (asking.new_zeros(*asking.shape[:-1], 2, dtype=kind) for _ in range(2))
        return DocumentGradients(self, group, asking, asked, *states, *far)

    def finished(self) -> tuple[Tensor | None, ...]:
        """Return gradients of queries, keys, values, and the two tables by row."""
        rows, given = self.tables.rows, self.operands
        return (
            self.queries,
            self.keys,
            self.values,
            self._by_row(given.position_keys, self.c2p, rows, self.c2p_ends),
            self._by_row(given.position_queries, self.p2c, rows.flip(0), self.p2c_ends),
        )

    def _by_row(
        self, table: Tensor | None, by_distance: Tensor | None, rows: Tensor, ends: Tensor | None
    ) -> Tensor | None:
        """Sum the distances that share a row of the table."""
        if table is None or by_distance is None or ends is None:
            return None
        rows, by_distance = torch.cat([rows, self.tables.ends]), torch.cat([by_distance, ends], dim=1)
        if table.device.type == "cpu":
            total = torch.zeros_like(table, dtype=by_distance.dtype).index_add_(1, rows, by_distance)
        else:  # elsewhere index_add sums in any order, a matmul does not
            total = F.one_hot(rows, table.shape[1]).to(by_distance.dtype).T @ by_distance
        return total.to(table.dtype)


@final
@dataclass(frozen=True)
class DocumentGradients:
    """Gradients of a group of documents, heads first."""

    total: Gradients
    group: slice
    asking: Float[Tensor, "h b n e"]
    asked: Float[Tensor, "h b n e"]
    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    of_query: Float[Tensor, "h b n 2"]  # of far scores: past at index 0, future at index 1
    of_key: Float[Tensor, "h b n 2"]

    def add(
        self,
        band: Band,
        scores: Float[Tensor, "h b i n"],
        weights: Float[Tensor, "h b i n"],
        given: Float[Tensor, "h b i e"],
    ) -> None:
        """Add the gradients from a block's scores and weights, given the gradient of its output."""
        scale = self.total.operands.options.scale
        asking = self.asking[:, :, band.asking]
        _add_product(self.values, weights.transpose(-1, -2), given)
        _add_product(self.keys, scores.transpose(-1, -2), asking * scale)
        self.queries[:, :, band.asking] += (scores @ self.asked) * scale
        self._add_near(band, scores[..., band.first : band.last], asking)
        for side, keys in enumerate((slice(0, band.first), slice(band.last, scores.shape[-1]))):
            if keys.start < keys.stop:
                far = scores[..., keys]
                self.of_query[:, :, band.asking, side] += far.sum(-1, dtype=self.of_query.dtype)
                self.of_key[:, :, keys, side] += far.sum(-2, dtype=self.of_key.dtype)

    def _add_near(self, band: Band, scores: Float[Tensor, "h b i j"], asking: Tensor) -> None:
        total, tables = self.total, self.total.tables
        if tables.c2p is not None and total.c2p is not None:
            for strip in strips(band):
                columns = key_columns(tables, strip)
                rows = slice(strip.start - band.start, strip.stop - band.start)
                offsets = scores.new_zeros(*scores.shape[:2], strip.rows, strip.rows + strip.near - 1)
                by_row(offsets, strip.near).copy_(scores[:, :, rows])
                _add_table(offsets, tables.c2p[:, columns], self.queries[:, :, strip.asking])
                _add_over_documents(total.c2p[:, columns], offsets, asking[:, :, rows])
        if tables.p2c is None or total.p2c is None:
            return
        for first, last in tiles(band):
            columns = query_columns(tables, band, first, last)
            offsets = scores.new_zeros(*scores.shape[:2], last - first, band.rows + last - first - 1)
            by_key(offsets, band.rows).copy_(scores[..., first - band.first : last - band.first])
            _add_table(offsets, tables.p2c[:, columns], self.keys[:, :, first:last])
            _add_over_documents(total.p2c[:, columns], offsets, self.asked[:, :, first:last])

    def finish(self) -> None:
        """Distribute the sums over far keys, and write all sums to the whole batch's gradients."""
        total, ends = self.total, self.total.tables.ends
        for table, far, states, out, by_end in (
            (total.operands.position_keys, self.of_query, self.asking, self.queries, total.c2p_ends),
            (total.operands.position_queries, self.of_key, self.asked, self.keys, total.p2c_ends),
        ):
            if table is not None and by_end is not None:
                _add_table(far.to(table.dtype), table[:, ends], out)
                _add_over_documents(by_end, far.to(states.dtype), states)
        for whole, part in (
            (total.queries, self.queries),
            (total.keys, self.keys),
            (total.values, self.values),
        ):
            whole[self.group] = part.transpose(0, 1)


def _add_table(offsets: Float[Tensor, "h b n o"], table: Float[Tensor, "h o e"], out: Tensor) -> None:
    """Add offsets @ table to `out`, one matmul per head for all documents."""
    out += torch.bmm(offsets.flatten(1, 2), table).view(out.shape)


def _add_product(out: Float[Tensor, "h b i e"], left: Tensor, right: Tensor) -> None:
    """Add left @ right to `out` for every head and document."""
    if out.dtype == left.dtype:
        out.flatten(0, 1).baddbmm_(left.flatten(0, 1), right.flatten(0, 1))
    else:
        out += left @ right


def _add_over_documents(
    out: Float[Tensor, "h o e"], offsets: Float[Tensor, "h b n o"], states: Float[Tensor, "h b n e"]
) -> None:
    """Add offsets^T @ states to `out`, summed over documents and positions."""
    out += torch.bmm(offsets.flatten(1, 2).transpose(-1, -2), states.flatten(1, 2))
