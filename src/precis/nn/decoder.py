"""The decoder stack: T5-1.0 layers with one bucketed bias table shared by all of them, and key/value caching."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from precis.nn.attention import MultiHeadAttention
from precis.nn.blocks import DecoderLayer, Memory
from precis.nn.embeddings import FanInEmbedding
from precis.nn.masks import causal_mask, padding_mask
from precis.nn.relative_positions import CausalBuckets
from precis.nn.score_bias import DenseBias

Observer = Callable[[Float[Tensor, "b t d"]], None]


class Cache(Protocol):
    """What the decoder needs of a cache; Hugging Face's `EncoderDecoderCache` is one."""

    self_attention_cache: Any
    cross_attention_cache: Any
    is_updated: dict[int, bool]

    def get_seq_length(self, layer_idx: int = 0) -> Any: ...


class CachedMemory(Memory):
    """A layer's keys and values kept between steps; those of the source are computed at the first step only."""

    def __init__(
        self,
        source_states: Float[Tensor, "b s d"],
        source_mask: Bool[Tensor, "b 1 1 s"] | None,
        *,
        cache: Cache,
        layer: int,
    ) -> None:
        super().__init__(source_states, source_mask)
        self.cache = cache
        self.layer = layer

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return self.cache.self_attention_cache.update(keys, values, self.layer)

    def source(self, attention: MultiHeadAttention) -> tuple[Tensor, Tensor]:
        kept = self.cache.cross_attention_cache
        if self.cache.is_updated.get(self.layer):
            return kept.layers[self.layer].keys, kept.layers[self.layer].values
        keys, values = kept.update(*attention.project_keys(self.source_states), self.layer)
        self.cache.is_updated[self.layer] = True
        return keys, values


class Decoder(nn.Module):
    """Layers, final norm, and the relative-position table that every layer's self-attention shares."""

    def __init__(
        self,
        layers: list[DecoderLayer],
        *,
        buckets: CausalBuckets,
        heads: int,
        width: int,
        norm_eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.buckets = buckets
        self.position_bias = FanInEmbedding(buckets.rows, heads, std=width**-0.5)
        self.final_norm = nn.RMSNorm(width, eps=norm_eps)
        self.dropout = nn.Dropout(dropout)
        self.gradient_checkpointing = False  # set by PreTrainedModel.gradient_checkpointing_enable

    def forward(
        self,
        states: Float[Tensor, "b t d"],
        source_states: Float[Tensor, "b s d"],
        *,
        source_valid: Bool[Tensor, "b s"] | None,
        mask: Bool[Tensor, "b #1 #t j"] | None = None,
        cache: Cache | None = None,
        observe: Observer | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Decode target states; with a cache, only the positions that are not in it yet.

        Args:
            mask: which target positions may be seen besides the causal rule, over past and present.
            observe: called with the states after each layer; after the last one they are final (normed).
        """
        past = int(cache.get_seq_length()) if cache is not None else 0
        length = states.shape[1]
        keys = cache.self_attention_cache.get_mask_sizes(length, 0)[0] if cache is not None else length
        allowed = self._allowed(length, keys, past, mask, states.device)
        bias = DenseBias(self._bias(length, keys, past, states.device))
        source_mask = (
            padding_mask(source_valid) if source_valid is not None and not source_valid.all() else None
        )
        states = self.dropout(states)
        for index in range(len(self.layers)):
            memory = (
                CachedMemory(source_states, source_mask, cache=cache, layer=index)
                if cache is not None
                else Memory(source_states, source_mask)
            )
            states = self._layer(index, states, memory, bias, allowed)
            if observe is not None and index + 1 < len(self.layers):
                observe(states)
        states = self.dropout(self.final_norm(states))
        if observe is not None:
            observe(states)
        return states

    def _layer(
        self, index: int, states: Tensor, memory: Memory, bias: DenseBias, mask: Tensor | None
    ) -> Float[Tensor, "b t d"]:
        layer: Callable[..., Any] = self.layers[index]
        if self.gradient_checkpointing and self.training:
            return checkpoint(layer, states, memory, bias=bias, mask=mask, use_reentrant=False)
        return layer(states, memory, bias=bias, mask=mask)

    @staticmethod
    def _allowed(
        queries: int, keys: int, past: int, mask: Tensor | None, device: torch.device
    ) -> Bool[Tensor, "#b 1 t j"] | None:
        if mask is None and queries == 1 and keys == past + 1:
            return None  # the usual decoding step: everything in the cache lies in the past
        allowed = causal_mask(queries, keys, first_query=past, device=device)
        return allowed if mask is None else allowed & mask

    def _bias(self, queries: int, keys: int, past: int, device: torch.device) -> Float[Tensor, "1 h t j"]:
        distance = (torch.arange(queries, device=device) + past)[:, None] - torch.arange(keys, device=device)[
            None
        ]
        return self.position_bias(self.buckets(distance)).permute(2, 0, 1)[None]  # (t j h) -> (1 h t j)
