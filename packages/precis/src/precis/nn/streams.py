"""Main and predicting streams of a decoder: their positions and their visible keys (ProphetNet section 2.3).

The main stream reads the target so far, as in any decoder. A predicting state predicts the token of one place from
the main stream up to an earlier place: it sees those main keys and its own key, which only it sees (Eqs. 8, 9).

    main       y0   y1   y2          keys and values of all streams
    stream 0    \\->  \\->  \\->       place i from main keys 0..i       (the next token)
    stream 1    \\------>  \\---->    place i from main keys 0..i-1     (the one after it)

All streams share every weight; they differ in their initial vector, and in the distances to their keys. The paper
counts from stream 1 and numbers a prediction by its step; the released code and we number it by the place
that it predicts from. Both describe the same set of states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.nn.prefix_columns import StackPrefix
from precis.nn.relative_positions import Buckets
from precis.nn.score_bias import ScoreBias


@final
@dataclass(frozen=True)
class StreamLayout:
    """A layout of p predicting states: each has a stream, the place it predicts, and the last main place it sees."""

    streams: Int[Tensor, p]
    places: Int[Tensor, p]
    visible: Int[Tensor, p]

    def __len__(self) -> int:
        return self.places.shape[0]


def whole_target(
    first: int, length: int, streams: range, *, device: torch.device | None = None
) -> StreamLayout:
    """Build the training layout: every stream predicts each place of `first`..`first + length - 1`, stream by stream.

    Stream k sees the main places up to k before the one it predicts. Its first k places see only place 0 and must be
    left out of the loss (Eq. 3 sums over T - k places).
    """
    places = torch.arange(first, first + length, device=device)
    numbers = torch.tensor([*streams], device=device, dtype=torch.long)
    visible = (places[None, :] - numbers[:, None]).clamp(min=0)  # (n t)
    return StreamLayout(numbers.repeat_interleave(length), places.repeat(len(numbers)), visible.flatten())


def ahead(first: int, length: int, streams: range, *, device: torch.device | None = None) -> StreamLayout:
    """Build the decoding layout: every stream looks ahead from each of `first`..`first + length - 1`, in stream order.

    Stream k predicts k places after the one it looks from. With only stream 0 this equals `whole_target`.
    """
    seen = torch.arange(first, first + length, device=device)
    numbers = torch.tensor([*streams], device=device, dtype=torch.long)
    places = (seen[None, :] + numbers[:, None]).flatten()  # (n t)
    return StreamLayout(numbers.repeat_interleave(length), places, seen.repeat(len(numbers)))


@final
@dataclass(frozen=True)
class Sight:
    """The visibility of j main keys and, last, of the own key, for t main states followed by p predicting states.

    Computed once and shared by all layers.
    """

    mask: Bool[Tensor, "#b 1 tp jo"]
    buckets: Int[Tensor, "#b tp jo"]


def sight(
    layout: StreamLayout,
    *,
    first: int,
    length: int,
    keys: int,
    buckets: Buckets,
    gap: int,
    positions: Int[Tensor, "#b t"] | None = None,
    valid: Bool[Tensor, "#b 1 #t j"] | None = None,
) -> Sight:
    """Compute masks and distances of main places `first`..`first + length - 1` and of the predicting states.

    Args:
        keys: number of main keys; those after `first + length - 1` are free room in a static cache.
        gap: distance between a predicting state and the main key of its own place. The main key of place i holds
            token i - 1. ProphetNet counts tokens, so the gap is 1; without stream 0 that key is hidden, and it is 0.
        positions: the text position of each main state's token, if it differs from its place, as in
            pre-training on spans of a longer text (section 2.4). Not supported with a cache.
        valid: True at main keys of real tokens, in addition to the causal rule.
    """
    device = layout.places.device
    places = torch.arange(first, first + length, device=device)
    indices = torch.arange(keys, device=device)
    seen = torch.cat([places, layout.visible])  # (t+p) the last visible key of each state
    allowed = (indices[None, :] <= seen[:, None])[None, None]  # (1 1 t+p j)
    if valid is not None:
        allowed = allowed & _of_all(valid, first, length, layout)
    own = (torch.arange(length + layout.places.shape[0], device=device) >= length)[None, None, :, None]
    if positions is None:
        asking, looked_at = torch.cat([places, layout.places + gap])[None], indices[None]
    else:
        asking = torch.cat([positions, positions[:, layout.places] + gap], dim=1)
        looked_at = positions
    distance = asking[:, :, None] - looked_at[:, None, :]  # (#b t+p j)
    distance = torch.nn.functional.pad(distance, (0, 1))  # the own key has distance 0
    mask = torch.cat([allowed, own.expand(allowed.shape[0], 1, -1, 1)], dim=-1)
    return Sight(mask=mask, buckets=buckets(distance))


def _of_all(
    valid: Bool[Tensor, "#b 1 #t j"], first: int, length: int, layout: StreamLayout
) -> Bool[Tensor, "#b 1 #tp j"]:
    """Extend a mask of main states to predicting states: each has the row of the last place it sees."""
    if valid.shape[-2] == 1:
        return valid
    seen = (layout.visible - first).clamp(min=0)
    rows = torch.cat([torch.arange(length, device=valid.device), seen])
    return valid[:, :, rows]


def beside(prefix: StackPrefix, layout: StreamLayout, *, past: int, length: int) -> StackPrefix:
    """Extend a prefix to predicting states: each has the segment of the last main place that it sees."""
    rows = (layout.visible - past).clamp(min=0)
    return prefix.cut(lambda segments: torch.cat([segments[:, :length], segments[:, rows]], dim=1))


@final
@dataclass(frozen=True)
class StateBucketBias(ScoreBias):
    """Position scores linear in the query's hidden state: each state has a number for each head and bucket.

    The paper says "the same as used in T5", whose scores do not depend on the state. In the released code they are
    linear in it. We follow the code.
    """

    by_bucket: Float[Tensor, "b h i r"]
    buckets: Int[Tensor, "#b i j"]

    def rows(self, start: int, stop: int, queries: Tensor, keys: Tensor) -> Float[Tensor, "b h _ j"]:
        scores = self.by_bucket[..., start:stop, :]
        index = self.buckets[:, None, start:stop, :].expand(*scores.shape[:2], -1, -1)
        return scores.gather(-1, index)


def attenuated(streams: int, gamma: float) -> list[float]:
    """Return the weights of the streams' losses, gamma^k normalised to a sum of one (ProphetNet Eq. 10)."""
    powers = [gamma**stream for stream in range(streams)]
    return [power / sum(powers) for power in powers]
