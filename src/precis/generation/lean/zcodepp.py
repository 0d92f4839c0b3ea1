"""One decoding step of Z-Code++: T5-1.0 layers over static caches, queries, keys and values in one product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.generation.lean.cache import Source, Target, mix, ready_for_mix
from precis.generation.lean.known import why_not_as_known
from precis.generation.lean.linear import Linear, Weights, pack, states_dtype
from precis.generation.lean.steps import PackedDecoder, Step
from precis.models.zcodepp.model import TOKEN_SIZE, ZCodePPForConditionalGeneration
from precis.nn.attention import FanInLinear, MultiHeadAttention, split_heads
from precis.nn.blocks import DecoderLayer, FanInFeedForward, GatedFeedForward
from precis.nn.decoder import Decoder
from precis.nn.dropout import Dropout
from precis.nn.embeddings import FanInEmbedding

Pack = Callable[..., Linear]
Norm = Callable[[Tensor], Tensor]

_KNOWN = (
    Decoder,
    DecoderLayer,
    MultiHeadAttention,
    FanInFeedForward,
    GatedFeedForward,
    FanInEmbedding,
    FanInLinear,
    nn.ModuleList,
    nn.Linear,
    nn.RMSNorm,
    Dropout,
)


def why_not_zcodepp(model: ZCodePPForConditionalGeneration) -> str | None:
    """Why a step of this model would not be what its modules do; None where it is."""
    return why_not_as_known(model, _KNOWN)


@final
class PackedZCodePP(PackedDecoder):
    """The decoder and head of a Z-Code++ model.

    Args:
        rows: rows that a step will mostly have (documents times beams).
    """

    def __init__(self, model: ZCodePPForConditionalGeneration, *, rows: int, weights: Weights) -> None:
        decoder = model.get_decoder()
        self.dtype = states_dtype(weights, model.lm_head.weight.dtype)

        def ready(*linears: nn.Linear) -> Linear:
            """One matrix for the outputs of several."""
            weight = (
                torch.cat([linear.weight.detach() for linear in linears])
                if linears[1:]
                else linears[0].weight
            )
            return pack(weight, linears[0].bias, rows=rows, weights=weights)

        self.embedding = model.get_input_embeddings()
        self.tables = [self.embedding]
        self.scale = TOKEN_SIZE * model.config.hidden_size**0.5
        self.buckets, self.position_bias = decoder.buckets, decoder.position_bias
        self.layers = [_layer(layer, ready, self.dtype) for layer in decoder.layers]
        self.source_attentions = [layer.source_attention for layer in self.layers]
        self.streams = decoder.streams.weight.detach() if decoder.streams is not None else None
        self.final_norm = _norm(decoder.final_norm, self.dtype)
        self.head = ready(model.lm_head)

    def step(self, source: Source, target: Target, *, beams: int, room: int) -> Step:
        return _ZCodePPStep(self, source, target, beams=beams, room=room)

    def check(self, steps: int) -> None:
        """Any number will do: positions are relative."""

    def positions(self, steps: int) -> Float[Tensor, "h t"]:
        """Bias of the keys at distance steps-1 .. 0: its last p columns are those of the p-th step."""
        distances = torch.arange(steps - 1, -1, -1, device=self.position_bias.weight.device)
        return self.position_bias(self.buckets(distances)).to(self.dtype).T.contiguous()


@final
class _ZCodePPStep:
    def __init__(
        self, packed: PackedZCodePP, source: Source, target: Target, *, beams: int, room: int
    ) -> None:
        self._packed, self._source, self._target, self._beams = packed, source, target, beams
        self._positions = packed.positions(room)

    def __call__(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        packed, target = self._packed, self._target
        target.advance(parents)
        bias = ready_for_mix(
            target.bias(target.lookback(self._positions)[None, :, None, :])
        )  # for all layers
        states = packed.embedding(tokens.flatten()).to(packed.dtype) * packed.scale  # (b*k d)
        for index, layer in enumerate(packed.layers):
            q, k, v = (self._heads(part) for part in layer.project(layer.self_norm(states)).chunk(3, dim=-1))
            mixed = mix(q, *target.extend(index, k, v), bias=bias, scale=1.0)
            states = states + layer.self_output(self._rows(mixed))
            q = self._heads(layer.source_query(layer.source_norm(states)))
            mixed = mix(q, *self._source[index], bias=self._source.bias, scale=1.0)
            states = states + layer.source_output(self._rows(mixed))
            states = states + layer.feed_forward(layer.feed_forward_norm(states))
        logits = packed.head(packed.final_norm(states))
        return logits.float().unflatten(0, (-1, self._beams))

    def _heads(self, states: Float[Tensor, "b*k d"]) -> Float[Tensor, "b h k e"]:
        return split_heads(states.unflatten(0, (-1, self._beams)), self._positions.shape[0])

    @staticmethod
    def _rows(mixed: Float[Tensor, "b h k e"]) -> Float[Tensor, "b*k d"]:
        return mixed.transpose(1, 2).flatten(2).flatten(0, 1)  # (b h k e) -> (b*k h*e)


@final
@dataclass(frozen=True)
class _Layer:
    """What a step does with one layer's weights."""

    self_norm: Norm
    project: Linear  # queries, keys and values of the target
    self_output: Linear
    source_norm: Norm
    source_query: Linear
    source_attention: MultiHeadAttention  # for the source's keys and values, many rows: not packed
    source_output: Linear
    feed_forward_norm: Norm
    feed_forward: Norm


def _layer(layer: nn.Module, ready: Pack, dtype: torch.dtype) -> _Layer:
    assert isinstance(layer, DecoderLayer)
    own, source = layer.self_attention, layer.cross_attention
    return _Layer(
        self_norm=_norm(layer.self_norm, dtype),
        project=ready(own.query, own.key, own.value),
        self_output=ready(own.output),
        source_norm=_norm(layer.cross_norm, dtype),
        source_query=ready(source.query),
        source_attention=source,
        source_output=ready(source.output),
        feed_forward_norm=_norm(layer.feed_forward_norm, dtype),
        feed_forward=_feed_forward(layer.feed_forward, ready),
    )


def _norm(norm: nn.RMSNorm, dtype: torch.dtype) -> Norm:
    weight, eps, width = norm.weight.detach().to(dtype), norm.eps, norm.weight.shape[0]
    if dtype is not torch.float32 or weight.device.type != "cpu":  # elsewhere it is one operator
        return lambda states: F.rms_norm(states, (width,), weight, eps)
    offset = torch.full((1, 1, 1), torch.finfo(dtype).eps if eps is None else eps, device=weight.device)

    def normed(states: Tensor) -> Tensor:
        """Half the operators of `F.rms_norm`: the mean square and eps in one product."""
        square = torch.baddbmm(offset, states[:, None, :], states[:, :, None], alpha=1.0 / width)
        return states * square.rsqrt_().view(-1, 1) * weight

    return normed


def _feed_forward(feed_forward: FanInFeedForward | GatedFeedForward, ready: Pack) -> Norm:
    down = ready(feed_forward.down)
    if isinstance(feed_forward, FanInFeedForward):
        up = ready(feed_forward.up)
        return lambda states: down(up(states).relu_())
    both = ready(feed_forward.gate, feed_forward.up)

    def gated(states: Tensor) -> Tensor:
        gate, up = both(states).chunk(2, dim=-1)
        return down(F.gelu(gate, approximate="tanh") * up)

    return gated
