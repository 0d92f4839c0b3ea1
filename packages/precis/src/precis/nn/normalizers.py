"""Normalizers, which convert scores to attention weights: the `normalize` argument of `attend`.

`Softmax` is the default. `TopP` and `Gumbel` are the discourse paper's TruncSA (Eq. 2) and SoftSA (Eq. 3). They are
also settings: frozen, and saved with an adapter.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from precis_text.config import Settings
from precis_text.errors import UserError

Scores = Float[Tensor, "b h i j"]
RealQueries = Bool[Tensor, "#b 1 #i 1"]


class Normalizer(ABC):
    """A function from scores to non-negative weights over the last axis. Forbidden scores are the dtype's minimum.

    Attributes:
        row_wise: whether the weights of a query depend only on that query's scores, so that a long input can be
            processed in blocks of queries.
        value_names: the names of the values that `with_values` uses.
        is_softmax: whether it is the plain softmax, which fused kernels compute themselves.
    """

    row_wise: ClassVar[bool] = True
    is_softmax: ClassVar[bool] = False
    value_names: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def __call__(
        self, scores: Scores, *, queries: RealQueries | None = None, training: bool = False
    ) -> Scores:
        """Convert scores to weights.

        Args:
            queries: True where a query is a real token; if None, all are.
            training: whether to draw noise, if the normalizer uses it.
        """

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the normalizer with those of `values` that `value_names` lists."""
        return self

    def bound(self, *, mask: Bool[Tensor, "#b #h #i #j"] | None, training: bool) -> "Normalizer":
        """Return the normalizer for one call of self-attention.

        Args:
            mask: the allowed keys; (b 1 1 n) marks the real positions, and so the real queries.
        """
        if self.is_softmax:
            return self
        padding = mask is not None and mask.shape[-2] == 1 and not self.row_wise
        return Bound(self, mask.transpose(-1, -2) if padding and mask is not None else None, training)


@final
@dataclass(frozen=True, kw_only=True)
class Softmax(Settings, Normalizer):
    """The usual weights: positive, with sum one."""

    is_softmax: ClassVar[bool] = True

    def __call__(
        self, scores: Scores, *, queries: RealQueries | None = None, training: bool = False
    ) -> Scores:
        return torch.softmax(scores, dim=-1)


@final
@dataclass(frozen=True, kw_only=True)
class TopP(Settings, Normalizer):
    """TruncSA (Eq. 2): softmax weights of the keys that share the first `mass` of all attention, zero for the rest.

    The weights of a head are summed over its real queries and normalised over the keys. The smallest set of keys whose
    shares reach `mass` is kept for all queries. The paper specifies neither the handling of heads (here each has its
    own keys) nor of padding (padded queries are ignored).

    In addition to the 95%, Table 7 has a separate tau (1.0, 0.1). Section 4.2 writes mask(a) = top-p(a, tau) and calls
    it a threshold that controls sparsity, without an equation. We read it as the temperature of nucleus sampling: the
    shares become softmax(log(shares) / temperature) before the smallest set is chosen. It affects only the mask; the
    kept weights are those of softmax.

    If a stack reads a long document in chunks (fusion-in-encoder's local layers), each chunk has its own nucleus.
    It needs all queries at once: memory grows with the square of the length, and in a decoder it would look ahead.

    Attributes:
        mass: share of the attention to keep, in (0, 1]; the paper uses 0.95. 1 is exactly dense.
        temperature: above 0; the paper tries 1 and 0.1. Lower values keep fewer keys; 1 is Eq. 2 unchanged.
        renormalize: scale the weights of each query to sum to one again; the paper does not.

    Raises:
        UserError: `mass` or `temperature` is out of range.
    """

    row_wise: ClassVar[bool] = False
    value_names: ClassVar[frozenset[str]] = frozenset({"mass", "temperature"})

    mass: float = 0.95
    temperature: float = 1.0
    renormalize: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.mass <= 1.0:
            raise UserError(
                f"TopP(mass={self.mass}): the mass is a share in (0, 1]; the paper uses 0.95, and 1 is dense"
            )
        if not 0.0 < self.temperature < math.inf:
            raise UserError(
                f"TopP(temperature={self.temperature}): it must be a number above 0; the paper tries 1 and 0.1"
            )

    def with_values(self, values: Mapping[str, Any]) -> Self:
        return replace(self, mass=values["mass"], temperature=values["temperature"])

    def __call__(
        self, scores: Scores, *, queries: RealQueries | None = None, training: bool = False
    ) -> Scores:
        weights = torch.softmax(scores, dim=-1)
        if self.mass == 1.0:
            return weights
        kept = weights * self._nucleus(weights.detach(), queries)
        if not self.renormalize:
            return kept
        return kept / kept.sum(-1, keepdim=True).clamp(min=torch.finfo(kept.dtype).tiny)

    def _nucleus(
        self, weights: Float[Tensor, "b h i j"], queries: Bool[Tensor, "#b 1 #i 1"] | None
    ) -> Bool[Tensor, "b h 1 j"]:
        weights = weights.float()
        counted = weights if queries is None else weights * queries
        sums = counted.sum(-2, keepdim=True)  # Eq. 2, left: a_n = sum_t a_tn
        if self.temperature != 1.0:  # softmax(log(a) / temperature), where a may be 0
            greatest = sums.amax(-1, keepdim=True).clamp(min=torch.finfo(sums.dtype).tiny)
            sums = (sums / greatest) ** (1.0 / self.temperature)
        shares = sums / sums.sum(-1, keepdim=True).clamp(min=torch.finfo(sums.dtype).tiny)  # Eq. 2, right
        ordered, order = shares.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        return torch.zeros_like(shares, dtype=torch.bool).scatter(-1, order, before < self.mass)


