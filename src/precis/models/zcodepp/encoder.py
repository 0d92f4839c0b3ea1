"""What all Z-Code++ models share, and the encoder: DeBERTaV3 to the letter, with fusion-in-encoder."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from precis.models.encoder_decoder import OpensWholeModels
from precis.models.zcodepp.config import ZCodePPConfig, build_encoder
from precis.nn.attention import FanInLinear
from precis.nn.attention_weights import AttentionWeights, in_order
from precis.nn.embeddings import FanInEmbedding, TokenEmbedding


class ZCodePPPreTrainedModel(PreTrainedModel):
    """Saving, loading and initialisation that all Z-Code++ models share."""

    config_class = ZCodePPConfig
    config: ZCodePPConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # whole stacks: what their layers share (position table, source states) stays on the stack's device
    _no_split_modules = ["Encoder", "Decoder"]  # noqa: RUF012

    def _choice(self, name: str, given: bool | None) -> bool:
        """An option of a call, or the configuration's when the call does not say."""
        return bool(getattr(self.config, name)) if given is None else given

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


class ZCodePPEncoder(OpensWholeModels, ZCodePPPreTrainedModel):
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

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        source_lengths: Sequence[int] | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """Encode a padded batch.

        Args:
            attention_mask: (b s), non-zero at real tokens; None when nothing is padded.
                With fusion-in-encoder pad on the right: chunks are cut by position.
            inputs_embeds: rows looked up by the caller, in place of `input_ids`.
            source_lengths: real tokens of each row, padding on the right, where they are known: no GPU is waited for.
            output_attentions: give the weights (b h s s) of each layer too, by the plain path.

        Raises:
            ValueError: neither or both of `input_ids` and `inputs_embeds` are given, `source_lengths` do not fit, or
                padding on the left shifts chunks.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds, not both and not neither")
        rows = self.embedding.tokens(input_ids) if inputs_embeds is None else inputs_embeds
        valid = (
            attention_mask.bool()
            if attention_mask is not None
            else torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
        )
        embedded = self.embedding.finish(rows, valid)
        seen = [embedded] if self._choice("output_hidden_states", output_hidden_states) else None
        weights = AttentionWeights() if self._choice("output_attentions", output_attentions) else None
        states = self.stack(
            embedded,
            valid,
            padded=False if attention_mask is None else None,
            lengths=source_lengths,
            observe=seen.append if seen is not None else None,
            weights=weights,
        )
        output = BaseModelOutput(
            last_hidden_state=states,
            hidden_states=tuple(seen) if seen else None,
            attentions=in_order(weights.self_attention) if weights is not None else None,
        )
        return output if self._choice("return_dict", return_dict) else output.to_tuple()


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

    def get_encoder(self, modality: str | None = None) -> ZCodePPEncoder:
        return self.encoder

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """What `ZCodePPEncoder` gives."""
        return self.encoder(
            input_ids,
            attention_mask,
            inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=return_dict,
        )
