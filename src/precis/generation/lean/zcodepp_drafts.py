"""Z-Code++'s packed decoder, reading several tokens of one document at once, its streams looking ahead from each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from precis.generation.lean.cache import mix, source_keys
from precis.generation.lean.drafts import DraftCache, heads_of, mix_with_own, rows_of, view
from precis.generation.lean.passes import Passes
from precis.generation.lean.zcodepp import PackedZCodePP
from precis.nn.decoder import GAP


@final
class ZCodePPPasses(Passes):
    """The decoder's states of the tokens, and of each stream that drafts a state for each."""

    def __init__(self, packed: PackedZCodePP, source: Float[Tensor, "1 s d"], *, steps: int) -> None:
        """`steps`: the most tokens that will be read."""
        self._packed = packed
        self._source = source_keys(packed.source_attentions, source, packed.dtype)
        self._heads = self._source[0][0].shape[1]
        self._target = DraftCache.like(self._source, room=steps)

    def read(self, tokens: Sequence[int], drafts: int) -> tuple[Float[Tensor, "t v"], Float[Tensor, "n t d"]]:
        packed, length, heads = self._packed, len(tokens), self._heads
        streams = range(1, drafts + 1)
        seen = view(
            self._target.length,
            length,
            streams,
            buckets=packed.buckets,
            gap=GAP,
            like=packed.position_bias.weight,
        )
        by_head = packed.position_bias(seen.buckets).permute(2, 0, 1)  # (t+p j+1 h) -> (h t+p j+1)
        bias = (by_head + seen.hidden)[None].to(packed.dtype)
        states = packed.embedding(torch.tensor(tokens, device=bias.device))
        if drafts:
            assert packed.streams is not None
            states = torch.cat([states, packed.streams[seen.layout.streams - 1]])
        states = states.to(packed.dtype) * packed.scale
        for index, layer in enumerate(packed.layers):
            projected = layer.project(layer.self_norm(states))
            q, k, v = (heads_of(part, heads) for part in projected.chunk(3, dim=-1))
            keys, values = self._target.extend(index, k[:, :, :length], v[:, :, :length])
            mixed = mix_with_own(q, keys, values, k, v, bias, scale=1.0)
            states = states + layer.self_output(rows_of(mixed))
            q = heads_of(layer.source_query(layer.source_norm(states)), heads)
            crossed = mix(q, *self._source[index], bias=None, scale=1.0)
            states = states + layer.source_output(rows_of(crossed))
            states = states + layer.feed_forward(layer.feed_forward_norm(states))
        self._target.length += length
        states = packed.final_norm(states)
        return packed.head(states[:length]).float(), states[length:].unflatten(0, (drafts, length))

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        return self._packed.head(ahead).float()

    def forget(self, count: int) -> None:
        self._target.length -= count
