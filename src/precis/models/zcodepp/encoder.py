"""What all Z-Code++ models share, and the encoder: DeBERTaV3 to the letter, with fusion-in-encoder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from precis.models.encoder_decoder import Observer, SourceEncoder
from precis.models.zcodepp.config import ZCodePPConfig, build_encoder
from precis.nn.attention import FanInLinear
from precis.nn.attention_weights import AttentionWeights
from precis.nn.embeddings import FanInEmbedding, TokenEmbedding
from precis.nn.layer_plan import fusion_plan

_FUSION_CHUNK = 256


class ZCodePPPreTrainedModel(PreTrainedModel):
    """Saving, loading and initialisation that all Z-Code++ models share."""

    config_class = ZCodePPConfig
    config: ZCodePPConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # whole stacks: what their layers share (position table, source states) stays on the stack's device
    _no_split_modules = ["Encoder", "Decoder"]  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """DeBERTa's N(0, 0.02) for the encoder's layers; the token table and T5's decoder bring their own spreads."""
        if isinstance(module, FanInLinear):
            init.normal_(module.weight, std=module.std)
        elif isinstance(module, FanInEmbedding):
            init.normal_(module.weight, std=module.std)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        else:
            super()._init_weights(module)


class ZCodePPEncoder(SourceEncoder, ZCodePPPreTrainedModel):
    """Token ids to states; what `generate` calls once per document."""

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.embedding = TokenEmbedding(
            config.vocab_size,
            config.hidden_size,
            table_width=config.embedding_size or config.hidden_size,
            padding_id=config.pad_token_id or 0,
            norm_eps=config.layer_norm_eps,
            dropout=config.dropout,
        )
        self.stack = build_encoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding.tokens = value

    def encode(
        self,
        rows: Float[Tensor, "b s w"],
        attention_mask: Tensor | None,
        lengths: Sequence[int] | None,
        *,
        observe: Observer | None,
        weights: AttentionWeights | None,
    ) -> Float[Tensor, "b s d"]:
        valid = (
            attention_mask.bool()
            if attention_mask is not None
            else torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
        )
        embedded = self.embedding.finish(rows, valid)
        if observe is not None:
            observe(embedded)
        states: Tensor = self.stack(
            embedded,
            valid,
            padded=False if attention_mask is None else None,
            lengths=lengths,
            observe=observe,
            weights=weights,
        )
        return states

    @contextmanager
    def fused(self) -> Iterator[None]:
        """Read by fusion-in-encoder for the duration: chunks of 256, and a last global layer (Z-Code++ section 2.3)."""
        before = self.stack.plan
        layers = len(before)
        self.stack.plan = fusion_plan(layers, chunk_length=_FUSION_CHUNK, global_layers=min(1, layers))
        try:
            yield
        finally:
            self.stack.plan = before


class ZCodePPEncoderModel(ZCodePPPreTrainedModel):
    """The encoder under the names that its weights have in a whole model, whose folders it opens."""

    _keys_to_ignore_on_load_unexpected = [r"^decoder\.", r"^model\.decoder\.", r"^lm_head\."]  # noqa: RUF012

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.encoder = ZCodePPEncoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        **options: Any,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """Encode a batch; see `ZCodePPEncoder`."""
        return self.encoder(input_ids, attention_mask, inputs_embeds, **options)
