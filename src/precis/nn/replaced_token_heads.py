"""Heads of replaced-token detection: who was masked (the generator's), who was replaced (the discriminator's).

The generator's enhanced mask decoder is DeBERTa's way of telling it absolute positions: only the last layer, run
twice, sees them. Source: DeBERTa's released code (`../PAPERS.md`).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from precis.nn.blocks import EncoderLayer
from precis.nn.encoder import BucketedPositionEmbedding, RelativePositionEmbedding
from precis.nn.layer_stack import LayerStack
from precis.nn.relative_positions import OffsetRows
from precis.nn.vocabulary_scores import VocabularyScores


class MaskedTokenHead(nn.Module):
    """LN(gelu(W h)) times the token table, plus a bias: BERT's head, as DeBERTa's generator has it."""

    def __init__(self, width: int, vocabulary: int, *, norm_eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Float[Tensor, "b k d"], table: Float[Tensor, "v d"]) -> VocabularyScores:
        """Scores (b k v)."""
        return VocabularyScores.of(self.norm(F.gelu(self.dense(states))), table, self.bias)


class ReplacedTokenHead(nn.Module):
    """w gelu(W LN(h_i + h_CLS)): one logit a token, positive for "replaced" (DeBERTa's released code)."""

    def __init__(self, width: int, *, norm_eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.dense = nn.Linear(width, width)
        self.logit = nn.Linear(width, 1)

    def forward(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b n"]:
        mixed = self.norm(states + states[:, :1])
        return self.logit(F.gelu(self.dense(mixed)))[..., 0]


class EnhancedMaskDecoder(LayerStack):
    """The generator's last layer, run twice: queries know their absolute position, keys stay as they are."""

    _PASSES = 2

    def __init__(self, layer: EncoderLayer, *, width: int, longest: int) -> None:
        super().__init__()
        self.layer = layer
        self.absolute = nn.Embedding(longest, width)

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        mask: Bool[Tensor, "b 1 1 n"] | None,
        relative: RelativePositionEmbedding | BucketedPositionEmbedding | None,
    ) -> Float[Tensor, "b n d"]:
        """States of the layer before the last to states for the head.

        Raises:
            ValueError: the input is longer than the table of absolute positions.
        """
        length, longest = states.shape[1], self.absolute.num_embeddings
        if length > longest:
            raise ValueError(
                f"{length} tokens, but the enhanced mask decoder knows {longest} positions; pack shorter blocks or "
                f"set generator_positions={length}"
            )
        queries = states + self.absolute.weight[:length]
        self.expect_other_sizes(states, mask, queries)
        offsets = None
        if isinstance(relative, RelativePositionEmbedding):
            offsets = OffsetRows(relative.buckets).on(states.device)
        for _ in range(self._PASSES):
            positions = relative.for_layer(relative.normed(), offsets) if relative is not None else None
            queries = self.run_layer(self.layer, states, mask, positions, queries)
        return queries
