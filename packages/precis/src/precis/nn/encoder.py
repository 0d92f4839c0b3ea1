"""The encoder stack: DeBERTa layers run under a layer plan.

Fusion-in-encoder: runs of `Local` layers attend within chunks cut by position, `Global` layers to the whole sequence,
with only relative positions and no extra tokens. A single-chunk input is encoded exactly as in the plain encoder.
Batches with more than a twentieth of padding are packed (`packing.py`): padding is not computed and becomes zeros.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn

from precis.nn.attention_weights import AttentionWeights
from precis.nn.blocks import ACTIVATIONS, EncoderLayer, EncoderStack, Observer
from precis.nn.dropout import Dropout
from precis.nn.layer_plan import Chunks, LayerPlan, Local, runs
from precis.nn.packing import Group, Packing
from precis.nn.padding import host_mask, is_traced
from precis.nn.prefix_columns import StackPrefix
from precis.nn.relative_positions import HeadTable, LogBuckets, OffsetRows, PositionTable, TwoWayBuckets
from precis_text.errors import UserError


class RelativePositionEmbedding(nn.Module):
    """A position table for all layers; layer-normalised if `norm_eps` is given, with dropout at each use."""

    def __init__(self, buckets: LogBuckets, width: int, *, norm_eps: float | None, dropout: float) -> None:
        super().__init__()
        self.buckets = buckets
        self.rows = nn.Embedding(buckets.rows, width)
        self.norm = nn.LayerNorm(width, eps=norm_eps) if norm_eps is not None else None
        self.dropout = Dropout(dropout)

    def for_layers(self, device: torch.device) -> Callable[[], PositionTable]:
        """Return a function that returns the table for one layer, each time with new dropout.

        The norm and the rows of distances are computed once for all layers.
        """
        table = self.norm(self.rows.weight) if self.norm is not None else self.rows.weight
        offsets = OffsetRows(self.buckets).on(device)
        return lambda: PositionTable(self.dropout(table), offsets)


class BucketedPositionEmbedding(nn.Module):
    """T5's table of scores for all layers, instead of disentangled attention."""

    def __init__(self, buckets: TwoWayBuckets, heads: int) -> None:
        super().__init__()
        self.buckets = buckets
        self.rows = nn.Embedding(buckets.rows, heads)

    def for_layers(self, device: torch.device) -> Callable[[], HeadTable]:
        """Return a function that returns the table for a layer."""
        return lambda: HeadTable(self.rows.weight, self.buckets)


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
        self, embedded: Float[Tensor, "b n d"], first_layer: Float[Tensor, "b n d"], group: Chunks | Group
    ) -> Float[Tensor, "b n d"]:
        valid = group.valid
        mixed = self.convolution(embedded.transpose(1, 2)).transpose(1, 2)
        mixed = mixed.masked_fill(~valid[..., None], 0.0)
        return self.norm(first_layer + self.activation(self.dropout(mixed))) * valid[..., None]


class Encoder(EncoderStack):
    """Layers, their shared position table, and the plan that defines each layer's attention span."""

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
            raise ValueError(f"the layer plan has {len(plan)} layers, the encoder has {len(layers)}")
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.convolution = convolution
        self.plan = plan

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

        Compiled layers receive padded batches: packed ones have groups of varying shape, which would recompile.

        Args:
            padded, lengths: whether some of `valid` is False, or the number of True positions of each row, from the
                first. If neither is given, `valid` is read from the device, which waits for a GPU.
            states: embedded tokens, zero at padding.
            valid: True at real tokens.
            prefix: keys and values before those of the tokens; local layers have it in every chunk.
            observe: receives the states after each layer, as whole sequences.
            weights: records the attention weights; fast paths are then not used.

        Raises:
            UserError: left padding is not a multiple of a chunk, which would shift the chunks.
            ValueError: `lengths` do not fit the batch.
        """
        traced = is_traced()
        seen = None if traced else host_mask(valid, padded=padded, lengths=lengths)
        _refuse_shifted_chunks(seen, self.plan)
        positions = self.positions.for_layers(states.device) if self.positions is not None else None
        packs = prefix is None and weights is None and not self.compiled and not traced
        for scope, indices in runs(self.plan):
            packing = Packing.of(valid, scope, seen=seen) if packs else None
            if packing is not None:
                cut: Chunks | Packing = packing
            elif traced:
                cut = Chunks.cut_all(valid, scope, padded=padded is not False)
            else:
                cut = Chunks.cut(valid, scope, seen=seen)
            states = self._run(states, cut, indices, positions, prefix, observe, weights)
        return states

    def _run(
        self,
        states: Float[Tensor, "b s d"],
        cut: Chunks | Packing,
        indices: range,
        positions: Callable[[], PositionTable | HeadTable] | None,
        prefix: StackPrefix | None,
        observe: Observer | None,
        weights: AttentionWeights | None,
    ) -> Float[Tensor, "b s d"]:
        """Run consecutive layers of one scope, on chunks or on tokens without their padding."""
        packing = cut if isinstance(cut, Packing) else None
        mask = cut.mask if isinstance(cut, Chunks) else None
        first = prefix.cut(cut.split) if prefix is not None else None

        def given(index: int) -> tuple[Any, ...]:
            columns = first.self_attention[index] if first is not None else None
            if weights is not None and isinstance(cut, Chunks):
                columns = weights.of_layer(index, columns, self.self_attentions()[index], cut.whole_weights)
            return mask, positions() if positions is not None else None, None, columns, packing

        def after(index: int, before: Tensor, output: Tensor) -> Tensor:
            if index == 0 and self.convolution is not None:
                output = cut.each(self.convolution, before, output)
            if observe is None:
                return output
            whole = cut.join(output)
            observe(whole)
            return cut.split(whole)  # depends on the observed states, so that gradients reach them

        states = cut.split(states)
        self.expect_other_sizes(states, mask)
        return cut.join(self.run_layers(states, given, after, indices=indices))


def _refuse_shifted_chunks(seen: NDArray[np.bool_] | None, plan: LayerPlan) -> None:
    """Refuse left padding that would move tokens to other chunks than without it."""
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
                f"{int(first.max())} positions of padding on the left: this encoder cuts chunks of "
                f"{scope.chunk_length} by position; pad on the right, or by a multiple of {scope.chunk_length}"
            )
