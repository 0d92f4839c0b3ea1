"""How scores become attention weights: the `normalize` slot of `attend`.

`Softmax` is the only member so far; the sparse ones of the discourse paper (Eqs. 2 and 3) are further leaves.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor


class Normalizer(ABC):
    """Turns scores into non-negative weights over the last axis. Scores of forbidden keys are the dtype's minimum."""

    @abstractmethod
    def __call__(self, scores: Float[Tensor, "b h i j"]) -> Float[Tensor, "b h i j"]: ...


@final
class Softmax(Normalizer):
    """The usual weights: positive and summing to one."""

    def __call__(self, scores: Float[Tensor, "b h i j"]) -> Float[Tensor, "b h i j"]:
        return torch.softmax(scores, dim=-1)
