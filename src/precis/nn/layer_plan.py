"""Layer plan: layer index -> what that layer does differently.

Fusion-in-encoder (Z-Code++ section 2.3) is the plan "m local layers, then n global ones".
"""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Local:
    """Attention stays inside chunks of this many positions."""

    chunk_length: int

    def __post_init__(self) -> None:
        if self.chunk_length < 1:
            raise ValueError(
                f"chunk_length={self.chunk_length} must be at least 1; the paper uses 256 or 512"
            )


@final
@dataclass(frozen=True)
class Global:
    """Attention sees the whole input."""


Scope = Local | Global
LayerPlan = tuple[Scope, ...]


def dense_plan(layers: int) -> LayerPlan:
    """Every layer sees everything: the plain encoder."""
    return (Global(),) * layers


def fusion_plan(layers: int, *, chunk_length: int, global_layers: int = 1) -> LayerPlan:
    """m = layers - n local layers of chunk length l, then n global layers; cost O(m N l + n N^2).

    Raises:
        ValueError: `global_layers` is not between 0 and `layers`.
    """
    if not 0 <= global_layers <= layers:
        raise ValueError(
            f"global_layers={global_layers} must be between 0 and the {layers} layers of the encoder"
        )
    return (Local(chunk_length),) * (layers - global_layers) + (Global(),) * global_layers


def runs(plan: LayerPlan) -> list[tuple[Scope, range]]:
    """Neighbouring layers with the same choice, as (choice, layer indices)."""
    starts = [index for index in range(len(plan)) if index == 0 or plan[index] != plan[index - 1]]
    ends = [*starts[1:], len(plan)]
    return [(plan[start], range(start, end)) for start, end in zip(starts, ends, strict=True)]
