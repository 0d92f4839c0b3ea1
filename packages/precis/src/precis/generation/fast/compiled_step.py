"""Z-Code++'s decoding step as one call of our C++ kernel: one parallel region, instead of one for each operator.

Threads wait for each other at the end of a region, until another process leaves the core. The kernel serves fp32 models
on a CPU, one token of each beam, and caches that grow. Torch's operators do the rest, and all with `PRECIS_COMPILE=0`.
For int8 they round hidden states, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.generation.fast.key_value_cache import Source, SourceCache, Target, TargetCache
from precis.generation.fast.packed_linear import BFloat16, Int8, Weights
from precis.models.zcodepp.modeling_zcodepp import TOKEN_SIZE, ZCodePPForConditionalGeneration
from precis.nn.blocks import DecoderLayer, GatedFeedForward
from precis.nn.disentangled import cpp_loader

_KERNEL = "decoding"
_MOST_PARTS = 8  # of a layer: more threads than this do not read the weights faster
_MOST_ROWS = 5  # of a step in 8 bits: with more, torch's product of 8-bit states is faster


@final
class CompiledStep:
    """Copies of the matrices of a decoder and its head, in the order in which the kernel's threads read them."""

    @classmethod
    def of(cls, model: ZCodePPForConditionalGeneration, weights: Weights) -> Self | None:
        """Return the step of this model; None if operators must compute it."""
        weight = model.lm_head.weight
        is_fp32 = weight.dtype is torch.float32 and not isinstance(weights, BFloat16)
        serves = is_fp32 and weight.device.type == "cpu" and cpp_loader.is_ready(_KERNEL)
        return cls(model, bytes_=isinstance(weights, Int8)) if serves else None

    def __init__(self, model: ZCodePPForConditionalGeneration, *, bytes_: bool = False) -> None:
        self._bytes = bytes_
        layers = [layer for layer in model.get_decoder().layers if isinstance(layer, DecoderLayer)]
        self._embedding = model.get_input_embeddings()
        self._scale = TOKEN_SIZE * model.config.hidden_size**0.5
        self._parts = min(layers[0].self_attention.heads, _MOST_PARTS)
        self._inner, self._eps = layers[0].feed_forward.down.weight.shape[1], layers[0].self_norm.eps
        norms = [
            norm for layer in layers for norm in (layer.self_norm, layer.cross_norm, layer.feed_forward_norm)
        ]
        self._norms = torch.stack([norm.weight.detach() for norm in (*norms, model.get_decoder().final_norm)])
        self._matrices = [matrix for layer in layers for matrix in _matrices(layer, self._parts, bytes_)]
        self._head = _packed(model.lm_head, parts=1, bytes_=bytes_)
        self._vocabulary = model.lm_head.weight.shape[0]

    def __call__(
        self, tokens: Int[Tensor, "b k"], source: Source, target: Target
    ) -> Float[Tensor, "b k v"] | None:
        """Read one token of each beam, after `Target.advance`; None if operators must do it."""
        if self._bytes and tokens.numel() > _MOST_ROWS:
            return None
        if not (isinstance(source, SourceCache) and isinstance(target, TargetCache) and target.reads_once):
            return None
        states = self._embedding(tokens.flatten()) * self._scale
        logits: Tensor = torch.ops.precis_decoding.step(
            states, self._matrices, self._norms, self._head, self._vocabulary, self._inner, self._parts,
            torch.finfo(torch.float32).eps if self._eps is None else self._eps,
            target.kept, source.flat, source.bias, target.entries, target.foreign, target.length,
        )  # fmt: skip
        return logits.unflatten(0, tokens.shape)


def _matrices(layer: DecoderLayer, parts: int, bytes_: bool) -> Sequence[Tensor]:
    """Pack a layer's matrices in the kernel's order: attention by heads, the rest by inner columns."""
    own, source, network = layer.self_attention, layer.cross_attention, layer.feed_forward
    packed = partial(_packed, parts=parts, bytes_=bytes_)
    by_heads = partial(packed, unit=own.query.weight.shape[0] // own.heads)
    return [
        *(by_heads(linear) for linear in (own.query, own.key, own.value)),
        by_heads(own.output, by_outputs=False),
        by_heads(source.query),
        by_heads(source.output, by_outputs=False),
        packed(network.up),
        packed(network.down, by_outputs=False),
        *([packed(network.gate)] if isinstance(network, GatedFeedForward) else []),
    ]


def _packed(linear: nn.Linear, *, parts: int, bytes_: bool, unit: int = 1, by_outputs: bool = True) -> Tensor:
    """Pack the outputs of each part one after the other, or its inputs; `unit` columns of a head stay together."""
    weight = linear.weight.detach().contiguous()
    packed: Tensor = torch.ops.precis_decoding.pack(weight, parts, unit, by_outputs, bytes_)
    return packed
