"""The decoder stack: T5-1.0 layers with one bucketed bias table shared by all of them, and key/value caching."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from precis.nn.attention import MultiHeadAttention
from precis.nn.attention_weights import AttentionWeights, observe_states
from precis.nn.blocks import NO_PREFIX, DecoderLayer, LayerStack, Memory, Observer
from precis.nn.dropout import Dropout
from precis.nn.embeddings import FanInEmbedding
from precis.nn.padding import causal_mask, mask_if_padded
from precis.nn.prefix_columns import StackPrefix
from precis.nn.relative_positions import CausalBuckets
from precis.nn.score_bias import DenseBias
from precis.nn.streams import StreamLayout, beside, sight

# A predicting state has the position of the main state at its place, which is hidden from it.
GAP = 0


@runtime_checkable
class Cache(Protocol):
    """The interface of a cache; Hugging Face's `EncoderDecoderCache` implements it."""

    self_attention_cache: Any
    cross_attention_cache: Any
    is_updated: dict[int, bool]

    def get_seq_length(self, layer_idx: int = 0) -> Any: ...


@dataclass(kw_only=True)
class CachedMemory(Memory):
    """A layer's memory with cached keys and values; those of the source are computed only at the first step."""

    cache: Cache
    layer: int

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return self.cache.self_attention_cache.update(keys, values, self.layer)

    def source(self, attention: MultiHeadAttention) -> tuple[Tensor, Tensor]:
        kept = self.cache.cross_attention_cache
        if self.cache.is_updated.get(self.layer):
            return kept.layers[self.layer].keys, kept.layers[self.layer].values
        keys, values = kept.update(*attention.project_keys(self.source_states), self.layer)
        self.cache.is_updated[self.layer] = True
        return keys, values


def cached_length(cache: Cache | None, length: int) -> tuple[int, int]:
    """Return the number of target places in the cache, and the number of keys with `length` more.

    A static cache has room for further keys, which count too.
    """
    if cache is None:
        return 0, length
    return places_in(cache), whole(cache.self_attention_cache.get_mask_sizes(length, 0)[0])


def places_in(cache: Cache) -> int:
    """Return the number of target places in a cache."""
    return whole(cache.get_seq_length())


def whole(number: Any) -> int:
    """Convert a number to a Python int, except a symbolic one of an exported program."""
    return number if isinstance(number, torch.SymInt) else int(number)  # type: ignore[return-value]


class DecoderStack(LayerStack):
    """A decoder's layers, each with a `self_attention` and a `cross_attention`."""

    def self_attentions(self) -> tuple[nn.Module, ...]:
        """Return each layer's self-attention."""
        return tuple(layer.get_submodule("self_attention") for layer in self.layers)

    def cross_attentions(self) -> tuple[nn.Module, ...]:
        """Return each layer's cross-attention."""
        return tuple(layer.get_submodule("cross_attention") for layer in self.layers)

    def run_over(
        self,
        states: Float[Tensor, "b tp d"],
        source: tuple[Float[Tensor, "b s d"], Bool[Tensor, "b 1 1 s"] | None],
        *shared: Any,
        predicting: int,
        cache: "Cache | None",
        prefix: StackPrefix | None,
        weights: AttentionWeights | None,
        after: Callable[[int, Tensor, Tensor], Tensor],
    ) -> Float[Tensor, "b tp d"]:
        """Run all layers, which attend to a source.

        Args:
            source: states and mask of the source.
            shared: arguments of every layer other than the states and its memory.
            predicting: number of predicting states at the end.
            after: returns the next layer's input, from a layer's index, its input and its output.
        """
        if weights is not None:
            prefix = weights.of_decoder(prefix, self, length=states.shape[1] - predicting)

        def given(index: int) -> tuple[Any, ...]:
            known: dict[str, Any] = {
                "source_states": source[0],
                "source_mask": source[1],
                "predicting": predicting,
                "prefix": prefix.layer(index) if prefix is not None else NO_PREFIX,
            }
            memory = Memory(**known) if cache is None else CachedMemory(**known, cache=cache, layer=index)
            return memory, *shared

        return self.run_layers(states, given, after)


