"""The paper's methods (sections 4.1 and 4.2) as layer plans.

    method               lower layers             upper layers
    prefix               open, softmax            open, softmax
    UniBlock             blocked, softmax         blocked, softmax
    HierBlock            blocked, softmax         open, softmax
    TruncSA, SoftSA      open, sparse             open, sparse
    HTruncSA, HSoftSA    open, sparse             open, softmax
    HierBlock+SoftSA     blocked, sparse          open, softmax

Sparsity is the encoder's (section 4.2); blocking is the encoder's and the decoder's, each with its number of segments.
With `NoPrefix()` the sparse ones are those of Table 4's fine-tuned models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from precis.config import Settings, nearest
from precis.errors import UserError
from precis.nn.normalizers import AttentionNormalizer, Gumbel, Softmax, TopP
from precis.tuning.discourse import LOWER_SHARE, Blocked, Hierarchical, Layer, Open, Tuning, Uniform
from precis.tuning.prefix import NoPrefix, Prefix


@final
@dataclass(frozen=True, kw_only=True)
class MethodSettings(Settings):
    """What the methods are built from; each reads what it needs.

    Attributes:
        encoder_segments: 1, 2 or 3 in the paper (Table 7).
        decoder_segments: 1 or 2 in the paper.
        mass: TruncSA's share of the attention; the paper has 0.95.
        temperature: SoftSA's (1, 0.1 or 0.01 in the paper) and TruncSA's (1 or 0.1); see `Gumbel` and `TopP`.
        lower_share: part of a stack that is lower, in (0, 1].
        target_length: tokens that a summary is expected to have; see `Tuning`.

    Raises:
        UserError: a value is out of range.
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
                raise UserError(f"MethodSettings({name}={getattr(self, name)}): it is a share in (0, 1]")
        if not 0.0 < self.temperature < math.inf:
            raise UserError(f"MethodSettings(temperature={self.temperature}): it must be a number above 0")


USUAL = MethodSettings()
Method = Callable[[Prefix | NoPrefix, MethodSettings], Tuning]


def prefix_tuning(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Li & Liang's: open and dense everywhere."""
    return Tuning(prefix=prefix, target_length=settings.target_length)


def uniblock(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Blocks in every layer (section 4.1 i)."""
    return Tuning(
        prefix=prefix,
        encoder=Uniform(layer=Layer(prefix=Blocked(segments=settings.encoder_segments))),
        decoder=Uniform(layer=Layer(prefix=Blocked(segments=settings.decoder_segments))),
        target_length=settings.target_length,
    )


def hierblock(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Blocks in the lower layers (section 4.1 ii)."""
    return _blocked_below(prefix, settings, Softmax())


def truncsa(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Truncated in every layer of the encoder (section 4.2 a)."""
    return _sparse(prefix, settings, TopP(mass=settings.mass, temperature=settings.temperature))


def softsa(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Softly sparse in every layer of the encoder (section 4.2 b)."""
    return _sparse(prefix, settings, Gumbel(temperature=settings.temperature))


def htruncsa(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Truncated in the encoder's lower layers (section 4.2 c)."""
    return _sparse_below(prefix, settings, TopP(mass=settings.mass, temperature=settings.temperature))


def hsoftsa(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Softly sparse in the encoder's lower layers (section 4.2 d)."""
    return _sparse_below(prefix, settings, Gumbel(temperature=settings.temperature))


def hierblock_softsa(prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """Blocked and softly sparse below, open and dense above (section 4.2 e); the decoder is blocked only."""
    return _blocked_below(prefix, settings, Gumbel(temperature=settings.temperature))


def _sparse(prefix: Prefix | NoPrefix, settings: MethodSettings, normalizer: AttentionNormalizer) -> Tuning:
    plan = Uniform(layer=Layer(normalizer=normalizer))
    return Tuning(prefix=prefix, encoder=plan, target_length=settings.target_length)


def _sparse_below(
    prefix: Prefix | NoPrefix, settings: MethodSettings, normalizer: AttentionNormalizer
) -> Tuning:
    plan = Hierarchical(lower=Layer(normalizer=normalizer), lower_share=settings.lower_share)
    return Tuning(prefix=prefix, encoder=plan, target_length=settings.target_length)


def _blocked_below(
    prefix: Prefix | NoPrefix, settings: MethodSettings, normalizer: AttentionNormalizer
) -> Tuning:
    def plan(segments: int, lower: AttentionNormalizer) -> Hierarchical:
        blocked = Layer(prefix=Blocked(segments=segments), normalizer=lower)
        return Hierarchical(lower=blocked, upper=Layer(prefix=Open()), lower_share=settings.lower_share)

    return Tuning(
        prefix=prefix,
        encoder=plan(settings.encoder_segments, normalizer),
        decoder=plan(settings.decoder_segments, Softmax()),
        target_length=settings.target_length,
    )


METHODS: dict[str, Method] = {
    "prefix": prefix_tuning,
    "uniblock": uniblock,
    "hierblock": hierblock,
    "truncsa": truncsa,
    "softsa": softsa,
    "htruncsa": htruncsa,
    "hsoftsa": hsoftsa,
    "hierblock+softsa": hierblock_softsa,
}
"""The paper's methods by the names that the command line knows."""

_BLOCKED = ("uniblock", "hierblock", "hierblock+softsa")
_TRUNCATED, _SOFT = ("truncsa", "htruncsa"), ("softsa", "hsoftsa", "hierblock+softsa")
READERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "encoder_segments": _BLOCKED,
        "decoder_segments": _BLOCKED,
        "mass": _TRUNCATED,
        "temperature": (*_TRUNCATED, *_SOFT),
        "lower_share": ("hierblock", "htruncsa", "hsoftsa", "hierblock+softsa"),
        "target_length": _BLOCKED,
    }
)
"""The methods that each of `MethodSettings` matters to."""


def check_name(name: str) -> None:
    """Refuse a name that is none of `METHODS`.

    Raises:
        UserError: there is no method of that name.
    """
    if name not in METHODS:
        raise UserError(f"no method {name!r}{nearest(name, METHODS)}")


def method(name: str, prefix: Prefix | NoPrefix, settings: MethodSettings = USUAL) -> Tuning:
    """One of the paper's methods by name.

    Raises:
        UserError: there is none of that name.

    Example:
        >>> method("hierblock+softsa", precis.Prefix(length=10)).prefix.length
        10
    """
    check_name(name)
    return METHODS[name](prefix, settings)
