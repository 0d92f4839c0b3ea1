"""A decoding step as one call of our C++ kernel: one parallel region, instead of one for each operator.

Threads wait for each other at the end of a region, until another process leaves the core. The kernel serves fp32 models
on a CPU, one token of each beam, and caches that grow. Torch's operators do the rest, and all with `PRECIS_COMPILE=0`.
For int8 and bf16 they round hidden states, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, Self, final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.generation.fast.key_value_cache import Source, SourceCache, Target, TargetCache
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, Weights
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.nn.blocks import DecoderLayer, FeedForward, GatedFeedForward
from precis.nn.disentangled import cpp_loader
from precis.nn.stream_decoder import StreamDecoderLayer

Model = ZCodePPForConditionalGeneration | ProphetNetForConditionalGeneration
Layer = DecoderLayer | StreamDecoderLayer
Packed = tuple[Tensor, Tensor | None]  # a matrix and its bias
Start = Callable[[Tensor, Target, int], Tensor]

_KERNEL = "decoding"
_MOST_PARTS = 8  # of a layer: more threads than this do not read the weights faster
_BITS = {AsGiven: 32, BFloat16: 16, Int8: 8}
_MOST_ROWS = {8: 5, 16: 16}  # of a step by bits: with more, torch's products are faster, or level in bf16


@final
class CompiledStep:
    """Copies of the matrices of a decoder and its head, in the order in which the kernel's threads read them."""

    @classmethod
    def of(cls, model: Model, weights: Weights) -> Self | None:
        """Return the step of this model; None if operators must compute it."""
        weight, network = model.lm_head.weight, model.get_decoder().layers[0].feed_forward
        is_known = not isinstance(network, FeedForward) or network.activation is F.gelu
        is_fp32 = weight.dtype is torch.float32 and weight.device.type == "cpu"
        serves = is_fp32 and is_known and cpp_loader.is_ready(_KERNEL)
        return cls(model, bits=_BITS[type(weights)]) if serves else None

    def __init__(self, model: Model, *, bits: int) -> None:
        self._most_rows = _MOST_ROWS.get(bits, math.inf)
        decoder = model.get_decoder()
        layers = [layer for layer in decoder.layers if isinstance(layer, DecoderLayer | StreamDecoderLayer)]
        streams = isinstance(layers[0], StreamDecoderLayer)
        own = layers[0].self_attention
        self._parts, self._scale = min(own.heads, _MOST_PARTS), own.scale
        self._inner, eps = layers[0].feed_forward.down.weight.shape[1], layers[0].self_norm.eps
        self._eps = torch.finfo(torch.float32).eps if eps is None else eps
        norms: list[Any] = [(layer.self_norm, layer.cross_norm, layer.feed_forward_norm) for layer in layers]
        norms = [decoder.norm, *chain(*norms)] if streams else [*chain(*norms), decoder.final_norm]
        self._norms = torch.stack([torch.stack([*norm.parameters()]).detach() for norm in norms])
        packed = [pair for layer in layers for pair in _layer_parts(layer, self._parts, bits)]
        self._matrices = [matrix for matrix, _ in packed]
        self._biases = [bias for _, bias in packed if bias is not None]
        self._head, _ = _packed(model.lm_head, parts=1, bits=bits)
        self._vocabulary = model.lm_head.weight.shape[0]

    def __call__(
        self, tokens: Int[Tensor, "b k"], source: Source, target: Target, start: Start
    ) -> Float[Tensor, "b k v"] | None:
        """Read one token of each beam, after `Target.advance`; None if operators must do it.

        Args:
            start: computes the states before the first layer, for the tokens, the target and 0 drafts.
        """
        if tokens.numel() * (2 if self._biases else 1) > self._most_rows:
            return None
        if not (isinstance(source, SourceCache) and isinstance(target, TargetCache) and target.reads_once):
            return None
        logits: Tensor = torch.ops.precis_decoding.step(
            start(tokens, target, 0), self._scale, self._matrices, self._biases, self._norms, self._head,
            self._vocabulary, self._inner, self._parts, self._eps, target.kept, source.flat, source.bias,
            target.entries, target.foreign, target.length,
        )  # fmt: skip
        return logits.unflatten(0, tokens.shape)


def _layer_parts(layer: Layer, parts: int, bits: int) -> list[Packed]:
    """Pack a layer's matrices in the kernel's order: attention by heads, the rest by inner columns."""
    own, source, network = layer.self_attention, layer.cross_attention, layer.feed_forward
    packed = partial(_packed, parts=parts, bits=bits)
    by_heads = partial(packed, unit=own.query.weight.shape[0] // own.heads)
    found = [
        by_heads(own.query), by_heads(own.key), by_heads(own.value), by_heads(own.output, by_outputs=False),
        by_heads(source.query), by_heads(source.output, by_outputs=False),
        packed(network.up), packed(network.down, by_outputs=False),
    ]  # fmt: skip
    if isinstance(network, GatedFeedForward):
        found.append(packed(network.gate))
    if isinstance(layer, StreamDecoderLayer):
        scores = layer.position_scores  # bucket by bucket, and the kernel needs head by head
        by_bucket = torch.arange(scores.out_features, device=scores.weight.device).view(-1, own.heads)
        found.append(packed(scores, unit=len(by_bucket), order=by_bucket.T.flatten()))
    return found


def _packed(
    linear: nn.Linear, *, parts: int, bits: int, unit: int = 1, by_outputs: bool = True, order: Any = ...
) -> Packed:
    """Pack the outputs of each part one after the other, or its inputs; `unit` columns of a head stay together."""
    weight, bias = linear.weight.detach()[order].contiguous(), linear.bias
    packed: Tensor = torch.ops.precis_decoding.pack(weight, parts, unit, by_outputs, bits)
    return packed, None if bias is None else bias.detach()[order].contiguous()
