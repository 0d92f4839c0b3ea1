"""Z-Code++'s encoder as a classifier or regressor of whole texts, as the paper's NLU tasks use it."""

from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.modeling_outputs import SequenceClassifierOutput

from precis.models.outputs import chosen
from precis.models.zcodepp.config import ZCodePPConfig
from precis.models.zcodepp.encoder import ZCodePPEncoderModel, ZCodePPPreTrainedModel
from precis.nn.dropout import Dropout


class ZCodePPForSequenceClassification(ZCodePPPreTrainedModel):
    """The encoder alone with DeBERTa's head: dense and GELU over the first token, [CLS], then a linear layer.
    Dropout stands before the last one only, as in the public configurations (pooler_dropout 0).
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
        """Logits (b, labels), and with `labels` the loss that the configuration's `problem_type` names.

        As in transformers' classifiers: "regression" is the mean squared error of (b) or (b, labels) numbers,
        "single_label_classification" cross-entropy of (b) classes, "multi_label_classification" binary cross-entropy
        of (b, labels) numbers in [0, 1]. Where it is None the first labels decide, and the configuration keeps it: one
        label is regression, whole numbers are classes, others are several labels.
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
