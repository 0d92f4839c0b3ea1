"""Trainable keys and values of a prefix: which sites and layers have them, and how they are parametrised.

Prefix tuning is by Li & Liang 2021. Their BART code has a separate module for each of the three sites, as here. A
prefix does not shift positions and does not pad masks.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from precis.nn.dropout import dropout
from precis_text.config import Settings, nearest
from precis_text.errors import UserError


class Site(StrEnum):
    """The three attentions: over the source, from target to source, and over the target."""

    ENCODER = "encoder"
    CROSS = "cross"
    DECODER = "decoder"


_MOST_COLUMNS = 10_000  # far above every published prefix; more would fill the memory
ALL_SITES = (Site.ENCODER.value, Site.CROSS.value, Site.DECODER.value)


@final
@dataclass(frozen=True, kw_only=True)
class AllLayers(Settings):
    """Every layer has a prefix."""

    def indices(self, layers: int) -> range:
        """Return the indices of the layers with a prefix, for a stack of `layers`."""
        return range(layers)


@final
@dataclass(frozen=True, kw_only=True)
class TopLayers(Settings):
    """Only the last `count` layers have a prefix (Table 3, "Top")."""

    count: int

    def indices(self, layers: int) -> range:
        """Return the indices of the layers with a prefix; raise `UserError` if the stack has fewer than `count`."""
        _check_count(self, self.count, layers)
        return range(layers - self.count, layers)


@final
@dataclass(frozen=True, kw_only=True)
class LowLayers(Settings):
    """Only the first `count` layers have a prefix (Table 3, "Low")."""

    count: int

    def indices(self, layers: int) -> range:
        """Return the indices of the layers with a prefix; raise `UserError` if the stack has fewer than `count`."""
        _check_count(self, self.count, layers)
        return range(self.count)


@final
@dataclass(frozen=True, kw_only=True)
class SingleLayer(Settings):
    """One layer has a prefix, counted from 0 (Figure 3)."""

    index: int

    def indices(self, layers: int) -> range:
        """Return the index of the layer with a prefix as a range; raise `UserError` if the stack lacks it."""
        if not 0 <= self.index < layers:
            raise UserError(f"{self} in a stack of {layers} layers: the index must be from 0 to {layers - 1}")
        return range(self.index, self.index + 1)


def _check_count(choice: Settings, count: int, layers: int) -> None:
    if not 1 <= count <= layers:
        raise UserError(f"{choice} in a stack of {layers} layers: the count must be from 1 to {layers}")


@final
@dataclass(frozen=True, kw_only=True)
class Direct(Settings):
    """The keys and values are the parameters; they start as N(0, std).

    Adam moves each by about the learning rate in a step. So they need a rate far above that of `Reparametrized`, and a
    start near the size of real keys: 0.3 is about the initial output of the network.
    """

    std: float = 0.3


@final
@dataclass(frozen=True, kw_only=True)
class FromTokens(Settings):
    """`Direct`, initialized with keys and values that the frozen base computes for a text (Li & Liang, section 7.4).

    Attributes:
        ids: token ids of the text, which is repeated to the prefix's length.
    """

    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.ids:
            raise UserError("FromTokens(ids=()): give the ids of at least one token")


@final
@dataclass(frozen=True, kw_only=True)
class Reparametrized(Settings):
    """Li & Liang's network: one hidden layer over a vector for each column. Saving folds it."""

    width: int = 800

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UserError(f"Reparametrized(width={self.width}): the hidden layer needs at least 1 unit")


@final
@dataclass(frozen=True, kw_only=True)
class Prefix(Settings):
    """Columns to prepend to keys and values.

    Attributes:
        length: columns at each site; the paper has 10 (structure-to-text, SAMSum: 10), 50 or 100.
        sites: the attentions with a prefix, out of "encoder", "cross" and "decoder".
        layers: the layers with a prefix.
        keys: the parametrisation of keys and values.
        dropout: probability of dropping an entry of keys and values in training.

    Raises:
        UserError: if a value is out of range, or a site is unknown or named twice.

    Examples:
        >>> Prefix(length=10, sites=("encoder", "cross"))
        Prefix(length=10, sites=('encoder', 'cross'), ...)
    """

    length: int
    sites: tuple[str, ...] = ALL_SITES
    layers: AllLayers | TopLayers | LowLayers | SingleLayer = field(default_factory=AllLayers)
    keys: Direct | FromTokens | Reparametrized = field(default_factory=Direct)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if type(self.length) is not int or not 1 <= self.length <= _MOST_COLUMNS:
            bounds = f"needs at least 1 column, and at most {_MOST_COLUMNS:,}"
            raise UserError(f"Prefix(length={self.length!r}): a prefix {bounds}; use NoPrefix to have none")
        for site in self.sites:
            if site not in ALL_SITES:
                raise UserError(f"Prefix(sites=...): unknown site {site!r}{nearest(site, ALL_SITES)}")
        if not self.sites or len(set(self.sites)) < len(self.sites):
            raise UserError(f"Prefix(sites={self.sites}): name at least one site, and each site once")
        if not 0.0 <= self.dropout < 1.0:
            raise UserError(f"Prefix(dropout={self.dropout}): it must be in [0, 1)")


