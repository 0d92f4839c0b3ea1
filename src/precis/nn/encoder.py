"""The encoder stack: DeBERTa layers run under a layer plan.

Fusion-in-encoder: runs of `Local` layers work on chunks cut by position, `Global` layers on the whole sequence; only
relative positions, no extra tokens. An input of one chunk goes through exactly as in the plain encoder. Batches that
are padded by more than a twentieth are packed (`packed.py`): the padding is not computed, and comes back as zeros.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from precis.errors import UserError
from precis.nn.attention_weights import AttentionWeights
from precis.nn.blocks import ACTIVATIONS, EncoderLayer
from precis.nn.dropout import Dropout
from precis.nn.layer_plan import Global, LayerPlan, Local, runs
from precis.nn.layer_stack import LayerStack
from precis.nn.masks import padding_mask
from precis.nn.packed import Packing
from precis.nn.padding import host_mask, is_traced, sent
from precis.nn.prefix import StackPrefix
from precis.nn.relative_positions import HeadTable, LogBuckets, OffsetRows, PositionTable, TwoWayBuckets

Observer = Callable[[Float[Tensor, "b s d"]], None]


class RelativePositionEmbedding(nn.Module):
    """One table for all layers; layer-normalised when `norm_eps` is given, with dropout at each use."""

    def __init__(self, buckets: LogBuckets, width: int, *, norm_eps: float | None, dropout: float) -> None:
        super().__init__()
        self.buckets = buckets
        self.rows = nn.Embedding(buckets.rows, width)
        self.norm = nn.LayerNorm(width, eps=norm_eps) if norm_eps is not None else None
        self.dropout = Dropout(dropout)

    def normed(self) -> Float[Tensor, "r d"]:
        """The table before a layer's dropout."""
        return self.norm(self.rows.weight) if self.norm is not None else self.rows.weight

    def for_layer(self, table: Float[Tensor, "r d"], offsets: OffsetRows | None = None) -> PositionTable:
        """The table as one layer sees it: its own dropout."""
        return PositionTable(table=self.dropout(table), buckets=self.buckets, offsets=offsets)


class BucketedPositionEmbedding(nn.Module):
    """T5's table of scores for all layers, in the place of disentangled attention's."""

    def __init__(self, buckets: TwoWayBuckets, heads: int) -> None:
        super().__init__()
        self.buckets = buckets
        self.rows = nn.Embedding(buckets.rows, heads)

    def normed(self) -> Float[Tensor, "r h"]:
        """The table as it is."""
        return self.rows.weight

    def for_layer(self, table: Float[Tensor, "r h"], offsets: OffsetRows | None = None) -> HeadTable:
        """The table as one layer sees it; `offsets` is for the other kind."""
        return HeadTable(table=table, buckets=self.buckets)


