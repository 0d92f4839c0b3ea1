"""What the decoding loop needs of a model: one step of all rows at a time.

A model gets a lean loop by one file that says what a step of its decoder does (`lean_zcodepp.py`): a `PackedDecoder`
with its matrices made ready, and the `Steps` of one batch. Searching, blocking and stopping know nothing of models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float, Int
from torch import Tensor


class Steps(ABC):
    """A batch while it is decoded: b documents with k beams each."""

    @abstractmethod
    def logits(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        """Read one more token of each beam, and give the logits of the next in fp32, in memory of the caller's own.

        Args:
            parents: which beam of the last step each beam goes on from; None: each from itself.
        """

    @abstractmethod
    def keep(self, documents: Int[Tensor, " m"]) -> None:
        """Go on with these documents only (rows of the present batch, ascending)."""


class PackedDecoder(ABC):
    """A decoder and its head with matrices in a layout for few rows; copies of the model's."""

    @abstractmethod
    def start(
        self, source: Float[Tensor, "b s d"], valid: Bool[Tensor, "b s"] | None, *, beams: int, steps: int
    ) -> Steps:
        """Begin a batch: keys and values of the source are computed here, once.

        Args:
            source: what the encoder gave.
            valid: True at real tokens of the source; None: nothing is padded.
            steps: the most tokens that will be read.
        """