@final
@dataclass(frozen=True, kw_only=True)
class NoPrefix(Settings):
    """No columns: for sparse attention on a model that is fine-tuned in full (Table 4, upper half)."""


@final
@dataclass(frozen=True)
class SiteShape:
    """Size of a base's attention at one site."""

    layers: int
    heads: int
    head_width: int


class PrefixTable(nn.Module):
    """Keys and values of one site: (L, 2, h, p, e) for the L layers that have a prefix."""

    def __init__(self, prefix: Prefix, shape: SiteShape, *, width: int) -> None:
        super().__init__()
        self.layers = prefix.layers.indices(shape.layers)
        self.dropout = prefix.dropout
        self._shape = (len(self.layers), 2, shape.heads, prefix.length, shape.head_width)
        if isinstance(prefix.keys, Reparametrized):
            outputs = len(self.layers) * 2 * shape.heads * shape.head_width
            self.columns: nn.Module | None = nn.Sequential(
                nn.Embedding(prefix.length, width),
                nn.Linear(width, prefix.keys.width),
                nn.Tanh(),
                nn.Linear(prefix.keys.width, outputs),
            )
            self.table = None
        else:
            std = prefix.keys.std if isinstance(prefix.keys, Direct) else 0.0
            self.columns = None
            self.table = nn.Parameter(torch.randn(self._shape) * std)
        self._kept: tuple[tuple[Hashable, ...], Tensor] | None = None

    def row(self, layer: int) -> int | None:
        """Return the table's row for a layer of the stack, or None for a layer without a prefix."""
        return layer - self.layers.start if layer in self.layers else None

    def forward(self) -> Float[Tensor, "l 2 h p e"]:
        folded = self.folded()
        return dropout(folded, self.dropout, training=self.training)

    def folded(self) -> Float[Tensor, "l 2 h p e"]:
        """Return keys and values without dropout, computed by the network if there is one.

        In evaluation without gradients the network runs once, and again only after its weights may have changed. Fused
        optimizers change weights without torch counting it, so a pass with gradients or a change of mode counts too.
        """
        if self.table is not None:
            return self.table
        if self.training or torch.is_grad_enabled():
            self._kept = None
            return self._computed()
        device = next(self.parameters()).device.type
        casting = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        state = (casting, *((p._version, p.data_ptr()) for p in self.parameters()))
        if self._kept is None or self._kept[0] != state:
            self._kept = (state, self._computed())
        return self._kept[1]

    @torch.no_grad()
    def exact(self) -> Float[Tensor, "l 2 h p e"]:
        """Compute `folded` again in the precision of the parameters."""
        if self.table is not None:
            return self.table
        with torch.autocast(next(self.parameters()).device.type, enabled=False):
            return self._computed()

    def train(self, mode: bool = True) -> Self:
        """Set the mode, and discard the result cached in the other one."""
        self._kept = None
        return super().train(mode)

    def fold(self) -> None:
        """Replace the network that computes keys and values, if any, by its output."""
        if self.table is None:
            trained = any(parameter.requires_grad for parameter in self.parameters())
            made = self.exact().clone(memory_format=torch.contiguous_format)
            self.table = nn.Parameter(made, requires_grad=trained)
            self.columns = self._kept = None

    def _computed(self) -> Float[Tensor, "l 2 h p e"]:
        assert self.columns is not None
        layers, pair, heads, length, head_width = self._shape
        device = next(self.parameters()).device
        made = self.columns(torch.arange(length, device=device))
        return made.view(length, layers, pair, heads, head_width).permute(1, 2, 3, 0, 4)
