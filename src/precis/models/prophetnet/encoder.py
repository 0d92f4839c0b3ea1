"""What the ProphetNet models share, and the encoder: the original Transformer's, with learnt positions."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from precis.models.encoder_decoder import OpensWholeModels
from precis.models.prophetnet.config import ProphetNetConfig, build_post_norm_encoder
from precis.nn.attention_weights import AttentionWeights, in_order
from precis.nn.padding import is_padded
from precis.nn.transformer import PositionRows


class ProphetNetPreTrainedModel(PreTrainedModel):
    """Saving, loading and initialisation that the ProphetNet models share."""

    config_class = ProphetNetConfig
    config: ProphetNetConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["PostNormEncoder", "StreamDecoder"]  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """N(0, init_std), as released; absolute positions have a spread of their own, if the configuration says so."""
        super()._init_weights(module)
        if isinstance(module, PositionRows) and self.config.position_std is not None:
            init.normal_(module.weight, std=self.config.position_std)
            if not getattr(module.weight, "_is_hf_initialized", False):  # a row of it has lost the mark
                init.zeros_(module.weight[module.padding_idx])

    def _choice(self, name: str, given: bool | None) -> bool:
        """An option of a call, or the configuration's when the call does not say."""
        return bool(getattr(self.config, name)) if given is None else given


class ProphetNetEncoder(OpensWholeModels, ProphetNetPreTrainedModel):
    """Token ids to states; what `generate` calls once per document."""

    def __init__(self, config: ProphetNetConfig) -> None:
        super().__init__(config)
        self.tokens: nn.Module = nn.Embedding(
            config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id
        )
        self.stack = build_post_norm_encoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.tokens = value

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
        """Encode a padded batch; padding goes on the right, since positions are counted from the first token.

        Args:
            source_lengths: the sums of `attention_mask`'s rows, where the caller knows them: a GPU is then not waited
                for.
            output_attentions: give the weights (b h s s) of each layer too, by the plain path.

        Raises:
            ValueError: neither or both of `input_ids` and `inputs_embeds` are given, or the input is longer than the
                table of positions.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds, not both and not neither")
        embedded = self.tokens(input_ids) if inputs_embeds is None else inputs_embeds
        seen: list[Tensor] | None = [] if self._choice("output_hidden_states", output_hidden_states) else None
        weights = AttentionWeights() if self._choice("output_attentions", output_attentions) else None
        states = self.stack(
            embedded,
            torch.arange(embedded.shape[1], device=embedded.device)[None],
            attention_mask.bool() if attention_mask is not None else None,
            padded=is_padded(embedded.shape[1], source_lengths),
            observe=seen.append if seen is not None else None,
            weights=weights,
        )
        output = BaseModelOutput(
            last_hidden_state=states,
            hidden_states=tuple(seen) if seen else None,
            attentions=in_order(weights.self_attention) if weights is not None else None,
        )
        return output if self._choice("return_dict", return_dict) else output.to_tuple()
