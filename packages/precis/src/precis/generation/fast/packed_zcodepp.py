"""Z-Code++'s packed decoder: T5-1.0 layers, with queries, keys and values in one product."""

from __future__ import annotations

from functools import cached_property, partial
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.generation.fast.key_value_cache import Source, Target, mix, mix_with_own, ready_for_mix
from precis.generation.fast.packed_decoder import Apply, Pack, PackedDecoder, heads_of, rows_of
from precis.generation.fast.packed_linear import Weights, pack_together
from precis.models.zcodepp.modeling_zcodepp import TOKEN_SIZE, ZCodePPForConditionalGeneration
from precis.nn.attention import FanInLinear, MultiHeadAttention
from precis.nn.blocks import DecoderLayer, FanInFeedForward, GatedFeedForward
from precis.nn.decoder import Decoder
from precis.nn.dropout import Dropout
from precis.nn.embeddings import FanInEmbedding


@final
class PackedZCodePP(PackedDecoder):
    """The decoder and head of a Z-Code++ model.

    A token has a main state, and one for each drafting stream.
    """

    known = (
        Decoder, DecoderLayer, MultiHeadAttention, FanInFeedForward, GatedFeedForward, FanInEmbedding,
        FanInLinear, nn.ModuleList, nn.Linear, nn.RMSNorm, Dropout,
    )  # fmt: skip

    def __init__(self, model: ZCodePPForConditionalGeneration, *, rows: int, weights: Weights) -> None:
        super().__init__(model, rows=rows, weights=weights)
        decoder = model.get_decoder()
        self.tables = [self.embedding]
        self.scale = TOKEN_SIZE * model.config.hidden_size**0.5
        self.buckets, self.position_bias = decoder.buckets, decoder.position_bias
        self.source_attentions = [layer.cross_attention for layer in decoder.layers]
        self.streams = decoder.streams.weight.detach() if decoder.streams is not None else None
        self.final_norm = _norm(decoder.final_norm, self.dtype)
        self._pack_now()

    @cached_property
    def layers(self) -> list[_Layer]:
        ready = partial(pack_together, rows=self._rows, weights=self._weights)
        return [_Layer(layer, ready, self.dtype) for layer in self._model.get_decoder().layers]

    def check(self, steps: int) -> None:
        """Accept any number, since positions are relative."""

    def by_distance(self, furthest: int) -> Float[Tensor, "h r"]:
        """Return the scores that all layers add."""
        distances = torch.arange(furthest, -1, -1, device=self.position_bias.weight.device)
        return self.position_bias(self.buckets(distances)).to(self.dtype).T.contiguous()

    def _states(
        self, tokens: Int[Tensor, "b m"], source: Source, target: Target, *, drafts: int
    ) -> Float[Tensor, "sbm d"]:
        bias = ready_for_mix(self._bias(target, drafts))
        states = self._start(tokens, target, drafts)
        for index, layer in enumerate(self.layers):
            states = layer(index, states, source, target, bias=bias, tokens=tokens.shape[1])
        return self.final_norm(states)

    def _start(self, tokens: Int[Tensor, "b m"], target: Target, drafts: int) -> Float[Tensor, "sbm d"]:
        states = self.embedding(tokens.flatten())
        if drafts:
            assert self.streams is not None
            states = torch.cat([states, self.streams[:drafts].repeat_interleave(len(states), 0)])
        return states.to(self.dtype) * self.scale

    @staticmethod
    def _bias(target: Target, drafts: int) -> Float[Tensor, "#b h sm j"]:
        """Return scores of all slots and, if streams draft, of a state's own key, hidden from the main state."""
        slots = target.lookback(drafts + 1)[None]  # (1 h s #m t)
        if not drafts:
            return target.bias(slots)
        own = target.entries[None, :, -1, None, None, None].expand(*slots.shape[:-1], 1).clone()
        own[:, :, 0] = -torch.inf
        return target.bias(slots, own)


@final
class _Layer:
    """One layer: its weights and its forward pass."""

    def __init__(self, layer: nn.Module, ready: Pack, dtype: torch.dtype) -> None:
        assert isinstance(layer, DecoderLayer)
        own, source = layer.self_attention, layer.cross_attention
        self.heads = own.heads
        self.self_norm = _norm(layer.self_norm, dtype)
        self.project = ready(own.query, own.key, own.value)
        self.self_output = ready(own.output)
        self.source_norm = _norm(layer.cross_norm, dtype)
        self.source_query = ready(source.query)
        self.source_output = ready(source.output)
        self.feed_forward_norm = _norm(layer.feed_forward_norm, dtype)
        self.feed_forward = _feed_forward(layer.feed_forward, ready)

    def __call__(
        self,
        index: int,
        states: Float[Tensor, "sbm d"],
        source: Source,
        target: Target,
        *,
        bias: Float[Tensor, "#b #h sm j"],
        tokens: int,
    ) -> Float[Tensor, "sbm d"]:
        shape = {"documents": target.documents, "tokens": tokens, "heads": self.heads}
        q, k, v = (heads_of(part, **shape) for part in self.project(self.self_norm(states)).chunk(3, dim=-1))
        keys, values = target.extend(index, k[:, :, :tokens], v[:, :, :tokens])
        if q.shape[2] == tokens:  # only main states
            mixed = mix(q, keys, values, bias=bias, scale=1.0)
        else:
            mixed = mix_with_own(q, keys, values, k, v, bias=bias, scale=1.0)
        states = states + self.self_output(rows_of(mixed, tokens=tokens))
        q = heads_of(self.source_query(self.source_norm(states)), **shape)
        mixed = mix(q, *source[index], bias=source.bias, scale=1.0)
        states = states + self.source_output(rows_of(mixed, tokens=tokens))
        return states + self.feed_forward(self.feed_forward_norm(states))


def _norm(norm: nn.RMSNorm, dtype: torch.dtype) -> Apply:
    weight, eps, width = norm.weight.detach().to(dtype), norm.eps, norm.weight.shape[0]
    if dtype is not torch.float32 or weight.device.type != "cpu":  # one operator there
        return lambda states: F.rms_norm(states, (width,), weight, eps)
    offset = torch.full((1, 1, 1), torch.finfo(dtype).eps if eps is None else eps, device=weight.device)

    def normed(states: Tensor) -> Tensor:
        """Normalize with half the operators of `F.rms_norm`: the mean square and eps in one product."""
        square = torch.baddbmm(offset, states[:, None, :], states[:, :, None], alpha=1.0 / width)
        return states * square.rsqrt_().view(-1, 1) * weight

    return normed


def _feed_forward(feed_forward: FanInFeedForward | GatedFeedForward, ready: Pack) -> Apply:
    down = ready(feed_forward.down)
    if isinstance(feed_forward, FanInFeedForward):
        up = ready(feed_forward.up)
        return lambda states: down(up(states).relu_())
    both = ready(feed_forward.gate, feed_forward.up)

    def gated(states: Tensor) -> Tensor:
        gate, up = both(states).chunk(2, dim=-1)
        return down(F.gelu(gate, approximate="tanh") * up)

    return gated
