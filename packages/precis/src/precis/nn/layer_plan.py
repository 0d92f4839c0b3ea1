"""Layer plan: the attention span of each layer; and the chunks of a local layer.

Fusion-in-encoder (Z-Code++ section 2.3) is the plan "m local layers, then n global ones".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor

from precis.nn.padding import padding_mask, sent


@final
@dataclass(frozen=True)
class Local:
    """Attention within chunks of this many positions."""

    chunk_length: int

    def __post_init__(self) -> None:
        if self.chunk_length < 1:
            raise ValueError(
                f"chunk_length={self.chunk_length} must be at least 1; the paper uses 256 or 512"
            )


@final
@dataclass(frozen=True)
class Global:
    """Attention over the whole input."""


Scope = Local | Global
LayerPlan = tuple[Scope, ...]


def dense_plan(layers: int) -> LayerPlan:
    """Return the plan of the plain encoder: every layer attends to the whole input."""
    return (Global(),) * layers


def fusion_plan(layers: int, *, chunk_length: int, global_layers: int) -> LayerPlan:
    """Return m = layers - n local layers of chunk length l, then n global layers; cost O(m N l + n N^2).

    Raises:
        ValueError: `global_layers` is not between 0 and `layers`.
    """
    if not 0 <= global_layers <= layers:
        raise ValueError(
            f"global_layers={global_layers} must be between 0 and the {layers} layers of the encoder"
        )
    return (Local(chunk_length),) * (layers - global_layers) + (Global(),) * global_layers


def runs(plan: LayerPlan) -> list[tuple[Scope, range]]:
    """Return runs of consecutive layers with the same scope, as (scope, layer indices)."""
    starts = [index for index in range(len(plan)) if index == 0 or plan[index] != plan[index - 1]]
    ends = [*starts[1:], len(plan)]
    return [(plan[start], range(start, end)) for start, end in zip(starts, ends, strict=True)]


@final
@dataclass(frozen=True)
class Chunks:
    """The chunks of a batch: cuts documents into rows of chunks and joins them. All-padding chunks are not computed.

    Attributes:
        valid: True at real tokens.
        padded: whether some of `valid` is False.
        shape: rows and width of the whole batch.
        kept: indices of the chunks with a real token, or a slice of all; None if the input is not cut.
    """

    valid: Bool[Tensor, "c l"]
    padded: bool
    shape: tuple[int, int]
    kept: Int[Tensor, " c"] | slice | None

    @property
    def mask(self) -> Bool[Tensor, "c 1 1 l"] | None:
        """The mask of the chunks; None without padding, since fused kernels are then faster."""
        return padding_mask(self.valid) if self.padded else None

    @classmethod
    def cut(
        cls, valid: Bool[Tensor, "b s"], scope: Local | Global, *, seen: NDArray[np.bool_] | None
    ) -> "Chunks":
        """Cut a batch under a scope; single-chunk inputs stay whole.

        Args:
            seen: `valid` in the host's memory; if None, all of it is True.
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
        """Cut a batch in a traced pass, which cannot omit chunks; `padded` if some of `valid` may be False."""
        batch, length = valid.shape
        if isinstance(scope, Global) or length <= scope.chunk_length:
            return cls(valid, padded=padded, shape=(batch, length), kept=None)
        chunks = _fold(valid, scope.chunk_length)
        ragged = torch.compiler.is_exporting() or length % scope.chunk_length != 0
        return cls(chunks, padded=padded or ragged, shape=(batch, length), kept=slice(None))

    def each(self, work: Callable[..., Tensor], *states: Float[Tensor, "c l d"]) -> Float[Tensor, "c l d"]:
        """Call `work(*states, group=self)`, as `Packing.each` does for each of its groups."""
        return work(*states, group=self)

    def split(self, states: Shaped[Tensor, "b s *rest"]) -> Shaped[Tensor, "c l *rest"]:
        if self.kept is None:
            return states
        return _fold(states, self.valid.shape[-1])[self.kept]

    def join(self, states: Float[Tensor, "c l d"]) -> Float[Tensor, "b s d"]:
        """Join chunks to whole sequences; positions in chunks of padding become zero."""
        if self.kept is None:
            return states
        batch, length = self.shape
        chunk = self.valid.shape[-1]
        per_row = _chunks_of(length, chunk)
        whole = self._among_all(states, batch * per_row)
        return whole.view(batch, per_row * chunk, -1)[:, :length]

    def _among_all(self, kept: Float[Tensor, "c *rest"], count: int) -> Float[Tensor, "_ *rest"]:
        """Return `count` chunks: the kept ones in their places, zeros in those of padding."""
        if not isinstance(self.kept, Tensor):
            return kept
        return kept.new_zeros(count, *kept.shape[1:]).index_copy(0, self.kept, kept)

    def whole_weights(
        self, weights: Float[Tensor, "c h l pl"]
    ) -> tuple[Float[Tensor, "b h s ps"], Float[Tensor, "c h l pl"]]:
        """Return the weights of whole sequences, and the chunks' own weights derived from them.

        Between chunks, and in chunks of padding, the weights are zero.
        """
        if self.kept is None:
            return weights, weights
        batch, length = self.shape
        chunk = self.valid.shape[-1]
        columns, missing = weights.shape[-1] - chunk, -length % chunk
        per_row = (length + missing) // chunk
        every = self._among_all(weights, batch * per_row)
        rows = every.unflatten(0, (batch, per_row)).permute(0, 2, 3, 4, 1)  # (b h l p+l c)
        first = rows[..., :columns, :].movedim(-1, 2).flatten(2, 3)  # (b h c*l p)
        within = torch.diag_embed(rows[..., columns:, :], dim1=2, dim2=4)  # (b h c l c l)
        whole = torch.cat([first, within.flatten(4, 5).flatten(2, 3)], dim=-1)
        whole = whole[..., :length, : columns + length]
        back = F.pad(whole, (0, missing, 0, missing)).unflatten(2, (per_row, chunk))
        own = back[..., columns:].unflatten(-1, (per_row, chunk)).diagonal(dim1=2, dim2=4)  # (b h l l c)
        again = torch.cat([back[..., :columns].movedim(2, -1), own], dim=-2)
        return whole, again.movedim(-1, 1).flatten(0, 1)[self.kept]


def _fold(rows: Tensor, chunk: int) -> Tensor:
    """Fold (b s ...) to (b * ceil(s / chunk), chunk, ...); zeros pad the ragged last chunk."""
    per_row = _chunks_of(rows.shape[1], chunk)
    missing = per_row * chunk - rows.shape[1]
    trailing = (0, 0) * (rows.dim() - 2)
    pads = (
        torch.compiler.is_exporting() or missing
    )  # an exported program must pad, whatever its example input
    padded = F.pad(rows, (*trailing, 0, missing)) if pads else rows
    return padded.reshape(rows.shape[0] * per_row, chunk, *rows.shape[2:])


def _chunks_of(length: int, chunk: int) -> int:
    return (length + chunk - 1) // chunk