class Decoder(DecoderStack):
    """Layers, final norm, and the relative-position table shared by all self-attentions."""

    def __init__(
        self,
        layers: list[DecoderLayer],
        *,
        buckets: CausalBuckets,
        heads: int,
        width: int,
        norm_eps: float,
        dropout: float,
        streams: int = 0,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.streams = FanInEmbedding(streams, width, std=width**-0.5) if streams else None
        self.buckets = buckets
        self.position_bias = FanInEmbedding(buckets.rows, heads, std=width**-0.5)
        self.final_norm = nn.RMSNorm(width, eps=norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b t d"],
        source_states: Float[Tensor, "b s d"],
        *,
        source_valid: Bool[Tensor, "b s"] | None,
        source_padded: bool | None = None,
        layout: StreamLayout | None = None,
        mask: Bool[Tensor, "b #1 #t j"] | None = None,
        cache: Cache | None = None,
        prefix: StackPrefix | None = None,
        observe: Observer | None = None,
        weights: AttentionWeights | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Decode target states; with a cache, only the positions that are not in it yet.

        Args:
            source_padded: whether some of `source_valid` is False; if None, it is read from the device, which waits
                for a GPU.
            layout: the predicting states at the end of `states`, if there are any.
            mask: target positions allowed in addition to the causal rule, over past and present.
            prefix: keys and values before those of the target and of the source.
            observe: receives the main states after each layer; after the last one they are final (normed).
            weights: records the attention weights; fast paths are then not used.
        """
        length = states.shape[1] - (layout.places.shape[0] if layout is not None else 0)
        past, keys = cached_length(cache, length)
        if layout is None:
            allowed = self._allowed(length, keys, past, mask, states.device)
            bias = DenseBias(self._bias(length, keys, past, states.device))
        else:
            seen = sight(
                layout, first=past, length=length, keys=keys, buckets=self.buckets, gap=GAP, valid=mask
            )
            allowed = seen.mask
            bias = DenseBias(self.position_bias(seen.buckets).permute(0, 3, 1, 2))  # (1 i j h) -> (1 h i j)
        predicting = states.shape[1] - length
        source_mask = mask_if_padded(source_valid, source_padded)
        states = self.dropout(states)
        if prefix is not None and layout is not None:
            prefix = beside(prefix, layout, past=past, length=length)
        self.expect_other_sizes(states, source_states, source_mask, bias.scores, allowed)

        def after(index: int, _: Tensor, output: Tensor) -> Tensor:
            return observe_states(output, length, observe) if index + 1 < len(self.layers) else output

        states = self.run_over(
            states, (source_states, source_mask), bias, allowed, predicting=predicting, cache=cache, prefix=prefix,
            weights=weights, after=after,
        )  # fmt: skip
        return observe_states(self.dropout(self.final_norm(states)), length, observe)

    @staticmethod
    def _allowed(
        queries: int, keys: int, past: int, mask: Tensor | None, device: torch.device
    ) -> Bool[Tensor, "#b 1 t j"] | None:
        if mask is None and queries == 1 and keys == past + 1:
            return None  # the usual decoding step: everything in the cache is in the past
        allowed = causal_mask(queries, keys, first_query=past, device=device)
        return allowed if mask is None else allowed & mask

    def _bias(self, queries: int, keys: int, past: int, device: torch.device) -> Float[Tensor, "1 h t j"]:
        distance = (torch.arange(queries, device=device) + past)[:, None] - torch.arange(keys, device=device)[
            None
        ]
        return self.position_bias(self.buckets(distance)).permute(2, 0, 1)[None]  # (t j h) -> (1 h t j)