class NgramConvolution(nn.Module):
    """DeBERTa-v2's n-gram induced input encoding: LN(layer 0's output + act(dropout(conv(embeddings))))."""

    def __init__(
        self, width: int, *, kernel: int, groups: int, activation: str, norm_eps: float, dropout: float
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, kernel, padding=(kernel - 1) // 2, groups=groups)
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(
        self,
        embedded: Float[Tensor, "b n d"],
        first_layer: Float[Tensor, "b n d"],
        valid: Bool[Tensor, "b n"],
    ) -> Float[Tensor, "b n d"]:
        mixed = self.convolution(embedded.transpose(1, 2)).transpose(1, 2)
        mixed = mixed.masked_fill(~valid[..., None], 0.0)
        return self.norm(first_layer + self.activation(self.dropout(mixed))) * valid[..., None]


class Encoder(LayerStack):
    """Layers, their shared position table, and the plan that says what each layer sees."""

    def __init__(
        self,
        layers: list[EncoderLayer],
        *,
        plan: LayerPlan,
        positions: RelativePositionEmbedding | BucketedPositionEmbedding | None,
        convolution: NgramConvolution | None = None,
    ) -> None:
        super().__init__()
        if len(plan) != len(layers):
            raise ValueError(f"the layer plan names {len(plan)} layers, the encoder has {len(layers)}")
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.convolution = convolution
        self.plan = plan

    def self_attentions(self) -> tuple[nn.Module, ...]:
        """Each layer's self-attention."""
        return tuple(layer.get_submodule("attention") for layer in self.layers)

    def cross_attentions(self) -> tuple[nn.Module, ...]:
        """None: an encoder reads no other text."""
        return ()

    def forward(
        self,
        states: Float[Tensor, "b s d"],
        valid: Bool[Tensor, "b s"],
        *,
        padded: bool | None = None,
        lengths: Sequence[int] | None = None,
        prefix: StackPrefix | None = None,
        observe: Observer | None = None,
        weights: AttentionWeights | None = None,
    ) -> Float[Tensor, "b s d"]:
        """Encode.

        Compiled layers see padded batches: a packed one has groups of its own, which would be compiled anew.

        Args:
            padded, lengths: whether some of `valid` is False, or how many positions of each row are True, from the
                first on. Where neither is given `valid` is looked at, for which a GPU is waited for.
            states: embedded tokens, zero where padded.
            valid: True at real tokens.
            prefix: keys and values before those of the tokens; local layers have it in every chunk.
            observe: called with the states after each layer, whole sequences again.
            weights: where to write down what each attention did; costs the fast paths.

        Raises:
            UserError: padding on the left is no multiple of a chunk, so that chunks would be cut elsewhere.
            ValueError: `lengths` do not fit the batch.
        """
        traced = is_traced()
        seen = None if traced else host_mask(valid, padded=padded, lengths=lengths)
        _refuse_shifted_chunks(seen, self.plan)
        positions = self._positions(states)
        for scope, indices in runs(self.plan):
            packs = prefix is None and weights is None and not self.compiled and not traced
            packing = Packing.of(valid, scope, seen=seen) if packs else None
            if packing is not None:
                states = self._run_packed(states, packing, indices, positions, observe)
                continue
            cut = (
                Chunks.cut_all(valid, scope, padded=padded is not False)
                if traced
                else Chunks.cut(valid, scope, seen=seen)
            )
            states = cut.split(states)
            # no mask at all where nothing is padded: the fused kernels are faster without one
            mask = padding_mask(cut.valid) if cut.padded else None
            first = prefix.cut(cut.split) if prefix is not None else None
            self.expect_other_sizes(states, mask)
            for index in indices:
                columns = first.layer(index).self_attention if first is not None else None
                if weights is not None:
                    attention = self.layers[index].get_submodule("attention")
                    columns = weights.of_layer(index, columns, attention, cut.whole_weights)
                output = self.run_layer(self.layers[index], states, mask, positions(), prefix=columns)
                states = self._convolved(index, states, output, cut.valid)
                if observe is not None:
                    whole = cut.join(states)
                    observe(whole)
                    states = cut.split(whole)  # through what was observed, for gradients to reach it
            states = cut.join(states)
        return states

    def _run_packed(
        self,
        states: Float[Tensor, "b s d"],
        packing: Packing,
        indices: range,
        positions: Callable[[], PositionTable | HeadTable | None],
        observe: Observer | None,
    ) -> Float[Tensor, "b s d"]:
        """Neighbouring layers of one scope on tokens without their padding, which comes back as zeros."""
        batch, length, _ = states.shape
        tokens = packing.pack(states)
        for index in indices:
            output = self.run_layer(self.layers[index], tokens, None, positions(), packing=packing)
            if index == 0 and self.convolution is not None:
                output = packing.each(
                    lambda before, after, group: self._convolved(0, before, after, group.valid),
                    tokens,
                    output,
                )
            tokens = output
            if observe is not None:
                whole = packing.unpack(tokens, (batch, length))
                observe(whole)
                tokens = packing.pack(whole)  # through what was observed, for gradients to reach it
        return packing.unpack(tokens, (batch, length))

    def _positions(self, states: Tensor) -> Callable[[], PositionTable | HeadTable | None]:
        """What gives each layer its position table; the rows of distances are worked out once for all of them."""
        embedding = self.positions
        if embedding is None:
            return lambda: None
        table = embedding.normed()
        offsets = None
        if isinstance(embedding, RelativePositionEmbedding):
            offsets = OffsetRows(embedding.buckets).on(states.device)
        return lambda: embedding.for_layer(table, offsets)

    def _convolved(
        self,
        index: int,
        states: Float[Tensor, "c l d"],
        output: Float[Tensor, "c l d"],
        valid: Bool[Tensor, "c l"],
    ) -> Float[Tensor, "c l d"]:
        """DeBERTa-v2's convolution beside its first layer."""
        if index > 0 or self.convolution is None:
            return output
        return self.convolution(states, output, valid)


class Chunks:
    """Documents as rows of chunks and back. Chunks of nothing but padding are never computed."""

    def __init__(
        self,
        valid: Bool[Tensor, "c l"],
        *,
        padded: bool,
        shape: tuple[int, int],
        kept: Int[Tensor, " c"] | None,
    ) -> None:
        self.valid = valid
        self.padded = padded  # whether some of `valid` is False
        self._shape = shape  # (batch, sequence) of the whole
        self._kept = kept  # indices of the chunks that hold a real token; None when the input is not cut

    @classmethod
    def cut(
        cls, valid: Bool[Tensor, "b s"], scope: Local | Global, *, seen: NDArray[np.bool_] | None
    ) -> "Chunks":
        """How a batch is cut under a scope; inputs of one chunk stay whole.

        Args:
            seen: `valid` in the host's memory; None: all of it is True.
        """
        batch, length = valid.shape
        if isinstance(scope, Global) or length <= scope.chunk_length:
            return cls(valid, padded=seen is not None, shape=(batch, length), kept=None)
        chunk = scope.chunk_length
        rows = np.ones((batch, length), dtype=bool) if seen is None else seen
        chunks = np.pad(rows, ((0, 0), (0, -length % chunk))).reshape(-1, chunk)
        kept = np.flatnonzero(chunks.any(-1))
        there = sent(kept, valid.device)
        return cls(
            _fold(valid, chunk)[there], padded=not chunks[kept].all(), shape=(batch, length), kept=there
        )

    @classmethod
    def cut_all(cls, valid: Bool[Tensor, "b s"], scope: Local | Global, *, padded: bool) -> "Chunks":
        """The same for a pass that is traced: no chunk is left out, whatever is in it.

        Args:
            padded: whether some of `valid` may be False.
        """
        batch, length = valid.shape
        if isinstance(scope, Global) or length <= scope.chunk_length:
            return cls(valid, padded=padded, shape=(batch, length), kept=None)
        chunks = _fold(valid, scope.chunk_length)
        ragged = length % scope.chunk_length != 0
        every = torch.arange(chunks.shape[0], device=valid.device)
        return cls(chunks, padded=padded or ragged, shape=(batch, length), kept=every)

    def split(self, states: Float[Tensor, "b s d"]) -> Float[Tensor, "c l d"]:
        if self._kept is None:
            return states
        return _fold(states, self.valid.shape[-1])[self._kept]

    def join(self, states: Float[Tensor, "c l d"]) -> Float[Tensor, "b s d"]:
        """Back to whole sequences; positions in chunks of padding become zero."""
        if self._kept is None:
            return states
        batch, length = self._shape
        chunk = self.valid.shape[-1]
        per_row = -(-length // chunk)
        whole = states.new_zeros(batch * per_row, chunk, states.shape[-1])
        whole = whole.index_copy(0, self._kept, states)
        return whole.view(batch, per_row * chunk, -1)[:, :length]

    def whole_weights(
        self, weights: Float[Tensor, "c h l p+l"]
    ) -> tuple[Float[Tensor, "b h s p+s"], Float[Tensor, "c h l p+l"]]:
        """Weights as those of whole sequences, zero between chunks and in chunks of padding; and, made from these,
        those of the chunks again.
        """
        if self._kept is None:
            return weights, weights
        batch, length = self._shape
        chunk = self.valid.shape[-1]
        columns, missing = weights.shape[-1] - chunk, -length % chunk
        per_row = (length + missing) // chunk
        every = weights.new_zeros(batch * per_row, *weights.shape[1:]).index_copy(0, self._kept, weights)
        rows = every.unflatten(0, (batch, per_row)).permute(0, 2, 3, 4, 1)  # (b h l p+l c)
        first = rows[..., :columns, :].movedim(-1, 2).flatten(2, 3)  # (b h c*l p)
        within = torch.diag_embed(rows[..., columns:, :], dim1=2, dim2=4)  # (b h c l c l)
        whole = torch.cat([first, within.flatten(4, 5).flatten(2, 3)], dim=-1)
        whole = whole[..., :length, : columns + length]
        back = F.pad(whole, (0, missing, 0, missing)).unflatten(2, (per_row, chunk))
        own = back[..., columns:].unflatten(-1, (per_row, chunk)).diagonal(dim1=2, dim2=4)  # (b h l l c)
        again = torch.cat([back[..., :columns].movedim(2, -1), own], dim=-2)
        return whole, again.movedim(-1, 1).flatten(0, 1)[self._kept]


def _refuse_shifted_chunks(seen: NDArray[np.bool_] | None, plan: LayerPlan) -> None:
    """Chunks are cut by position: tokens that padding has moved would fall into others than they do alone."""
    if seen is None:
        return
    first = seen.argmax(axis=1)  # 0 for a row without a token
    for scope in set(plan):
        if (
            isinstance(scope, Local)
            and seen.shape[1] > scope.chunk_length
            and (first % scope.chunk_length).any()
        ):
            raise UserError(
                f"{int(first.max())} positions of padding on the left: this encoder works on chunks of "
                f"{scope.chunk_length}, cut by position; pad on the right, or by a multiple of {scope.chunk_length}"
            )


def _fold(rows: Tensor, chunk: int) -> Tensor:
    """(b s ...) -> (b * ceil(s / chunk), chunk, ...), the ragged last chunk padded with zeros."""
    missing = -rows.shape[1] % chunk
    trailing = (0, 0) * (rows.dim() - 2)
    padded = F.pad(rows, (*trailing, 0, missing)) if missing else rows
    return padded.reshape(-1, chunk, *rows.shape[2:])
