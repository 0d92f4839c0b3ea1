"""Token embeddings of the encoder, and a table shared by two models with disentangled gradients."""

from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from precis.nn.dropout import Dropout


class FanInEmbedding(nn.Embedding):
    """A table with rows initialised from N(0, std), and a zero padding row."""

    def __init__(self, rows: int, width: int, *, std: float, padding_id: int | None = None) -> None:
        self.std = std
        super().__init__(rows, width, padding_idx=padding_id)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)
        self._fill_padding_idx_with_zero()


class TokenEmbedding(nn.Module):
    """Token embeddings as in DeBERTa-v2/v3 without absolute positions: LN(E[x]), padding zeroed, dropout.

    The norm makes the encoder independent of the scale of the rows, which suits the head that shares the table
    (docs/adr/0002).

    `projection` maps a narrower table to the model's width (DeBERTa's embedding_size).
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        table_width: int,
        padding_id: int,
        norm_eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.tokens: nn.Module = FanInEmbedding(
            vocabulary, table_width, std=table_width**-0.5, padding_id=padding_id
        )
        self.projection = nn.Linear(table_width, width, bias=False) if table_width != width else None
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> Float[Tensor, "b s d"]:
        return self.finish(self.tokens(ids), valid)

    def finish(self, embedded: Float[Tensor, "b s w"], valid: Bool[Tensor, "b s"]) -> Float[Tensor, "b s d"]:
        """Convert token rows to the encoder's input."""
        if self.projection is not None:
            embedded = self.projection(embedded)
        return self.dropout(self.norm(embedded) * valid[..., None])


@final
class DisentangledEmbedding(nn.Module):
    """The discriminator's token table: E_D = sg(E_G) + E_delta (Z-Code++ Eq. 4, gradient-disentangled sharing).

    Gradients reach `delta` only. The generator owns its module: it is referenced, not registered here,
    so that its table is saved, moved and counted once.
    """

    def __init__(self, generator_table: nn.Embedding) -> None:
        super().__init__()
        self.delta = nn.Parameter(torch.zeros_like(generator_table.weight))
        self._generator_table = (generator_table,)  # a tuple hides it from nn.Module's registration

    @property
    def weight(self) -> Float[Tensor, "v d"]:
        """E_D as one tensor, for a tied head."""
        return self._generator_table[0].weight.detach() + self.delta

    def forward(self, ids: Int[Tensor, "b s"]) -> Float[Tensor, "b s d"]:
        return F.embedding(ids, self._generator_table[0].weight.detach()) + F.embedding(ids, self.delta)
