"""Heads over a vocabulary: small scores are computed at once, large ones in pieces.

The heads of replaced-token detection are here too: one predicts masked tokens (the generator's), one detects replaced
tokens (the discriminator's). The generator's enhanced mask decoder is DeBERTa's source of absolute positions: only the
last layer, run twice, uses them. Source: DeBERTa's released code (`../PAPERS.md`).

The logits of a batch on a GPU are its largest tensor by far: 64 rows of 128 targets over 128,000 entries are 4 GB in
fp32, and a loss over them needs that several times. So a model returns states and table instead, and the consumer
(a loss, a sampler) computes as many rows at a time as fit in `LOGITS_BYTES`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from precis.nn.blocks import EncoderLayer, LayerStack
from precis.nn.encoder import BucketedPositionEmbedding, RelativePositionEmbedding

#: Maximum size of one piece's logits in fp32. Products of a thousand rows or more keep a GPU busy.
LOGITS_BYTES = 2**28


def rows_at_once(vocabulary: int) -> int:
    """Return the number of rows of logits to compute at a time; at least 1."""
    return max(1, LOGITS_BYTES // (4 * vocabulary))


@final
@dataclass(frozen=True, kw_only=True)
class VocabularyScores:
    """The linear function of a language-model head, and its input states.

    Attributes:
        states: (... d), transformed for the head.
        table: (v d), one row for each entry of the vocabulary.
        bias: (v), or None.
        made: (... v) logits if they are small enough to compute at once, else None.
    """

    states: Float[Tensor, "... d"]
    table: Float[Tensor, "v d"]
    bias: Float[Tensor, "v"] | None = None
    made: Float[Tensor, "... v"] | None = None

    @classmethod
    def of(cls, states: Tensor, table: Tensor, bias: Tensor | None = None) -> "VocabularyScores":
        """Build the scores of these states. Call it inside the model's `forward`, where the table is whole.

        It stores a view of a parameter, never the parameter: a data-parallel wrapper searches a model's output for
        gradients, and misses parameters returned directly.
        """
        table = table.view_as(table)
        bias = None if bias is None else bias.view_as(bias)
        few = states[..., 0].numel() <= rows_at_once(len(table))
        made = F.linear(states, table, bias) if few else None
        return cls(states=states, table=table, bias=bias, made=made)

    def logits(self) -> Float[Tensor, "... v"]:
        """Return all logits, whatever their size."""
        return F.linear(self.states, self.table, self.bias) if self.made is None else self.made

    @torch.no_grad()
    def in_pieces(self) -> Iterator[Float[Tensor, "k v"]]:
        """Yield the logits of the flattened states in order, as many rows at a time as fit; without gradients."""
        if self.made is not None:
            yield self.made.detach().flatten(0, -2)
            return
        for states in self.states.flatten(0, -2).split(rows_at_once(len(self.table))):
            yield F.linear(states, self.table, self.bias)


class MaskedTokenHead(nn.Module):
    """BERT's head, as in DeBERTa's generator: LN(gelu(W h)) times the token table, plus a bias."""

    def __init__(self, width: int, vocabulary: int, *, norm_eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Float[Tensor, "b k d"], table: Float[Tensor, "v d"]) -> VocabularyScores:
        """Compute scores (b k v)."""
        return VocabularyScores.of(self.norm(F.gelu(self.dense(states))), table, self.bias)


class ReplacedTokenHead(nn.Module):
    """The head w gelu(W LN(h_i + h_CLS)): one logit per token, positive for "replaced" (DeBERTa's released code)."""

    def __init__(self, width: int, *, norm_eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.dense = nn.Linear(width, width)
        self.logit = nn.Linear(width, 1)

    def forward(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b n"]:
        mixed = self.norm(states + states[:, :1])
        return self.logit(F.gelu(self.dense(mixed)))[..., 0]


class EnhancedMaskDecoder(LayerStack):
    """The generator's last layer, run twice: queries include absolute positions, keys do not change."""

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
        """Convert next-to-last states to those for the head; raise `ValueError` if the position table is too short."""
        length, longest = states.shape[1], self.absolute.num_embeddings
        if length > longest:
            raise ValueError(
                f"{length} tokens, but the enhanced mask decoder has {longest} positions; pack shorter blocks or "
                f"set generator_positions={length}"
            )
        queries = states + self.absolute.weight[:length]
        self.expect_other_sizes(states, mask, queries)
        for _ in range(self._PASSES):
            positions = relative.for_layers(states.device)() if relative is not None else None
            queries = self.run_layer(self.layer, states, mask, positions, queries)
        return queries
