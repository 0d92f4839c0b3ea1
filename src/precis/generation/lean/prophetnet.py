"""One decoding step of ProphetNet: the main state, which reads a token, and stream 0's, which predicts the next.

Both go through every matrix together. What only training needs is left out: the other streams, and in the last layer
everything of the main state but its keys and values, which is all that later steps see of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.generation.lean.cache import Source, Target, mix
from precis.generation.lean.drafts import mix_with_own
from precis.generation.lean.known import why_not_as_known
from precis.generation.lean.linear import Linear, Weights, pack, states_dtype
from precis.generation.lean.steps import PackedDecoder, Step
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration
from precis.nn.attention import MultiHeadAttention
from precis.nn.blocks import Activation
from precis.nn.dropout import Dropout
from precis.nn.stream_decoder import StreamDecoder, StreamDecoderLayer
from precis.nn.transformer import AbsolutePositions, PositionRows, PostNormFeedForward

Pack = Callable[..., Linear]
Norm = Callable[[Tensor], Tensor]

_KNOWN = (
    StreamDecoder,
    StreamDecoderLayer,
    MultiHeadAttention,
    PostNormFeedForward,
    AbsolutePositions,
    PositionRows,
    nn.ModuleList,
    nn.Embedding,
    nn.Linear,
    nn.LayerNorm,
    Dropout,
)


def why_not_prophetnet(model: ProphetNetForConditionalGeneration) -> str | None:
    """Why a step of this model would not be what its modules do; None where it is."""
    return why_not_as_known(model, _KNOWN)


@final
class PackedProphetNet(PackedDecoder):
    """The decoder and head of a ProphetNet.

    Args:
        rows: rows that a step will mostly have (documents times beams); the matrices see twice as many.
    """

    def __init__(self, model: ProphetNetForConditionalGeneration, *, rows: int, weights: Weights) -> None:
        decoder = model.get_decoder()
        self.dtype = states_dtype(weights, model.lm_head.weight.dtype)

        def ready(*linears: nn.Linear) -> Linear:
            """One matrix for the outputs of several."""
            weight = torch.cat([linear.weight.detach() for linear in linears])
            bias = torch.cat([linear.bias.detach() for linear in linears])
            return pack(weight, bias, rows=2 * rows, weights=weights)

        self.embedding = model.get_input_embeddings()
        self.positions = decoder.positions
        self.tables = [self.embedding, self.positions]
        self.streams = decoder.streams.weight.detach()
        self.longest = decoder.longest
        self.norm = _norm(decoder.norm)
        self.buckets = decoder.buckets
        self.layers = [_layer(layer, ready) for layer in decoder.layers]
        self.source_attentions = [layer.source_attention for layer in self.layers]
        self.head = pack(model.lm_head.weight, None, rows=rows, weights=weights)

    def step(self, source: Source, target: Target, *, beams: int, room: int) -> Step:
        return _ProphetNetStep(self, source, target, beams=beams, room=room)

    def check(self, steps: int) -> None:
        if steps > self.longest:
            raise ValueError(
                f"{steps} target tokens: this model has positions for {self.longest}; ask for fewer"
            )


@final
class _ProphetNetStep:
    def __init__(
        self, packed: PackedProphetNet, source: Source, target: Target, *, beams: int, room: int
    ) -> None:
        self._packed, self._source, self._target, self._beams = packed, source, target, beams
        distances = torch.arange(room, -1, -1, device=packed.streams.device)  # ..., 2, 1, 0
        self._buckets = packed.buckets(distances)

    def __call__(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        packed, target = self._packed, self._target
        target.advance(parents)
        # of the distances t-1 .. 0, and t .. 1: a predicting state stands one farther
        rows = target.lookback(self._buckets), target.lookback(self._buckets, ahead=1)
        states = self._start(tokens)
        *before, last = enumerate(packed.layers)
        for index, layer in before:
            states = self._layer(index, layer, states, rows)
        states = self._layer(*last, states, rows, last=True)
        return packed.head(states).float().unflatten(0, (-1, self._beams))

    def _start(self, tokens: Int[Tensor, "b k"]) -> Float[Tensor, "2*b*k d"]:
        packed, target, table = self._packed, self._target, self._packed.positions.rows.weight
        main = packed.embedding(tokens.flatten()) + target.at_place(table, ahead=1)
        # stream 0 has the last row
        predicting = (packed.streams[-1] + target.at_place(table, ahead=2)).expand_as(main)
        return packed.norm(torch.cat([main, predicting])).to(packed.dtype)

    def _layer(
        self,
        index: int,
        layer: ProphetNetLayer,
        states: Float[Tensor, "2*b*k d"],
        rows: tuple[Int[Tensor, " t"], Int[Tensor, " t"]],
        *,
        last: bool = False,
    ) -> Float[Tensor, "2*b*k d"]:
        """Both states through a layer; of the last one only the predicting state comes out.

        Args:
            rows: of the position scores that the main and the predicting state's slots have.
        """
        heads = layer.heads
        width = states.shape[-1]
        projected = layer.project(states)
        q, k, v = (self._heads(part, heads) for part in projected[:, : 3 * width].chunk(3, dim=-1))
        scores = projected[:, 3 * width :].unflatten(-1, (-1, heads))  # (2*b*k r h)
        beams = self._beams
        main_keys, main_values = self._target.extend(index, k[:, :, :beams], v[:, :, :beams])
        bias = self._bias(scores, *rows)
        if last:  # later steps see the main state's keys and values alone
            q, k, v, bias = (part[:, :, beams:] for part in (q, k, v, bias))
            states = states[len(states) // 2 :]
        mixed = mix_with_own(q, main_keys, main_values, k, v, bias, scale=layer.scale)
        states = layer.self_norm(states + layer.self_output(self._rows(mixed)))
        q = self._heads(layer.source_query(states), heads)
        crossed = mix(q, *self._source[index], bias=self._source.bias, scale=layer.scale)
        states = layer.source_norm(states + layer.source_output(self._rows(crossed)))
        hidden = layer.activation(layer.up(states))
        return layer.feed_forward_norm(states + layer.down(hidden))

    def _bias(
        self, scores: Float[Tensor, "2*b*k r h"], near: Int[Tensor, " t"], far: Int[Tensor, " t"]
    ) -> Float[Tensor, "b h 2*k j+1"]:
        """Position scores of all slots and, last, of a state's own key, which the main state does not look at."""
        main, predicting = scores.unflatten(0, (2, -1, self._beams)).permute(0, 1, 4, 2, 3)  # 2 x (b h k r)
        main_slots = self._target.bias(main.index_select(-1, near))
        slots = self._target.bias(predicting.index_select(-1, far))
        none = torch.full_like(main[..., :1], -torch.inf)
        own = predicting.index_select(-1, self._buckets[-1:])
        return torch.cat([torch.cat([main_slots, none], -1), torch.cat([slots, own], -1)], dim=-2)

    def _heads(self, states: Float[Tensor, "n*b*k he"], heads: int) -> Float[Tensor, "b h n*k e"]:
        """n states of each beam, as rows of one document."""
        kinds = states.shape[0] // (self._target.documents * self._beams)
        parts = states.unflatten(0, (kinds, -1, self._beams)).unflatten(-1, (heads, -1))  # (n b k h e)
        return parts.permute(1, 3, 0, 2, 4).flatten(2, 3)

    def _rows(self, mixed: Float[Tensor, "b h n*k e"]) -> Float[Tensor, "n*b*k he"]:
        parts = mixed.unflatten(2, (-1, self._beams))  # (b h n k e)
        return parts.permute(2, 0, 3, 1, 4).flatten(3).flatten(0, 2)


