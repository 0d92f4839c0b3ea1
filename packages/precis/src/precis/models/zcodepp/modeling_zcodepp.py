"""Z-Code++: disentangled-attention encoder, T5-1.0 decoder, fusion-in-encoder for long documents.

Paper: He et al. 2023 (ACL), sections 2.2 and 2.3. The paper leaves the decoder open ("the same setting as T5"); we
use T5-1.0: pre-RMSNorm, ReLU, no biases, one bucketed relative bias for all layers. With 24+24 layers of 1024 this
gives 705.6 M parameters without embeddings, the paper's "710M". The encoder is exactly DeBERTaV3, so its
public weights load.
"""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import GenerationMixin

from precis.models.encoder_decoder import EncoderDecoder, Observer, TiedHead
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, build_decoder
from precis.models.zcodepp.deberta_weights import copy_deberta, read_deberta
from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoder, ZCodePPPreTrainedModel
from precis.nn.attention_weights import observe_states
from precis.nn.streams import StreamLayout

# Scale of token embeddings at the decoder's input, relative to sublayer outputs of size one (docs/adr/0002).
TOKEN_SIZE = 0.2


class ZCodePPModel(EncoderDecoder, ZCodePPPreTrainedModel):
    """Encoder and decoder without a head; the decoder reads the encoder's token table."""

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        if config.embedding_size not in (None, config.hidden_size):
            raise ValueError(
                f"embedding_size={config.embedding_size} with hidden_size={config.hidden_size}: the decoder needs "
                "token rows as wide as the model; leave embedding_size unset"
            )
        self.encoder = ZCodePPEncoder(config)
        self.decoder = build_decoder(config)
        self.post_init()

    def run_decoder(
        self,
        embedded: Float[Tensor, "b t d"],
        source_states: Float[Tensor, "b s d"],
        *,
        layout: StreamLayout | None,
        positions: Int[Tensor, "b t"] | None,
        observe: Observer | None,
        **given: Any,
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b p d"]]:
        length, states = embedded.shape[1], embedded
        if layout is not None:
            assert self.decoder.streams is not None
            predicting = self.decoder.streams(layout.streams - 1)[None].expand(len(states), -1, -1)
            states = torch.cat([states, predicting], dim=1)
        states = observe_states(states * (TOKEN_SIZE * self.config.hidden_size**0.5), length, observe)
        states = self.decoder(states, source_states, layout=layout, observe=observe, **given)
        return states[:, :length], states[:, length:]


class ZCodePPForConditionalGeneration(TiedHead, ZCodePPPreTrainedModel, GenerationMixin):
    """A Z-Code++ for summarization, translation or answers, its language-model head tied to the token table.

    Examples:
        >>> shape = dict(vocab_size=100, hidden_size=16, num_attention_heads=2, intermediate_size=32)
        >>> model = ZCodePPForConditionalGeneration(precis.ZCodePPConfig(encoder_layers=2, decoder_layers=1, **shape))
        >>> model.eval().generate(torch.tensor([[1, 7, 9, 2]]), max_new_tokens=3).shape[1] <= 4
        True
    """

    _tied_weights_keys = {"lm_head.weight": "model.encoder.embedding.tokens.weight"}  # noqa: RUF012

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.model = ZCodePPModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @classmethod
    def from_deberta(cls, folder: str | Path, **overrides: Any) -> "ZCodePPForConditionalGeneration":
        """Build a model whose encoder is a DeBERTa-v2/v3 checkpoint and whose decoder is new (fusion layers use the
        encoder's own weights, Z-Code++ section 2.3).

        Args:
            folder: a local DeBERTa folder or a hub name.
            overrides: any `ZCodePPConfig` value, e.g. `decoder_layers=6, chunk_length=256`.

        Raises:
            UserError: if it is not a DeBERTa-v2/v3 checkpoint, lacks safetensors, or contradicts the overrides.
        """
        settings, weights = read_deberta(folder, overrides)
        model = cls(ZCodePPConfig(**settings))
        copy_deberta(model.model.encoder, weights)
        model.tie_weights()
        return model
