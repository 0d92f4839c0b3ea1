"""Which queries see which prefix columns, and where attention is sparse: layer plans; and segments of a text.

`methods.py` has the paper's plans by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from precis.config import Settings
from precis.errors import UserError
from precis.nn.normalizers import Gumbel, Softmax, TopP
from precis.nn.prefix import Blocks
from precis.tuning.prefix import NoPrefix, Prefix


@final
@dataclass(frozen=True, kw_only=True)
class Open(Settings):
    """Every query sees every prefix column: prefix tuning as it is."""


@final
@dataclass(frozen=True, kw_only=True)
class Blocked(Settings):
    """The columns are shared out among segments of the text; a query sees those of its own segment, and all inputs.

    Where the number of columns is not a multiple of `segments`, earlier segments have one column more.
    """

    segments: int

    def __post_init__(self) -> None:
        if self.segments < 1:
            raise UserError(
                f"Blocked(segments={self.segments}): there is at least 1 segment; the paper has 1 to 3"
            )


@final
@dataclass(frozen=True, kw_only=True)
class Layer(Settings):
    """One layer's choice."""

    prefix: Open | Blocked = field(default_factory=Open)
    normalizer: Softmax | TopP | Gumbel = field(default_factory=Softmax)


@final
@dataclass(frozen=True, kw_only=True)
class Uniform(Settings):
    """The same in every layer."""

    layer: Layer = field(default_factory=Layer)

    def plan(self, layers: int) -> tuple[Layer, ...]:
        """Layer index -> choice."""
        return (self.layer,) * layers


LOWER_SHARE = 7 / 12
"""The paper does not print where lower layers end; its ablation splits 12 layers into 1-7 and 8-12."""


def lower_layers(layers: int, share: float = LOWER_SHARE) -> int:
    """How many layers of a stack are lower: rounded, and at least 1."""
    return max(1, int(layers * share + 0.5))


@final
@dataclass(frozen=True, kw_only=True)
class Hierarchical(Settings):
    """One choice in the lower layers and another above.

    Attributes:
        lower_share: part of the stack that is lower, in (0, 1]; its number of layers is rounded, and at least 1.
    """

    lower: Layer
    upper: Layer = field(default_factory=Layer)
    lower_share: float = LOWER_SHARE

    def __post_init__(self) -> None:
        if not 0.0 < self.lower_share <= 1.0:
            raise UserError(
                f"Hierarchical(lower_share={self.lower_share}): it is a share in (0, 1]; 7 of 12 layers is usual"
            )

    def plan(self, layers: int) -> tuple[Layer, ...]:
        """Layer index -> choice."""
        lower = lower_layers(layers, self.lower_share)
        return (self.lower,) * lower + (self.upper,) * (layers - lower)


@final
@dataclass(frozen=True, kw_only=True)
class Tuning(Settings):
    """All that is added to a base.

    Attributes:
        prefix: the columns.
        encoder: what the encoder's layers do.
        decoder: what the decoder's layers do, in self-attention and in cross-attention.
        target_length: tokens that a summary is expected to have. While one is written its length is unknown, so the
            decoder's segments are equal parts of this; all that is longer belongs to the last segment. Training does
            the same, so that cached and uncached decoding agree with it.
        units: what the source's segments were made of in training ("sentences", ...), which every call is then to be
            given; None: equal parts of the tokens.

    Raises:
        UserError: `target_length` is not positive, units are for an encoder without blocks, or the decoder would
            truncate by future queries.
    """

    prefix: Prefix | NoPrefix
    encoder: Uniform | Hierarchical = field(default_factory=Uniform)
    decoder: Uniform | Hierarchical = field(default_factory=Uniform)
    target_length: int = 64
    units: str | None = None

    def __post_init__(self) -> None:
        if self.units is not None and most_segments(self) < 2:
            raise UserError(
                f"Tuning(units={self.units!r}): no layer of the encoder has segments to make of them"
            )
        if self.target_length < 1:
            raise UserError(f"Tuning(target_length={self.target_length}): expect at least 1 token")
        for name, plan in (("encoder", self.encoder), ("decoder", self.decoder)):
            for layer in _kinds(plan):
                self._check(name, layer)

    def _check(self, name: str, layer: Layer) -> None:
        if name == "decoder" and isinstance(layer.normalizer, TopP):
            raise UserError(
                "Tuning(decoder=...): TopP sums over all queries, so a decoder would look ahead; use it in the encoder"
            )
        if not isinstance(layer.prefix, Blocked):
            return
        segments = layer.prefix.segments
        if isinstance(self.prefix, Prefix) and self.prefix.length < segments:
            raise UserError(
                f"{name}: {segments} segments but a prefix of length {self.prefix.length}; each segment needs a column"
            )
        if name == "decoder" and self.target_length < segments:
            raise UserError(
                f"decoder: {segments} segments but target_length={self.target_length}; each segment needs a token"
            )


def column_segments(columns: int, segments: int, *, device: torch.device | None = None) -> Int[Tensor, " p"]:
    """The segment that each prefix column belongs to: runs of columns, earlier ones longer by one where need be."""
    sizes = [columns // segments + (part < columns % segments) for part in range(segments)]
    parts = torch.arange(segments, device=device)
    return parts.repeat_interleave(torch.tensor(sizes, device=device))


def most_segments(tuning: Tuning) -> int:
    """Into how many segments a source text is cut in some layer; 1: nowhere."""
    return max(
        layer.prefix.segments if isinstance(layer.prefix, Blocked) else 1 for layer in _kinds(tuning.encoder)
    )


def _kinds(plan: Uniform | Hierarchical) -> tuple[Layer, ...]:
    """All that a stack of any depth may have."""
    return (plan.layer,) if isinstance(plan, Uniform) else (plan.lower, plan.upper)


def equal_parts(valid: Bool[Tensor, "b s"], segments: int) -> Int[Tensor, "b s"]:
    """The segment of each token when a row's real tokens are cut into equal parts; padding gets any. A text of fewer
    tokens than segments leaves some of them without tokens.
    """
    lengths = valid.sum(-1, keepdim=True).clamp(min=1)
    place = (valid.cumsum(-1) - 1).clamp(min=0)
    return (place * segments // lengths).clamp(max=segments - 1)


def expected_parts(positions: Int[Tensor, "#b t"], segments: int, *, length: int) -> Int[Tensor, "#b t"]:
    """The segment of each target position when a target of `length` tokens is expected; later ones join the last."""
    return (positions * segments // length).clamp(max=segments - 1)


def given_parts(ids: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"], segments: int) -> Int[Tensor, "b s"]:
    """Segments that the caller says, checked.

    Raises:
        UserError: the shape is not that of the tokens, or a real token has a segment that does not exist.
    """
    if ids.shape != valid.shape:
        raise UserError(
            f"source_segments of shape {tuple(ids.shape)} for tokens of shape {tuple(valid.shape)}; give one a token"
        )
    real = ids.to(valid.device).masked_fill(~valid, 0)
    low, high = int(real.min()), int(real.max())
    if low < 0 or high >= segments:
        wrong = low if low < 0 else high
        raise UserError(
            f"source_segments holds {wrong}, but the prefix has {segments} segments, 0 to {segments - 1}"
        )
    return real


def blocks(segments: Int[Tensor, "#b #i"], *, columns: int, count: int) -> Blocks:
    """Blocks of `columns` prefix columns for queries of these segments."""
    return Blocks(segments, column_segments(columns, count, device=segments.device), count)
