"""Base of the Z-Code++ models, and the encoder: exactly DeBERTaV3, with fusion-in-encoder.

The classifier consists of the encoder and a head, as in the paper's NLU tasks.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput

from precis.models.encoder_decoder import Observer, SourceEncoder
from precis.models.outputs import chosen
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, build_encoder
from precis.nn.attention import FanInLinear
from precis.nn.attention_weights import AttentionWeights
from precis.nn.dropout import Dropout
from precis.nn.embeddings import FanInEmbedding, TokenEmbedding
from precis.nn.layer_plan import fusion_plan

_FUSION_CHUNK = 256


class ZCodePPPreTrainedModel(PreTrainedModel):
    """Saving, loading and initialisation of the Z-Code++ models."""

    config_class = ZCodePPConfig
    config: ZCodePPConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # whole stacks: tensors shared by layers (position table, source states) stay on the stack's device
    _no_split_modules = ["Encoder", "Decoder"]  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Use DeBERTa's N(0, 0.02) for encoder layers; the token table and T5's decoder define their own `std`."""
        if isinstance(module, FanInLinear):
            init.normal_(module.weight, std=module.std)
        elif isinstance(module, FanInEmbedding):
            init.normal_(module.weight, std=module.std)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        else:
            super()._init_weights(module)


class ZCodePPEncoder(SourceEncoder, ZCodePPPreTrainedModel):
    """The encoder, from token ids to hidden states; `generate` calls it once per document."""

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
        """Use fusion-in-encoder inside the context: chunks of 256, and a last global layer (Z-Code++ section 2.3)."""
        before = self.stack.plan
        layers = len(before)
        self.stack.plan = fusion_plan(layers, chunk_length=_FUSION_CHUNK, global_layers=min(1, layers))
        try:
            yield
        finally:
            self.stack.plan = before


class ZCodePPEncoderModel(ZCodePPPreTrainedModel):
    """The encoder with the weight names of a whole model, so that it loads from a whole model's folder."""

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


class ZCodePPForSequenceClassification(ZCodePPPreTrainedModel):
    """Encoder and DeBERTa's head for whole texts: dense and GELU over the first token, [CLS], then a linear layer.
    Dropout comes only before the linear layer, as in the public configurations (pooler_dropout 0).
    """

    accepts_loss_kwargs = False  # transformers' Trainer then divides the mean loss by its accumulation steps
    _keys_to_ignore_on_load_unexpected = [r"^model\.decoder\.", r"^lm_head\."]  # noqa: RUF012

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.model = ZCodePPEncoderModel(config)
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.dropout = Dropout(config.classifier_dropout)
        self.post_init()

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput | tuple[Any, ...]:
        """Return logits (b, labels), and with `labels` the loss that the configuration's `problem_type` names.

        As in transformers' classifiers: "regression" is the mean squared error of (b) or (b, labels) numbers,
        "single_label_classification" cross-entropy of (b) classes, "multi_label_classification" binary cross-entropy
        of (b, labels) numbers in [0, 1]. If it is None, the first labels determine it, and the configuration stores it:
        one label is regression, integers are classes, other numbers are several labels.
        """
        encoded = self.model(
            input_ids,
            attention_mask,
            inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        pooled = F.gelu(self.pooler(encoded.last_hidden_state[:, 0]))
        logits = self.classifier(self.dropout(pooled))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        output = SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=encoded.hidden_states, attentions=encoded.attentions
        )
        return output if chosen(self.config, "return_dict", return_dict) else output.to_tuple()
