"""ProphetNet's packed decoder, reading several tokens of one document at once and looking ahead from each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from precis.generation.lean.cache import mix, source_keys
from precis.generation.lean.drafts import (
    DraftCache,
    View,
    heads_of,
    mix_with_own,
    rows_of,
    view,
)
from precis.generation.lean.passes import Passes
from precis.generation.lean.prophetnet import PackedProphetNet, ProphetNetLayer
from precis.nn.stream_decoder import GAP


@final
class ProphetNetPasses(Passes):
    """The main states of the tokens, and of stream 0 and those that draft a state for each."""

    def __init__(self, packed: PackedProphetNet, source: Float[Tensor, "1 s d"], *, steps: int) -> None:
        """`steps`: the most tokens that will be read."""
        packed.check(steps)
        self._packed = packed
        self._source = source_keys(packed.source_attentions, source, packed.dtype)
        self._target = DraftCache.like(self._source, room=steps)

    def read(self, tokens: Sequence[int], drafts: int) -> tuple[Float[Tensor, "t v"], Float[Tensor, "n t d"]]:
        packed, length = self._packed, len(tokens)
        seen = view(
            self._target.length,
            length,
            range(drafts + 1),
            buckets=packed.buckets,
            gap=GAP,
            like=packed.streams,
        )
        states = self._start(tokens, seen)
        *before, last = enumerate(packed.layers)
        for index, layer in before:
            states = self._layer(index, layer, states, seen, length)
        states = self._layer(*last, states, seen, length, last=True)
        self._target.length += length
        by_stream = states.unflatten(0, (drafts + 1, length))
        return packed.head(by_stream[0]).float(), by_stream[1:]

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        return self._packed.head(ahead).float()

    def forget(self, count: int) -> None:
        self._target.length -= count

    def _start(self, tokens: Sequence[int], seen: View) -> Float[Tensor, "t+p d"]:
        packed, first, layout = self._packed, self._target.length, seen.layout
        table = packed.positions.rows.weight
        fed = torch.tensor(tokens, device=table.device)
        main = packed.embedding(fed) + table[first + 1 : first + 1 + len(tokens)]
        rows = (layout.streams - 1) % len(packed.streams)
        places = (layout.places + 2).clamp(
            max=len(table) - 1
        )  # a draft past the end of the table is never kept
        states = torch.cat([main, packed.streams[rows] + table[places]])
        return packed.norm(states).to(packed.dtype)

    def _layer(
        self,
        index: int,
        layer: ProphetNetLayer,
        states: Float[Tensor, "t+p d"],
        seen: View,
        length: int,
        *,
        last: bool = False,
    ) -> Float[Tensor, "t+p d"]:
        """All states through a layer; of the last one only the predicting states come out."""
        width, heads = states.shape[-1], layer.heads
        projected = layer.project(states)
        q, k, v = (heads_of(part, heads) for part in projected[:, : 3 * width].chunk(3, dim=-1))
        keys, values = self._target.extend(index, k[:, :, :length], v[:, :, :length])
        scores = projected[:, 3 * width :].unflatten(-1, (-1, heads)).permute(2, 0, 1)  # (h t+p r)
        bias = (scores.gather(-1, seen.buckets.expand(heads, -1, -1)) + seen.hidden.to(scores.dtype))[None]
        if last:  # later passes see the main states' keys and values alone
            q, k, v, bias = (part[:, :, length:] for part in (q, k, v, bias))
            states = states[length:]
        mixed = mix_with_own(q, keys, values, k, v, bias, scale=layer.scale)
        states = layer.self_norm(states + layer.self_output(rows_of(mixed)))
        q = heads_of(layer.source_query(states), heads)
        crossed = mix(q, *self._source[index], bias=None, scale=layer.scale)
        states = layer.source_norm(states + layer.source_output(rows_of(crossed)))
        return layer.feed_forward_norm(states + layer.down(layer.activation(layer.up(states))))
