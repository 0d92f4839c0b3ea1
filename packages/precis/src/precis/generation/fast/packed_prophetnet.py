"""ProphetNet's packed decoder: the main state reads a token, stream 0 predicts the next, and other streams draft.

All states go through every matrix together. It omits work that only training needs: unused streams, and everything of
the main state in the last layer except its keys and values, which later tokens attend to.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.generation.fast.key_value_cache import Source, Target, mix, mix_with_own
from precis.generation.fast.packed_decoder import Apply, Pack, PackedDecoder, heads_of, rows_of
from precis.generation.fast.packed_linear import Weights, pack_together
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.nn.attention import MultiHeadAttention
from precis.nn.blocks import FeedForward
from precis.nn.dropout import Dropout
from precis.nn.stream_decoder import StreamDecoder, StreamDecoderLayer
from precis.nn.transformer import AbsolutePositions, PositionRows


@final
class PackedProphetNet(PackedDecoder):
    """The decoder and head of a ProphetNet.

    A token has a main state, the state of stream 0, and one for each drafting stream.
    """

    known = (
        StreamDecoder, StreamDecoderLayer, MultiHeadAttention, FeedForward, AbsolutePositions, PositionRows,
        nn.ModuleList, nn.Embedding, nn.Linear, nn.LayerNorm, Dropout,
    )  # fmt: skip

    def __init__(self, model: ProphetNetForConditionalGeneration, *, rows: int, weights: Weights) -> None:
        super().__init__(model, rows=rows, weights=weights)
        decoder = model.get_decoder()
        self.positions = decoder.positions
        self.tables = [self.embedding, self.positions]
        self.streams = decoder.streams.weight.detach()
        self.longest = decoder.longest
        self.norm = _norm(decoder.norm)
        self.buckets = decoder.buckets
        self.source_attentions = [layer.cross_attention for layer in decoder.layers]
        self._pack_now()

    @cached_property
    def layers(self) -> list[_Layer]:
        ready = partial(pack_together, rows=2 * self._rows, weights=self._weights)  # each row has two states
        return [_Layer(layer, ready) for layer in self._model.get_decoder().layers]

    def check(self, steps: int) -> None:
        if steps > self.longest:
            raise ValueError(
                f"{steps} target tokens: this model has positions for {self.longest}; request fewer"
            )

    def by_distance(self, furthest: int) -> Int[Tensor, " r"]:
        """Return buckets, whose scores are linear in the query's hidden state."""
        return self.buckets(torch.arange(furthest, -1, -1, device=self.streams.device))

    def _states(
        self, tokens: Int[Tensor, "b m"], source: Source, target: Target, *, drafts: int
    ) -> Float[Tensor, "pbm d"]:
        slots = target.lookback(drafts + 2)  # (s #m t)
        buckets = torch.cat([slots, target.entries[-1:].expand(*slots.shape[:-1], 1)], dim=-1)
        states = self.norm(self._start(tokens, target, drafts)).to(self.dtype)
        for index, layer in enumerate(self.layers):
            last, count = layer is self.layers[-1], tokens.shape[1]
            states = layer(index, states, source, target, buckets=buckets, tokens=count, last=last)
        return states

    def _start(self, tokens: Int[Tensor, "b m"], target: Target, drafts: int) -> Float[Tensor, "sbm d"]:
        table = self.positions.rows.weight
        main = self.embedding(tokens.flatten()) + target.at_place(table, ahead=1)
        states = [main]
        for stream in range(drafts + 1):
            row = self.streams[stream - 1]  # stream 0 has the last row, as in the released weights
            states.append((row + target.at_place(table, ahead=stream + 2)).expand_as(main))
        return torch.cat(states)


@final
class _Layer:
    """One layer: its weights and its forward pass."""

    def __init__(self, layer: nn.Module, ready: Pack) -> None:
        assert isinstance(layer, StreamDecoderLayer)
        own, source = layer.self_attention, layer.cross_attention
        self.heads, self.scale = own.heads, own.scale
        self.project = ready(own.query, own.key, own.value, layer.position_scores)
        self.self_output = ready(own.output)
        self.self_norm = _norm(layer.self_norm)
        self.source_query = ready(source.query)
        self.source_output = ready(source.output)
        self.source_norm = _norm(layer.cross_norm)
        self.up = ready(layer.feed_forward.up)
        self.activation = layer.feed_forward.activation
        self.down = ready(layer.feed_forward.down)
        self.feed_forward_norm = _norm(layer.feed_forward_norm)

    def __call__(
        self,
        index: int,
        states: Float[Tensor, "sbm d"],
        source: Source,
        target: Target,
        *,
        buckets: Int[Tensor, " s #m to"],
        tokens: int,
        last: bool = False,
    ) -> Float[Tensor, "pbm d"]:
        """Pass all states through the layer; `buckets` are of the distances to the slots and, last, to the own key."""
        shape = {"documents": target.documents, "tokens": tokens, "heads": self.heads}
        projected, width = self.project(states), states.shape[-1]
        q, k, v = (heads_of(part, **shape) for part in projected[:, : 3 * width].chunk(3, dim=-1))
        keys, values = target.extend(index, k[:, :, :tokens], v[:, :, :tokens])
        bias = self._bias(projected[:, 3 * width :], buckets, target)
        if last:  # only predicting states go on: later reads need the main states' keys and values alone
            q, k, v, bias = (part[:, :, tokens:] for part in (q, k, v, bias))
            states = states[len(states) // len(buckets) :]
        mixed = mix_with_own(q, keys, values, k, v, bias=bias, scale=self.scale)
        states = self.self_norm(states + self.self_output(rows_of(mixed, tokens=tokens)))
        q = heads_of(self.source_query(states), **shape)
        crossed = mix(q, *source[index], bias=source.bias, scale=self.scale)
        states = self.source_norm(states + self.source_output(rows_of(crossed, tokens=tokens)))
        return self.feed_forward_norm(states + self.down(self.activation(self.up(states))))

    def _bias(
        self, scores: Float[Tensor, "sbm rh"], buckets: Int[Tensor, " s #m to"], target: Target
    ) -> Float[Tensor, "b h sm jo"]:
        """Return position scores of all slots and, last, of a state's own key, hidden from the main state."""
        parts = scores.view(len(buckets), target.documents, -1, scores.shape[-1] // self.heads, self.heads)
        by_bucket = parts.permute(1, 4, 0, 2, 3)  # (s b m r h) -> (b h s m r)
        placed = by_bucket.gather(-1, buckets.expand(*by_bucket.shape[:-1], -1))
        placed[:, :, 0, :, -1] = -torch.inf
        return target.bias(placed[..., :-1], placed[..., -1:])


def _norm(norm: nn.LayerNorm) -> Apply:
    shape, weight, bias, eps = norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: F.layer_norm(x, shape, weight.to(x.dtype), bias.to(x.dtype), eps)
