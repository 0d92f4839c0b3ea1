"""One document's decoder as drafting uses it: read some tokens at once, look ahead from each, forget the wrong ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from precis.models.outputs import new_cache


class Passes(ABC):
    """The decoder's state for one document."""

    @abstractmethod
    def read(self, tokens: Sequence[int], drafts: int) -> tuple[Float[Tensor, "t v"], Float[Tensor, "n t d"]]:
        """Logits in fp32 of the token after each of these, and the states that look 1 to `drafts` farther from it."""

    @abstractmethod
    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        """Logits in fp32 of states that look ahead."""

    @abstractmethod
    def forget(self, count: int) -> None:
        """Take back the last tokens that were read."""


@final
class ModulePasses(Passes):
    """By the model's own modules and a cache that grows: any device, any adapter.

    Args:
        model: one of `precis.models.PREDICTS_FUTURE`.
        source: what its encoder gave.
    """

    def __init__(self, model: PreTrainedModel, source: Float[Tensor, "1 s d"]) -> None:
        self._model, self._source = model, source
        self._cache = new_cache(model.config)

    def read(self, tokens: Sequence[int], drafts: int) -> tuple[Float[Tensor, "t v"], Float[Tensor, "n t d"]]:
        fed = torch.tensor([tokens], device=self._source.device)
        logits, ahead = self._model.look_ahead(fed, self._source, cache=self._cache, streams=drafts)
        return logits[0].float(), ahead[0]

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        return self._model.get_output_embeddings()(ahead).float()

    def forget(self, count: int) -> None:
        if count:
            self._cache.crop(-count)
