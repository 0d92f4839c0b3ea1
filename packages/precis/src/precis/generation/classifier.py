"""Loads classifiers and encoders, and labels texts with Z-Code++ classifiers, each independently of its batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from precis.data.tasks.label_schema import Answers, answers_of
from precis.data.text.encoding import control_ids, encode_documents, with_instruction
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.generation.decoder_batches import padded
from precis.generation.model_folder import (
    CheckedSettings,
    ModelFolder,
    check_finite,
    check_left_over,
    check_memory,
    config_from,
    with_weights,
)
from precis.generation.model_loader import usual_device
from precis.generation.model_location import ModelLocation, locate
from precis.generation.model_metadata import ModelUse
from precis.generation.summarizer import Summary
from precis.messages import without_bars
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification
from precis.storage.seal import checking_sealed
from precis_text.errors import UserError, first_line

_WINDOW = 16  # batches sorted by length together


class Classifier:
    """A classifier that answers with a label or a number.

    Args:
        model: in evaluation mode, on its device.
        use: the modes it was trained for; its task determines how it reads texts.
    """

    def __init__(
        self, model: ZCodePPForSequenceClassification, tokenizer: PreTrainedTokenizerBase, use: ModelUse
    ) -> None:
        self.model, self.use = model, use
        self.answers = answers_of(use.task)
        self._tokenizer, self._control = tokenizer, control_ids(tokenizer)

    @classmethod
    def from_pretrained(cls, model: str | Path | ModelLocation) -> Self:
        """Load from a run folder or a Hugging Face folder; raise `UserError` if precis did not train it."""
        location = locate(model)
        source, place = location.base, location.folder
        if place is None or not location.use.task:
            raise UserError(
                f"{source}: precis did not train it to label texts; train one with precis finetune --answer head"
            )
        with checking_sealed(place):
            loaded = load_classifier(place, source, location.settings)
        if not isinstance(loaded, ZCodePPForSequenceClassification):
            raise UserError(f"{source}: a {loaded.config.model_type!r} classifier; precis uses only Z-Code++")
        loaded.to(usual_device())
        return cls(loaded, load_tokenizer(place, checked=True), location.use)

    def stream(self, documents: Sequence[str], *, batch_size: int) -> Iterator[Summary]:
        """Yield the answer to each document, in order; a number has four decimals."""
        for begin in range(0, len(documents), batch_size * _WINDOW):
            rows, sizes = self._rows(documents[begin : begin + batch_size * _WINDOW])
            order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
            texts: dict[int, str] = {}
            for start in range(0, len(order), batch_size):
                chosen = order[start : start + batch_size]
                values = self._values([rows[row] for row in chosen])
                texts |= zip(chosen, answer_texts(values, self.answers), strict=True)
            for row, size in enumerate(sizes):
                read = len(rows[row]) - sum(token in self._control for token in rows[row])
                yield Summary(text=texts[row], document_tokens=size, tokens_read=read, summary_tokens=0)

    def _rows(self, documents: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """Return each document's ids, truncated to the model's trained length, and its number of tokens."""
        texts = [with_instruction(self.answers.read(text), self.use.instruction) for text in documents]
        rows = encode_documents(texts, self._tokenizer)
        sizes = [sum(token not in self._control for token in row) for row in rows]
        limit = self.use.max_source
        if limit is not None:
            rows = [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in rows]
        return rows, sizes

    @torch.inference_mode()
    def _values(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = (each.to(self.model.device) for each in padded(rows, self._tokenizer.pad_token_id))
        logits: Tensor = self.model(ids, mask).logits
        return logits.float().cpu()


def answer_texts(logits: Tensor, answers: Answers) -> list[str]:
    """Convert logits (n, labels) to the words of labels, or to numbers."""
    if answers.labels:
        return [answers.labels[label] for label in logits.argmax(-1).tolist()]
    return [f"{number:.4f}" for number in logits[:, 0].tolist()]


def load_classifier(folder: Path, source: str, settings: CheckedSettings) -> PreTrainedModel:
    """Load a sequence classifier of any family from a local folder, in fp32 on the CPU, in evaluation mode.

    Args:
        source: its name in errors.
        settings: the content of its settings files; its files do not link outside it.

    Raises:
        UserError: if it is not a classifier, or its weights are damaged or of another model.
    """
    model, found, info = _load(
        AutoModelForSequenceClassification, folder, source, settings, "a sequence classifier"
    )
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        raise UserError(
            f"{source}: {len(missing)} parameters are missing, {missing[0]!r} first; give the folder of a trained "
            "classifier"
        )
    check_left_over(found, sorted(info["unexpected_keys"]), source)
    check_finite(model, source)
    return model.eval()


def load_encoder(folder: Path, source: str, settings: CheckedSettings) -> PreTrainedModel:
    """Load the encoder of a model of any family from a local folder, without its head or its decoder.

    The arguments are those of `load_classifier`.

    Raises:
        UserError: if it is not an encoder or an encoder-decoder, or its weights are damaged or of another model.
    """
    model, _, info = _load(AutoModel, folder, source, settings, "an encoder")
    missing = sorted(name for name in info["missing_keys"] if not name.startswith("pooler."))  # not read
    if missing:
        raise UserError(f"{source}: {len(missing)} parameters are missing, {missing[0]!r} first")
    check_finite(model, source)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    return cast(PreTrainedModel, encoder.eval())


def _load(
    kind: Any, folder: Path, source: str, settings: CheckedSettings, what: str
) -> tuple[PreTrainedModel, ModelFolder, dict[str, Any]]:
    """Load a model by one of the library's Auto classes, with its files and the names that do not fit."""
    found = with_weights(folder, settings.model)
    try:
        config = config_from(found.settings)
        check_memory(found, kind, config)
        with without_bars():
            model, info = kind.from_pretrained(
                str(folder), config=config, use_safetensors=True, trust_remote_code=False,
                local_files_only=True, output_loading_info=True,
            )  # fmt: skip
    except Exception as error:  # the library's own checks raise many types
        raise UserError(f"{source}: is not {what}: {first_line(error)}") from error
    return cast(PreTrainedModel, model), found, info
