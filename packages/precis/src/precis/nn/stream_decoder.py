"""ProphetNet's decoder: post-norm layers over main and predicting streams that share every weight (Eqs. 7-9)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from precis.nn.attention import MultiHeadAttention
from precis.nn.attention_weights import AttentionWeights, observe_states
from precis.nn.blocks import FeedForward, Memory, Observer
from precis.nn.decoder import Cache, DecoderStack, cached_length
from precis.nn.dropout import Dropout
from precis.nn.padding import mask_if_padded
from precis.nn.prefix_columns import StackPrefix
from precis.nn.relative_positions import CausalBuckets
from precis.nn.streams import Sight, StateBucketBias, StreamLayout, beside, sight
from precis.nn.transformer import AbsolutePositions

GAP = 1  # a predicting state has the position of the token it predicts, one after the last that it can see


class StreamDecoderLayer(nn.Module):
    """n-stream self-attention, cross-attention and feed-forward, each LN(x + f(x)), over all states at once."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        width: int,
        buckets: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.position_scores = nn.Linear(width, buckets * self_attention.heads)
        self.self_norm = nn.LayerNorm(width)
        self.cross_attention = cross_attention
        self.cross_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(
        self, states: Float[Tensor, "b tp d"], memory: Memory, seen: Sight
    ) -> Float[Tensor, "b tp d"]:
        mixed = memory.of_target(
            self.self_attention, states, bias=self._bias(states, seen), mask=seen.mask
        )  # Eqs. 7-9: main keys (+) the state's own
        states = self.self_norm(states + self.dropout(mixed))
        states = self.cross_norm(states + self.dropout(memory.of_source(self.cross_attention, states)))
        return self.feed_forward_norm(states + self.feed_forward(states))

    def _bias(self, states: Float[Tensor, "b tp d"], seen: Sight) -> StateBucketBias:
        scores = self.position_scores(states).unflatten(-1, (-1, self.self_attention.heads))
        return StateBucketBias(scores.permute(0, 3, 1, 2), seen.buckets)  # (b i r h) -> (b h i r)


class StreamDecoder(DecoderStack):
    """Absolute positions, an initial vector per stream, and the layers."""

    def __init__(
        self,
        layers: list[StreamDecoderLayer],
        *,
        streams: int,
        positions: AbsolutePositions,
        buckets: CausalBuckets,
        width: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.streams = nn.Embedding(streams, width)
        self.norm = nn.LayerNorm(width)
        self.buckets = buckets
        self.dropout = Dropout(dropout)

    @property
    def longest(self) -> int:
        """Longest target in tokens: the last predicting state needs a position after its main one."""
        return self.positions.longest - 1

    def forward(
        self,
        embedded: Float[Tensor, "b t d"],
        source_states: Float[Tensor, "b s d"],
        *,
        layout: StreamLayout,
        source_valid: Bool[Tensor, "b s"] | None,
        source_padded: bool | None = None,
        positions: Int[Tensor, "#b t"] | None = None,
        mask: Bool[Tensor, "#b 1 #t j"] | None = None,
        cache: Cache | None = None,
        prefix: StackPrefix | None = None,
        observe: Observer | None = None,
        weights: AttentionWeights | None = None,
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b p d"]]:
        """Return main and predicting states; with a cache, only those of places that are not in it yet.

        Args:
            layout: the predicting states; none of them enters the cache.
            positions: the tokens' positions in their text, if these differ from their places; see `streams.sight`.
            prefix: a predicting state has the segment of the last place that it sees.
            observe: receives the main states, before the first layer and after each.

        The other arguments are those of `Decoder.forward`.

        Raises:
            ValueError: the target is longer than the position table.
        """
        length = embedded.shape[1]
        past, keys = cached_length(cache, length)
        self._check(past + length)
        seen = sight(
            layout, first=past, length=length, keys=keys, buckets=self.buckets, gap=GAP, positions=positions,
            valid=mask,
        )  # fmt: skip
        states = self._start(embedded, layout, past, positions)
        source_mask = mask_if_padded(source_valid, source_padded)
        states = observe_states(states, length, observe)
        if prefix is not None:
            prefix = beside(prefix, layout, past=past, length=length)
        self.expect_other_sizes(states, source_states, source_mask, seen.mask, seen.buckets)
        states = self.run_over(
            states, (source_states, source_mask), seen, predicting=layout.places.shape[0], cache=cache, prefix=prefix,
            weights=weights, after=lambda _, before, output: observe_states(output, length, observe),
        )  # fmt: skip
        return states[:, :length], states[:, length:]

    def _start(
        self,
        embedded: Float[Tensor, "b t d"],
        layout: StreamLayout,
        past: int,
        positions: Int[Tensor, "#b t"] | None,
    ) -> Float[Tensor, "b tp d"]:
        """Embed main states (token + position) and predicting ones (stream vector + the position after their place).

        As the released weights require, stream k has row k - 1, so stream 0 has the last row.
        """
        batch, length, _ = embedded.shape
        if positions is None:
            positions = torch.arange(past, past + length, device=embedded.device)[None]
            ahead = layout.places[None]
        else:
            ahead = positions[:, layout.places]
        main = embedded + self.positions(positions)
        rows = (layout.streams - 1) % self.streams.num_embeddings
        # drafts may exceed the end of the table; what they predict there is discarded
        ahead = (ahead + 1).clamp(max=self.positions.longest - 1)
        predicting = (self.streams(rows)[None] + self.positions(ahead)).expand(batch, -1, -1)
        return self.dropout(self.norm(torch.cat([main, predicting], dim=1)))

    def _check(self, length: int) -> None:
        if length > self.longest:
            raise ValueError(
                f"{length} target tokens: this model has positions for {self.longest}; request fewer"
            )
