"""Sums of gradients of disentangled attention, a block of query rows at a time. See `disentangled_training`."""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from precis.nn.disentangled.tiles import (
    Band,
    Tables,
    by_key,
    by_row,
    key_columns,
    query_columns,
    strips,
    tiles,
)
from precis.nn.score_bias import DisentangledBias


@final
@dataclass(frozen=True)
class Gradients:
    """Of the whole batch; documents are added through `of_documents`. Sums are kept in at least fp32."""

    queries: Float[Tensor, "b h n e"]
    keys: Float[Tensor, "b h n e"]
    values: Float[Tensor, "b h n e"]
    c2p: Float[Tensor, "h o e"] | None  # by distance, as in `Tables`
    p2c: Float[Tensor, "h o e"] | None
    c2p_ends: Float[Tensor, "h 2 e"] | None
    p2c_ends: Float[Tensor, "h 2 e"] | None
    tables: Tables

    @classmethod
    def zeros(cls, queries: Tensor, bias: DisentangledBias, tables: Tables) -> "Gradients":
        def like(table: Tensor | None) -> Tensor | None:
            return None if table is None else torch.zeros_like(table, dtype=_exact(table.dtype))

        ends = queries.new_zeros(queries.shape[1], 2, queries.shape[-1])
        return cls(
            queries=torch.empty_like(queries),
            keys=torch.empty_like(queries),
            values=torch.empty_like(queries),
            c2p=like(tables.c2p),
            p2c=like(tables.p2c),
            c2p_ends=like(ends) if bias.position_keys is not None else None,
            p2c_ends=like(ends) if bias.position_queries is not None else None,
            tables=tables,
        )

    def of_documents(
        self, group: slice, queries: Float[Tensor, "h b n e"], keys: Float[Tensor, "h b n e"], tables: Tables
    ) -> "DocumentGradients":
        """Sums for some rows of the batch."""
        kind = _exact(queries.dtype)
        far = queries.new_zeros(*queries.shape[:-1], 2, dtype=kind)
        return DocumentGradients(
            total=self,
            group=group,
            asking=queries,
            asked=keys,
            queries=torch.zeros_like(queries, dtype=kind),
            keys=torch.zeros_like(queries, dtype=kind),
            values=torch.zeros_like(queries, dtype=kind),
            of_query=far,
            of_key=far.clone(),
            tables=tables,
        )

    def finished(self, bias: DisentangledBias) -> tuple[Tensor | None, ...]:
        """Of queries, keys, values, and the two tables by row."""
        rows = self.tables.rows
        return (
            self.queries,
            self.keys,
            self.values,
            _by_row(bias.position_keys, self.c2p, rows, self.c2p_ends, self.tables),
            _by_row(bias.position_queries, self.p2c, rows.flip(0), self.p2c_ends, self.tables),
        )


def _by_row(
    table: Tensor | None, by_distance: Tensor | None, rows: Tensor, ends: Tensor | None, tables: Tables
) -> Tensor | None:
    """Distances that share a row of the table are summed."""
    if table is None or by_distance is None or ends is None:
        return None
    rows, by_distance = torch.cat([rows, tables.ends]), torch.cat([by_distance, ends], dim=1)
    if table.device.type == "cpu":
        total = torch.zeros_like(table, dtype=by_distance.dtype).index_add_(1, rows, by_distance)
    else:  # elsewhere index_add adds in any order, a matmul does not
        total = F.one_hot(rows, table.shape[1]).to(by_distance.dtype).T @ by_distance
    return total.to(table.dtype)


@final
@dataclass(frozen=True, kw_only=True)
class DocumentGradients:
    """Of some documents, heads first."""

    total: Gradients
    group: slice
    asking: Float[Tensor, "h b n e"]
    asked: Float[Tensor, "h b n e"]
    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    of_query: Float[Tensor, "h b n 2"]  # far scores, as in `FarScores`
    of_key: Float[Tensor, "h b n 2"]
    tables: Tables

    def add(
        self,
        band: Band,
        scores: Float[Tensor, "h b i n"],
        weights: Float[Tensor, "h b i n"],
        given: Float[Tensor, "h b i e"],
        scale: float,
    ) -> None:
        """Add what a block's scores and weights say, given the gradient of its output."""
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
        if self.tables.c2p is not None and self.total.c2p is not None:
            for strip in strips(band):
                columns = key_columns(self.tables, strip)
                rows = slice(strip.start - band.start, strip.stop - band.start)
                offsets = scores.new_zeros(*scores.shape[:2], strip.rows, strip.rows + strip.near - 1)
                by_row(offsets, strip.near).copy_(scores[:, :, rows])
                self._add_table(offsets, self.tables.c2p[:, columns], self.queries[:, :, strip.asking])
                _add_over_documents(self.total.c2p[:, columns], offsets, asking[:, :, rows])
        if self.tables.p2c is None or self.total.p2c is None:
            return
        for first, last in tiles(band):
            columns = query_columns(self.tables, band, first, last)
            asked = self.asked[:, :, first:last]
            offsets = scores.new_zeros(*scores.shape[:2], last - first, band.rows + last - first - 1)
            by_key(offsets, band.rows).copy_(scores[..., first - band.first : last - band.first])
            self._add_table(offsets, self.tables.p2c[:, columns], self.keys[:, :, first:last])
            _add_over_documents(self.total.p2c[:, columns], offsets, asked)

    @staticmethod
    def _add_table(offsets: Float[Tensor, "h b n o"], table: Float[Tensor, "h o e"], out: Tensor) -> None:
        """out += offsets @ table, one matmul a head for all documents."""
        out += torch.bmm(offsets.flatten(1, 2), table).view(out.shape)

    def finish(self, bias: DisentangledBias) -> None:
        """Spread the sums over far keys, and put everything into the whole batch's gradients."""
        ends = self.tables.ends
        for table, far, states, out, by_end in (
            (bias.position_keys, self.of_query, self.asking, self.queries, self.total.c2p_ends),
            (bias.position_queries, self.of_key, self.asked, self.keys, self.total.p2c_ends),
        ):
            if table is not None and by_end is not None:
                self._add_table(far.to(table.dtype), table[:, ends], out)
                _add_over_documents(by_end, far.to(states.dtype), states)
        for whole, part in (
            (self.total.queries, self.queries),
            (self.total.keys, self.keys),
            (self.total.values, self.values),
        ):
            whole[self.group] = part.transpose(0, 1)


def _add_product(out: Float[Tensor, "h b i e"], left: Tensor, right: Tensor) -> None:
    """out += left @ right for every head and document."""
    if out.dtype == left.dtype:
        out.flatten(0, 1).baddbmm_(left.flatten(0, 1), right.flatten(0, 1))
    else:
        out += left @ right


def _add_over_documents(
    out: Float[Tensor, "h o e"], offsets: Float[Tensor, "h b n o"], states: Float[Tensor, "h b n e"]
) -> None:
    """out += offsets^T @ states, summed over documents and positions."""
    out += torch.bmm(offsets.flatten(1, 2).transpose(-1, -2), states.flatten(1, 2))


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
