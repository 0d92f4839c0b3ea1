"""ProphetNet: a Transformer whose decoder predicts the next n tokens at each place (Qi et al., 2020).

The main stream reads the target, and n predicting streams guess ahead of it (`precis.nn.streams`). As in the released
code, only the predicting streams yield logits. Generation needs the main stream and stream 0, and the
others are not computed. Training uses all n (section 2.2), and `generation.fast.self_speculation` drafts with them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init

from precis.models.encoder_decoder import EncoderDecoder, Observer, SourceEncoder, TiedHead
from precis.models.family import hub_options, read_settings
from precis.models.prophetnet.configuration_prophetnet import (
    ProphetNetConfig,
    build_post_norm_encoder,
    build_stream_decoder,
)
from precis.models.prophetnet.prophetnet_weights import TRANSFORMERS_TYPES, load_transformers
from precis.nn.attention_weights import AttentionWeights
from precis.nn.padding import is_padded
from precis.nn.streams import StreamLayout
from precis.nn.transformer import PositionRows


class ProphetNetPreTrainedModel(PreTrainedModel):
    """Saving, loading and initialisation of the ProphetNet models."""

    config_class = ProphetNetConfig
    config: ProphetNetConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["PostNormEncoder", "StreamDecoder"]  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draw weights from N(0, init_std), as released; absolute positions may have their own `position_std`."""
        super()._init_weights(module)
        if isinstance(module, PositionRows) and self.config.position_std is not None:
            init.normal_(module.weight, std=self.config.position_std)
            if not getattr(module.weight, "_is_hf_initialized", False):  # slicing a row loses the mark
                init.zeros_(module.weight[module.padding_idx])


class ProphetNetEncoder(SourceEncoder, ProphetNetPreTrainedModel):
    """The encoder, from token ids to hidden states; `generate` calls it once per document."""

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

    def encode(
        self,
        rows: Float[Tensor, "b s d"],
        attention_mask: Tensor | None,
        lengths: Sequence[int] | None,
        *,
        observe: Observer | None,
        weights: AttentionWeights | None,
    ) -> Float[Tensor, "b s d"]:
        states: Tensor = self.stack(
            rows,
            torch.arange(rows.shape[1], device=rows.device)[None],
            attention_mask.bool() if attention_mask is not None else None,
            padded=is_padded(rows.shape[1], lengths),
            observe=observe,
            weights=weights,
        )
        return states


class ProphetNetModel(EncoderDecoder, ProphetNetPreTrainedModel):
    """Encoder and decoder without a head; both read one token table."""

    def __init__(self, config: ProphetNetConfig) -> None:
        super().__init__(config)
        self.encoder = ProphetNetEncoder(config)
        self.decoder = build_stream_decoder(config)
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
        assert layout is not None
        states: tuple[Tensor, Tensor] = self.decoder(
            embedded, source_states, layout=layout, positions=positions, observe=observe, **given
        )
        return states


class ProphetNetForConditionalGeneration(TiedHead, ProphetNetPreTrainedModel, GenerationMixin):
    """A ProphetNet for summarization or question generation, its language-model head tied to the token table.

    Unlike transformers' ProphetNet, it computes the predicting streams as in the paper.

    Examples:
        >>> shape = dict(vocab_size=100, hidden_size=16, encoder_ffn_dim=32, decoder_ffn_dim=32)
        >>> heads = dict(encoder_attention_heads=2, decoder_attention_heads=2)
        >>> config = precis.ProphetNetConfig(encoder_layers=1, decoder_layers=1, ngram=2, **shape, **heads)
        >>> model = ProphetNetForConditionalGeneration(config)
        >>> ids = torch.tensor([[5, 7, 9, 2]])
        >>> model(input_ids=ids, labels=ids).future_logits.shape  # of the next token and the one after it
        torch.Size([1, 2, 4, 100])
    """

    _tied_weights_keys = {"lm_head.weight": "model.encoder.tokens.weight"}  # noqa: RUF012

    def __init__(self, config: ProphetNetConfig) -> None:
        super().__init__(config)
        self.model = ProphetNetModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Load as transformers does; convert a folder or hub name of its own ProphetNet or XLM-ProphetNet.

        Raises:
            UserError: if its own model lacks safetensors, has weights of another model, or a `config` of another shape.
        """
        place = pretrained_model_name_or_path
        if place is not None:
            settings = read_settings(place, **hub_options(kwargs))
            if settings is not None and settings.get("model_type") in TRANSFORMERS_TYPES:
                return load_transformers(cls, place, **kwargs)
        return super().from_pretrained(place, *args, **kwargs)
