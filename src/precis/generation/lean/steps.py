"""What the decoding loop needs of a model: one step of all rows at a time.

A model gets a lean loop by one file that says what a step of its decoder does (`lean_zcodepp.py`): a `PackedDecoder`
with its matrices made ready, and its `Step` over the caches of one batch. The caches grow (`Steps`), or have a fixed
shape (`lean_static.py`); a `Step` cannot tell. Searching, blocking and stopping know nothing of models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from precis.generation.lean.cache import Source, SourceCache, Target, TargetCache, source_keys
from precis.nn.attention import MultiHeadAttention


class Step(Protocol):
    """Reads one more token of each beam, and gives the logits of the next in fp32, in memory of the caller's own."""

    def __call__(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        """`parents`: which beam of the last step each beam goes on from; None: each from itself."""


class PackedDecoder(ABC):
    """A decoder and its head with matrices in a layout for few rows; copies of the model's.

    Attributes:
        dtype: of states, keys and values.
        source_attentions: of each layer, for the source's keys and values.
        tables: modules of the model's own that a step reads from, not copies.
    """

    dtype: torch.dtype
    source_attentions: Sequence[MultiHeadAttention]
    tables: Sequence[nn.Module]

    @abstractmethod
    def step(self, source: Source, target: Target, *, beams: int, room: int) -> Step:
        """One step over these caches.

        Args:
            room: the most steps that `target` will ever hold.
        """

    @abstractmethod
    def check(self, steps: int) -> None:
        """Raise ValueError where the decoder cannot read so many tokens."""


@final
class Steps:
    """A batch while it is decoded: b documents with k beams each, in caches that grow."""

    def __init__(
        self,
        packed: PackedDecoder,
        source: Float[Tensor, "b s d"],
        valid: Bool[Tensor, "b s"] | None,
        *,
        beams: int,
        steps: int,
    ) -> None:
        """Keys and values of the source are computed here, once.

        Args:
            source: what the encoder gave.
            valid: True at real tokens of the source; None: nothing is padded.
            steps: the most tokens that will be read.

        Raises:
            ValueError: the decoder has positions for fewer steps.
        """
        packed.check(steps)
        kept = source_keys(packed.source_attentions, source, packed.dtype)
        self._source = SourceCache(kept, valid)
        self._target = TargetCache(
            layers=len(kept),
            documents=source.shape[0],
            heads=kept[0][0].shape[1],
            head_width=kept[0][0].shape[3],
            beams=beams,
            steps=steps,
            dtype=packed.dtype,
            device=source.device,
        )
        self._step = packed.step(self._source, self._target, beams=beams, room=steps)

    def logits(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        """Read one more token of each beam; see `Step`."""
        return self._step(tokens, parents)

    def keep(self, documents: Int[Tensor, " m"]) -> None:
        """Go on with these documents only (rows of the present batch, ascending)."""
        self._source.keep(documents)
        self._target.keep(documents)
