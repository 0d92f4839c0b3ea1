"""The operands of disentangled attention, in one record for all paths; and its position scores for a block of query
rows, without a gather.

Distances along a row are consecutive, so a matmul with the table's rows in order of distance gives all
required scores, shifted by one from row to row; reading the result with another stride undoes the shift. Keys
beyond the table's reach ("far") share one row on each side (`OffsetRows.ends`): for them content-to-position is
one number per query and position-to-content one number per key.

Heads come first inside (h b n e): the rows of all documents then share one matmul with a head's table.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.nn.dropout import factors
from precis.nn.relative_positions import OffsetRows

# States per matmul with a table: more of them cost unused columns, fewer cost calls.
_TILE = 64


@final
@dataclass(frozen=True)
class Options:
    """The operands without gradients.

    Attributes:
        offsets: the table row of each distance.
        valid: True at the keys of real tokens; None if all are real.
        scale: factor of the dot products of queries and keys; the tables are scaled already.
        dropout: probability of dropping a weight.
    """

    offsets: OffsetRows
    valid: Bool[Tensor, "b n"] | None
    scale: float
    dropout: float


@final
@dataclass(frozen=True)
class Operands:
    """The operands of softmax(scale * q.k + position scores) @ v.

    Attributes:
        position_keys, position_queries: tables for content-to-position and position-to-content; None omits that part.
    """

    queries: Float[Tensor, "b h n e"]
    keys: Float[Tensor, "b h n e"]
    values: Float[Tensor, "b h n e"]
    position_keys: Float[Tensor, "h r e"] | None
    position_queries: Float[Tensor, "h r e"] | None
    options: Options

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that may have a gradient."""
        return self.queries, self.keys, self.values, self.position_keys, self.position_queries

    @property
    def is_learning(self) -> bool:
        """True if a gradient is required."""
        return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in self.tensors)

    @property
    def is_of_one_type(self) -> bool:
        """True if all tensors have the dtype of the queries."""
        return all(x is None or x.dtype == self.queries.dtype for x in self.tensors)

    def heads_first(self, group: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (h b n e) of some documents, contiguous."""
        queries, keys, values = (
            heads_first(x[group]).contiguous() for x in (self.queries, self.keys, self.values)
        )
        return queries, keys, values


def heads_first(states: Float[Tensor, "b h n e"]) -> Float[Tensor, "h b n e"]:
    return states.transpose(0, 1)


def exact(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of sums: at least fp32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@final
@dataclass(frozen=True)
class Tables:
    """The position tables by distance: column `reach + d` of the ascending one belongs to distance d = query - key.

    Args:
        c2p: keys of positions, distances descending (a row of scores runs over keys from left to right).
        p2c: queries of positions, distances ascending.
        rows: table row of each distance, descending.
        ends: table rows of the far past and the far future.
    """

    c2p: Float[Tensor, "h o e"] | None
    p2c: Float[Tensor, "h o e"] | None
    rows: Int[Tensor, " o"]
    ends: Int[Tensor, " 2"]
    reach: int

    @classmethod
    def of(cls, operands: Operands, *, block: int) -> "Tables":
        """Collect every distance that a block of `block` query rows needs."""
        length, device = operands.keys.shape[-2], operands.keys.device
        offsets = operands.options.offsets
        reach = min(length - 1, offsets.buckets.saturation + block - 2)
        rows = offsets.descending(reach, device)
        keys, queries = operands.position_keys, operands.position_queries
        return cls(
            c2p=keys[:, rows] if keys is not None else None,
            p2c=queries[:, rows.flip(0)] if queries is not None else None,
            rows=rows,
            ends=offsets.ends(device),
            reach=reach,
        )


@final
@dataclass(frozen=True)
class Band:
    """Query rows `start` to `stop` and the keys `first` to `last` that are near some of them; all others are far."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    @property
    def near(self) -> int:
        return self.last - self.first

    @property
    def asking(self) -> slice:
        """The query rows."""
        return slice(self.start, self.stop)


def bands(length: int, *, block: int, saturation: int) -> list[Band]:
    """Cut a sequence into blocks."""
    return [
        Band(
            start,
            min(start + block, length),
            max(0, start - saturation + 1),
            min(length, start + block - 1 + saturation),
        )
        for start in range(0, length, block)
    ]


def tiles(band: Band) -> list[tuple[int, int]]:
    """Cut the near keys into pieces."""
    return [(k, min(k + _TILE, band.last)) for k in range(band.first, band.last, _TILE)]


def strips(band: Band) -> list[Band]:
    """Cut the rows into pieces, with the same near keys."""
    starts = range(band.start, band.stop, _TILE)
    return [Band(start, min(start + _TILE, band.stop), band.first, band.last) for start in starts]


def room_for(spans: list[Band]) -> int:
    """Return the maximum size of a product with a table, per head and document, over these bands."""
    widest = max(max(band.near, band.rows) for band in spans)
    tallest = min(_TILE, widest)
    return tallest * (widest + tallest - 1)


def key_columns(tables: Tables, band: Band) -> slice:
    """Return the distances between the band's rows and its near keys, in the descending table."""
    first = tables.reach - (band.stop - 1 - band.first)
    return slice(first, first + band.rows + band.near - 1)


def query_columns(tables: Tables, band: Band, first: int, last: int) -> slice:
    """Return the distances between the band's rows and the keys `first` to `last`, in the ascending table."""
    lowest = tables.reach + band.start - (last - 1)
    return slice(lowest, lowest + band.rows + (last - first) - 1)


def by_row(offsets: Float[Tensor, "h b i o"], near: int) -> Float[Tensor, "h b i j"]:
    """View element (i, j) as column j + (rows - 1 - i): scores of a row's keys by descending distance."""
    heads, batch, rows, columns = offsets.shape
    return offsets.as_strided(
        (heads, batch, rows, near),
        (*offsets.stride()[:2], columns - 1, 1),
        offsets.storage_offset() + rows - 1,
    )


def by_key(offsets: Float[Tensor, "h b j o"], rows: int) -> Float[Tensor, "h b i j"]:
    """View element (i, j) as column i + (keys - 1 - j) of key j: scores of a key's queries by ascending distance."""
    heads, batch, keys, columns = offsets.shape
    return offsets.as_strided(
        (heads, batch, rows, keys),
        (*offsets.stride()[:2], 1, columns - 1),
        offsets.storage_offset() + keys - 1,
    )


def against_table(
    states: Float[Tensor, "h b n e"],
    table: Float[Tensor, "h o e"],
    room: Float[Tensor, " room"] | None = None,
) -> Float[Tensor, "h b n o"]:
    """Compute dot products of all documents' states with a table, one matmul per head.

    Args:
        room: memory for the products; if None, it is allocated. Allocating some MB can cost as much as
            filling them: the system maps the pages one by one.
    """
    heads, batch, count, width = states.shape
    flat, columns = states.reshape(heads, batch * count, width), table.shape[1]
    if room is None:
        product = torch.bmm(flat, table.transpose(-1, -2))
    else:
        product = room[: flat.shape[0] * flat.shape[1] * columns].view(heads, -1, columns)
        torch.bmm(flat, table.transpose(-1, -2), out=product)
    return product.view(heads, batch, count, columns)


def near_scores(
    queries: Float[Tensor, "h b n e"],
    keys: Float[Tensor, "h b n e"],
    tables: Tables,
    band: Band,
    out: Float[Tensor, "h b i j"],
    room: Float[Tensor, " room"] | None = None,
) -> None:
    """Write position scores of the band's rows and near keys to `out`.

    Args:
        room: memory for one product at a time, `room_for` numbers per head and document; if None, it is allocated.
    """
    if tables.c2p is not None:
        for strip in strips(band):
            table = tables.c2p[:, key_columns(tables, strip)]
            offsets = against_table(queries[:, :, strip.asking], table, room)
            out[:, :, strip.start - band.start : strip.stop - band.start].copy_(by_row(offsets, band.near))
    else:
        out.zero_()
    if tables.p2c is not None:
        for first, last in tiles(band):
            table = tables.p2c[:, query_columns(tables, band, first, last)]
            offsets = against_table(keys[:, :, first:last], table, room)
            out[..., first - band.first : last - band.first].add_(by_key(offsets, band.rows))


def documents_at_a_time(*, batch: int, per_document: int, most: int) -> list[slice]:
    """Group a batch so that scores stay in the processor's cache: at most `most` numbers, at least one document."""
    size = max(1, most // per_document)
    return [slice(start, min(start + size, batch)) for start in range(0, batch, size)]


@final
@dataclass(frozen=True, kw_only=True)
class DocumentGroup:
    """A group of documents, heads first. Far scores have the past at index 0 and the future at index 1."""

    queries: Float[Tensor, "h b n e"]
    keys: Float[Tensor, "h b n e"]
    values: Float[Tensor, "h b n e"]
    far_of_query: Float[Tensor, "h b n 2"] | None
    far_of_key: Float[Tensor, "h b n 2"] | None
    tables: Tables
    hidden: Bool[Tensor, "b 1 n"] | None
    empty: Bool[Tensor, "b 1 1"] | None  # documents without a token: all keys have equal weight
    spans: list[Band]
    scratch: Float[Tensor, " numbers"]
    room: Float[Tensor, " room"]
    options: Options
    seed: int

    @classmethod
    def of(
        cls, operands: Operands, group: slice, tables: Tables, *, block: int, seed: int = 0
    ) -> "DocumentGroup":
        """Prepare the documents of a group, in blocks of `block` rows."""
        queries, keys, values = operands.heads_first(group)
        heads, batch, length, _ = keys.shape
        options, c2p, p2c = operands.options, operands.position_keys, operands.position_queries
        spans = bands(length, block=block, saturation=options.offsets.buckets.saturation)
        if all(band.near == length for band in spans):
            c2p = p2c = None  # no key is far
        valid = options.valid[group] if options.valid is not None else None
        return cls(
            queries=queries,
            keys=keys,
            values=values,
            far_of_query=against_table(queries, c2p[:, tables.ends]) if c2p is not None else None,
            far_of_key=against_table(keys, p2c[:, tables.ends]) if p2c is not None else None,
            tables=tables,
            hidden=None if valid is None else ~valid[:, None, :],
            # already checked on the CPU, where the check is free
            empty=None if valid is None or valid.device.type == "cpu" else ~valid.any(-1)[:, None, None],
            spans=spans,
            scratch=keys.new_empty(heads * batch * min(block, length) * length),
            room=keys.new_empty(heads * batch * room_for(spans)),
            options=options,
            seed=seed + group.start * len(spans),
        )

    def scores(self, band: Band) -> Float[Tensor, "h b i n"]:
        """Compute all scores of a block of rows, in at least fp32. The next call reuses the tensor."""
        heads, batch, length, _ = self.keys.shape
        scores = self.scratch[: heads * batch * band.rows * length].view(heads, batch, band.rows, length)
        near = scores[..., band.first : band.last]
        near_scores(self.queries, self.keys, self.tables, band, near, self.room)
        for side, (first, last) in enumerate(((0, band.first), (band.last, length))):
            if first < last:
                self._far_scores(band, side, slice(first, last), scores[..., first:last])
        asking = self.queries[:, :, band.asking] * self.options.scale
        flat = scores.view(heads * batch, band.rows, length)
        flat.baddbmm_(asking.flatten(0, 1), self.keys.flatten(0, 1).transpose(-1, -2))
        scores = scores.to(exact(scores.dtype))
        if self.hidden is not None:
            scores.masked_fill_(self.hidden, torch.finfo(scores.dtype).min)
        if self.empty is not None:
            scores.masked_fill_(self.empty, 0.0)
        return scores

    def _far_scores(self, band: Band, side: int, keys: slice, out: Tensor) -> None:
        of_query, of_key = self.far_of_query, self.far_of_key
        if of_query is not None:
            out.copy_(of_query[:, :, band.asking, side, None].expand_as(out))
            if of_key is not None:
                out.add_(of_key[:, :, None, keys, side])
        elif of_key is not None:
            out.copy_(of_key[:, :, None, keys, side].expand_as(out))

    def factors(self, index: int, band: Band) -> Float[Tensor, "h b i n"] | None:
        """Return dropout's factors of the weights, the same in both passes; None without dropout."""
        if not self.options.dropout:
            return None
        heads, batch, length, _ = self.keys.shape
        return factors(
            (heads, batch, band.rows, length),
            self.options.dropout,
            dtype=exact(self.keys.dtype),
            device=self.keys.device,
            generator=torch.Generator(self.keys.device).manual_seed(self.seed + index),
        )
