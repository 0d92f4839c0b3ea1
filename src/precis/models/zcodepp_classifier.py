"""Z-Code++'s encoder as a classifier or regressor of whole texts, as the paper's NLU tasks use it."""

from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.modeling_outputs import SequenceClassifierOutput

from precis.models.zcodepp import ZCodePPEncoder, ZCodePPPreTrainedModel
from precis.models.zcodepp_config import ZCodePPConfig
from precis.nn.dropout import Dropout


class ZCodePPForSequenceClassification(ZCodePPPreTrainedModel):
    """The encoder alone with DeBERTa's head: dense and GELU over the first token, [CLS], then a linear layer.
    Dropout stands before the last one only, as in the public configurations (pooler_dropout 0).
    """

    accepts_loss_kwargs = False  # transformers' Trainer then divides the mean loss by its accumulation steps
    _keys_to_ignore_on_load_unexpected = [r"^model\.decoder\.", r"^lm_head\."]  # noqa: RUF012

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.model = nn.ModuleDict({"encoder": ZCodePPEncoder(config)})
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.dropout = Dropout(config.classifier_dropout)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        encoder = self.model["encoder"]
        assert isinstance(encoder, ZCodePPEncoder)
        return encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        encoder = self.model["encoder"]
        assert isinstance(encoder, ZCodePPEncoder)
        encoder.set_input_embeddings(value)

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput | tuple[Any, ...]:
        """Logits (b, labels); the loss is mean squared error for one label, else cross-entropy."""
        encoded = self.model["encoder"](
            input_ids, attention_mask, inputs_embeds, output_attentions=output_attentions, return_dict=True
        )
        pooled = F.gelu(self.pooler(encoded.last_hidden_state[:, 0]))
        logits = self.classifier(self.dropout(pooled))
        loss = None
        if labels is not None and self.config.num_labels == 1:
            loss = F.mse_loss(logits.squeeze(-1), labels.to(logits.dtype))
        elif labels is not None:
            loss = F.cross_entropy(logits, labels)
        output = SequenceClassifierOutput(loss=loss, logits=logits)
        return output if self._choice("return_dict", return_dict) else output.to_tuple()
