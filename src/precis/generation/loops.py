"""Which loop writes the tokens, ours or transformers' `generate`: a type, chosen when a decoder is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from precis.config import Settings
from precis.generation.lean.linear import AsGiven, Weights


@final
@dataclass(frozen=True, kw_only=True)
class Automatic(Settings):
    """The lean loop for models that it knows and settings that it has rules for, `generate` for everything else."""


@final
@dataclass(frozen=True, kw_only=True)
class Lean(Settings):
    """The lean loop, and an error where it cannot be used."""

    weights: Weights = field(default_factory=AsGiven)


@final
@dataclass(frozen=True, kw_only=True)
class Drafting(Settings):
    """Documents one at a time, by greedy search, each pass verifying what the model's own predicting streams drafted;
    an error where the model has none. See `precis.generation.lean.speculative`.
    """

    weights: Weights = field(default_factory=AsGiven)


@final
@dataclass(frozen=True, kw_only=True)
class Generate(Settings):
    """transformers' `generate`."""


Loop = Automatic | Lean | Drafting | Generate
AUTOMATIC = Automatic()