@final
@dataclass(frozen=True)
class ProphetNetLayer:
    """What a step does with one layer's weights."""

    heads: int
    scale: float
    project: Linear  # queries, keys, values and position scores
    self_output: Linear
    self_norm: Norm
    source_query: Linear
    source_attention: MultiHeadAttention  # for the source's keys and values, many rows: not packed
    source_output: Linear
    source_norm: Norm
    up: Linear
    activation: Activation
    down: Linear
    feed_forward_norm: Norm


def _layer(layer: nn.Module, ready: Pack) -> ProphetNetLayer:
    assert isinstance(layer, StreamDecoderLayer)
    own, source = layer.self_attention, layer.cross_attention
    return ProphetNetLayer(
        heads=own.heads,
        scale=own.scale,
        project=ready(own.query, own.key, own.value, layer.position_scores),
        self_output=ready(own.output),
        self_norm=_norm(layer.self_norm),
        source_query=ready(source.query),
        source_attention=source,
        source_output=ready(source.output),
        source_norm=_norm(layer.cross_norm),
        up=ready(layer.feed_forward.up),
        activation=layer.feed_forward.activation,
        down=ready(layer.feed_forward.down),
        feed_forward_norm=_norm(layer.feed_forward_norm),
    )


def _norm(norm: nn.LayerNorm) -> Norm:
    weight, bias = norm.weight.detach(), norm.bias.detach()

    def normed(states: Tensor) -> Tensor:
        return F.layer_norm(
            states, norm.normalized_shape, weight.to(states.dtype), bias.to(states.dtype), norm.eps
        )

    return normed
