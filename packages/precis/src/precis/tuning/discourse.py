"""Layer plans: which queries see which prefix columns, and where attention is sparse. `METHODS` are the paper's.

    method               lower layers             upper layers
    prefix               open, softmax            open, softmax
    UniBlock             blocked, softmax         blocked, softmax
    HierBlock            blocked, softmax         open, softmax
    TruncSA, SoftSA      open, sparse             open, sparse
    HTruncSA, HSoftSA    open, sparse             open, softmax
    HierBlock+SoftSA     blocked, sparse          open, softmax

Only the encoder is sparse (section 4.2). Encoder and decoder are blocked, each with its own number of segments. With
`NoPrefix()` the sparse methods are the fine-tuned models of Table 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from precis.nn.normalizers import AttentionNormalizer, Gumbel, Softmax, TopP
from precis.nn.prefix_columns import PrefixBlocks
from precis.tuning.prefix import NoPrefix, Prefix
from precis_text.config import Settings, nearest
from precis_text.errors import UserError


@final
@dataclass(frozen=True, kw_only=True)
class Open(Settings):
    """Every query sees every prefix column: ordinary prefix tuning."""


@final
@dataclass(frozen=True, kw_only=True)
class Blocked(Settings):
    """Every segment of the text has its own columns; a query sees those of its segment, and all inputs.

    If the number of columns is not a multiple of `segments`, earlier segments have one column more.
    """

    segments: int

    def __post_init__(self) -> None:
        if self.segments < 1:
            raise UserError(
                f"Blocked(segments={self.segments}): it must be at least 1; the paper uses 1 to 3"
            )


@final
@dataclass(frozen=True, kw_only=True)
class Layer(Settings):
    """The settings of one layer: which queries see the prefix, and how scores become weights."""

    prefix: Open | Blocked = field(default_factory=Open)
    normalizer: AttentionNormalizer = field(default_factory=Softmax)


@final
@dataclass(frozen=True, kw_only=True)
class Uniform(Settings):
    """The same settings for every layer."""

    layer: Layer = field(default_factory=Layer)

    def plan(self, layers: int) -> tuple[Layer, ...]:
        """Return the settings of each layer, from the lowest."""
        return (self.layer,) * layers


LOWER_SHARE = 7 / 12
"""The paper does not state where lower layers end; its ablation splits 12 layers into 1-7 and 8-12."""


def lower_layers(layers: int, share: float = LOWER_SHARE) -> int:
    """Return the number of lower layers in a stack: the rounded share, and at least 1."""
    return max(1, int(layers * share + 0.5))


@final
@dataclass(frozen=True, kw_only=True)
class Hierarchical(Settings):
    """One setting for the lower layers, `lower_share` in (0, 1] of the stack, and another for those above."""

    lower: Layer
    upper: Layer = field(default_factory=Layer)
    lower_share: float = LOWER_SHARE

    def __post_init__(self) -> None:
        if not 0.0 < self.lower_share <= 1.0:
            raise UserError(
                f"Hierarchical(lower_share={self.lower_share}): it must be in (0, 1]; the default is 7 of 12 layers"
            )

    def plan(self, layers: int) -> tuple[Layer, ...]:
        """Return the settings of each layer, from the lowest."""
        lower = lower_layers(layers, self.lower_share)
        return (self.lower,) * lower + (self.upper,) * (layers - lower)


@final
@dataclass(frozen=True, kw_only=True)
class Tuning(Settings):
    """Everything that is added to a base model.

    Attributes:
        prefix: the columns.
        encoder: the settings of the encoder's layers.
        decoder: the settings of the decoder's layers, for self-attention and cross-attention.
        target_length: expected tokens of a summary. The decoder writes without knowing the final length, so its
            segments are equal parts of this length. Later tokens belong to the last segment. Training does the same,
            so that cached and uncached decoding agree with it.
        units: the units that formed the source's segments in training ("sentences", ...); every call then has to give
            segments. If None, segments are equal parts of the tokens.

    Raises:
        UserError: if `target_length` is not positive, or units are set for an encoder without blocks, or the decoder
            would truncate by future queries.
    """

    prefix: Prefix | NoPrefix
    encoder: Uniform | Hierarchical = field(default_factory=Uniform)
    decoder: Uniform | Hierarchical = field(default_factory=Uniform)
    target_length: int = 64
    units: str | None = None

    def __post_init__(self) -> None:
        if self.units is not None and most_segments(self) < 2:
            raise UserError(
                f"Tuning(units={self.units!r}): no encoder layer has segments; leave units out or use blocks"
            )
        if self.target_length < 1:
            raise UserError(f"Tuning(target_length={self.target_length}): it must be at least 1 token")
        for name, plan in (("encoder", self.encoder), ("decoder", self.decoder)):
            for layer in _kinds(plan):
                self._check(name, layer)

    def _check(self, name: str, layer: Layer) -> None:
        if name == "decoder" and not layer.normalizer.row_wise:
            raise UserError(
                f"Tuning(decoder=...): {type(layer.normalizer).__name__} sums over all queries, so a decoder would "
                "look ahead; use it in the encoder"
            )
        if not isinstance(layer.prefix, Blocked):
            return
        segments = layer.prefix.segments
        if isinstance(self.prefix, Prefix) and self.prefix.length < segments:
            raise UserError(
                f"{name}: {segments} segments, but the prefix has length {self.prefix.length}; "
                "each segment needs a column"
            )
        if name == "decoder" and self.target_length < segments:
            raise UserError(
                f"decoder: {segments} segments, but target_length={self.target_length}; each segment needs a token"
            )


def column_segments(columns: int, segments: int, *, device: torch.device | None = None) -> Int[Tensor, " p"]:
    """Return the segment of each prefix column; earlier segments have one column more if needed."""
    sizes = [columns // segments + (part < columns % segments) for part in range(segments)]
    parts = torch.arange(segments, device=device)
    return parts.repeat_interleave(torch.tensor(sizes, device=device))


def most_segments(tuning: Tuning) -> int:
    """Return the most segments that any encoder layer cuts a source into; 1 if no layer does."""
    return max(
        layer.prefix.segments if isinstance(layer.prefix, Blocked) else 1 for layer in _kinds(tuning.encoder)
    )


def _kinds(plan: Uniform | Hierarchical) -> tuple[Layer, ...]:
    """Return the distinct layers of a plan, for any depth of the stack."""
    return (plan.layer,) if isinstance(plan, Uniform) else (plan.lower, plan.upper)


def equal_parts(valid: Bool[Tensor, "b s"], segments: int) -> Int[Tensor, "b s"]:
    """Return the segment of each token when a row's real tokens are cut into equal parts; padding gets any.

    A text with fewer tokens than segments leaves some segments empty.
    """
    lengths = valid.sum(-1, keepdim=True).clamp(min=1)
    place = (valid.cumsum(-1) - 1).clamp(min=0)
    return (place * segments // lengths).clamp(max=segments - 1)


def expected_parts(positions: Int[Tensor, "#b t"], segments: int, *, length: int) -> Int[Tensor, "#b t"]:
    """Return the segment of each target position for an expected length; later ones join the last segment."""
    return (positions * segments // length).clamp(max=segments - 1)


def given_parts(ids: Int[Tensor, ...], valid: Bool[Tensor, "b s"], segments: int) -> Int[Tensor, "b s"]:
    """Check the segments that a caller gives.

    Raises:
        UserError: if the shape is not that of the tokens, or a real token has a segment that does not exist.
    """
    if ids.shape != valid.shape:
        raise UserError(
            f"source_segments of shape {tuple(ids.shape)} for tokens of shape {tuple(valid.shape)}; give one per token"
        )
    real = ids.to(valid.device).masked_fill(~valid, 0)
    low, high = int(real.min()), int(real.max())
    if low < 0 or high >= segments:
        wrong = low if low < 0 else high
        raise UserError(
            f"source_segments contains {wrong}, but the prefix has {segments} segments, 0 to {segments - 1}"
        )
    return real


def blocks(segments: Int[Tensor, "#b #i"], *, columns: int, count: int) -> PrefixBlocks:
    """Divide `columns` prefix columns among `count` segments, for queries of these segments."""
    return PrefixBlocks(segments, column_segments(columns, count, device=segments.device), count)


@final
@dataclass(frozen=True, kw_only=True)
class MethodSettings(Settings):
    """Settings of the paper's methods; each method reads those that it needs.

    Attributes:
        encoder_segments: 1, 2 or 3 in the paper (Table 7).
        decoder_segments: 1 or 2 in the paper.
        mass: TruncSA's share of the attention; the paper has 0.95.
        temperature: temperature of SoftSA (1, 0.1 or 0.01 in the paper) and TruncSA (1 or 0.1); see `Gumbel`, `TopP`.
        lower_share: share of a stack that is lower, in (0, 1].
        target_length: expected tokens of a summary; see `Tuning`.

    Raises:
        UserError: if a value is out of range.
    """

    encoder_segments: int = 2
    decoder_segments: int = 1
    mass: float = 0.95
    temperature: float = 1.0
    lower_share: float = LOWER_SHARE
    target_length: int = 64

    def __post_init__(self) -> None:
        for name in ("encoder_segments", "decoder_segments", "target_length"):
            if getattr(self, name) < 1:
                raise UserError(f"MethodSettings({name}={getattr(self, name)}): it must be at least 1")
        for name in ("mass", "lower_share"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise UserError(f"MethodSettings({name}={getattr(self, name)}): it must be in (0, 1]")
        if not 0.0 < self.temperature < math.inf:
            raise UserError(f"MethodSettings(temperature={self.temperature}): it must be a number above 0")


USUAL = MethodSettings()


@final
@dataclass(frozen=True, kw_only=True)
class Method:
    """One of the paper's methods.

    Attributes:
        blocked: whether prefix columns are divided among segments (section 4.1), in encoder and decoder.
        sparse: the encoder's attention (section 4.2), which takes its values from the settings; `Softmax` is dense.
        lower_only: whether this applies to the lower layers only; upper layers are then open and dense.
    """

    blocked: bool = False
    sparse: AttentionNormalizer = field(default_factory=Softmax)
    lower_only: bool = False

    def __call__(self, prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
        """Return the settings of the method with this prefix."""
        return Tuning(
            prefix=prefix,
            encoder=self._plan(
                settings, settings.encoder_segments, self.sparse.with_values(asdict(settings))
            ),
            decoder=self._plan(settings, settings.decoder_segments, Softmax()) if self.blocked else Uniform(),
            target_length=settings.target_length,
        )

    def _plan(
        self, settings: MethodSettings, segments: int, normalizer: AttentionNormalizer
    ) -> Uniform | Hierarchical:
        layer = Layer(prefix=Blocked(segments=segments) if self.blocked else Open(), normalizer=normalizer)
        return (
            Hierarchical(lower=layer, lower_share=settings.lower_share)
            if self.lower_only
            else Uniform(layer=layer)
        )

    @property
    def reads(self) -> frozenset[str]:
        """Names of the `MethodSettings` that the method uses."""
        parts = {"encoder_segments", "decoder_segments", "target_length"} if self.blocked else set()
        return self.sparse.value_names | parts | ({"lower_share"} if self.lower_only else set())


METHODS: Mapping[str, Method] = MappingProxyType({
    "prefix": Method(), "uniblock": Method(blocked=True), "hierblock": Method(blocked=True, lower_only=True),
    "truncsa": Method(sparse=TopP()), "htruncsa": Method(sparse=TopP(), lower_only=True),
    "softsa": Method(sparse=Gumbel()), "hsoftsa": Method(sparse=Gumbel(), lower_only=True),
    "hierblock+softsa": Method(blocked=True, sparse=Gumbel(), lower_only=True),
})  # fmt: skip
"""The paper's methods by their names on the command line."""

READERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        setting.name: tuple(name for name, method in METHODS.items() if setting.name in method.reads)
        for setting in fields(MethodSettings)
    }
)
"""The methods that use each of `MethodSettings`."""


def method(name: str, prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Return the settings of one of the paper's methods by name.

    Raises:
        UserError: if the name is unknown.

    Examples:
        >>> method("hierblock+softsa", precis.Prefix(length=10)).prefix.length
        10
    """
    if name not in METHODS:
        raise UserError(f"unknown method {name!r}{nearest(name, METHODS)}")
    return METHODS[name](prefix, settings)