@final
@dataclass(frozen=True, kw_only=True)
class Gumbel(Settings, Normalizer):
    """SoftSA (Eq. 3): softmax((scores + g) / temperature), with Gumbel noise g for each query and key.

    Noise is drawn only in training; the paper does not specify this. Without noise, temperature 1 is softmax. Eq. 3's a
    is the attention, already a softmax by section 3. Here noise and temperature apply to the scores, as in the Gumbel
    softmax that the paper cites: a second softmax over weights would be nearly uniform.

    Attributes:
        temperature: above 0; the paper tries 1, 0.1 and 0.01. Lower values are sparser.

    Raises:
        UserError: the temperature is not positive.
    """

    value_names: ClassVar[frozenset[str]] = frozenset({"temperature"})

    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < math.inf:
            raise UserError(
                f"Gumbel(temperature={self.temperature}): it must be a number above 0; the paper tries 1, 0.1 and 0.01"
            )

    def with_values(self, values: Mapping[str, Any]) -> Self:
        return replace(self, temperature=values["temperature"])

    def __call__(
        self, scores: Scores, *, queries: RealQueries | None = None, training: bool = False
    ) -> Scores:
        if not training and self.temperature == 1.0:
            return torch.softmax(scores, dim=-1)
        # forbidden scores are the dtype's minimum: subtract the row's maximum first, so that division gives no NaN
        scores = scores - scores.detach().amax(-1, keepdim=True)
        if training:
            scores = scores + _gumbel_noise(scores)
        return torch.softmax(scores / self.temperature, dim=-1)


def _gumbel_noise(like: Tensor) -> Tensor:
    """Return -log(-log(u)), u uniform: minus the logarithm of an exponential variable."""
    noise = torch.empty_like(like, dtype=torch.float32, memory_format=torch.contiguous_format)
    return -noise.exponential_().log().to(like.dtype)


AttentionNormalizer = Softmax | TopP | Gumbel
"""The normalizers available in settings."""


@final
@dataclass(frozen=True)
class Bound(Normalizer):
    """A normalizer bound to the arguments of one call."""

    inner: Normalizer
    queries: RealQueries | None
    training: bool

    @property
    def row_wise(self) -> bool:  # type: ignore[override]
        return self.inner.row_wise

    def __call__(
        self, scores: Scores, *, queries: RealQueries | None = None, training: bool = False
    ) -> Scores:
        return self.inner(scores, queries=self.queries, training=self.training)
