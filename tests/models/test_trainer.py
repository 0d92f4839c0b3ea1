"""transformers' Trainer with our models: nothing is left out of the loss in silence."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DataCollatorForSeq2Seq, PreTrainedModel, Seq2SeqTrainer, Seq2SeqTrainingArguments

from precis_text.errors import UserError
from tests.small_models import seq2seq
from tests.tiny_models import our_tokenizer

STREAMS = ("zcodepp-streams", "prophetnet")


def trainer(model: PreTrainedModel, folder: Path, **options: Any) -> Seq2SeqTrainer:
    rows = [{"input_ids": [7, 8, 9, 2], "labels": [8, 9, 2]} for _ in range(4)]
    arguments = Seq2SeqTrainingArguments(
        str(folder), max_steps=1, per_device_train_batch_size=2, report_to=[], use_cpu=True, **options
    )
    collate = DataCollatorForSeq2Seq(our_tokenizer(), model=model)
    return Seq2SeqTrainer(model, arguments, train_dataset=rows, eval_dataset=rows, data_collator=collate)


@pytest.mark.parametrize("kind", STREAMS)
def test_label_smoothing_is_refused_where_it_would_leave_streams_out(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the predicting streams would learn nothing"):
        trainer(seq2seq(kind), tmp_path, label_smoothing_factor=0.1).train()


def test_label_smoothing_of_a_plain_model_is_the_trainers_own(tmp_path: Path) -> None:
    assert trainer(seq2seq("zcodepp"), tmp_path, label_smoothing_factor=0.1).train().training_loss > 0


@pytest.mark.parametrize("kind", STREAMS)
def test_predictions_hold_the_next_tokens_logits_alone(kind: str, tmp_path: Path) -> None:
    model = seq2seq(kind)
    given = trainer(model, tmp_path)
    predictions = given.predict(given.eval_dataset).predictions
    logits, encoded = predictions
    assert logits.shape == (4, 3, model.config.vocab_size)
    assert encoded.shape == (4, 4, 32)  # the encoder's states, as of any model of transformers


@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_options_of_gradient_checkpointing_are_honoured(kind: str) -> None:
    model = seq2seq(kind).train()
    ids = torch.full((2, 5), 7)
    with pytest.raises(UserError, match="use_reentrant"):
        model.gradient_checkpointing_enable({"use_reentrant": True})
    asked = []
    model.gradient_checkpointing_enable(
        {
            "use_reentrant": False,
            "context_fn": lambda: asked.append(1) or (torch.no_grad(), torch.enable_grad()),  # type: ignore[func-returns-value]
        }
    )
    model(input_ids=ids, labels=ids)
    assert len(asked) == model.config.encoder_layers + model.config.decoder_layers
