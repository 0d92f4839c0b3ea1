"""BERTScore (Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT"), with an encoder of your own.

Each token of a prediction is matched with the most similar token of the reference, by the cosine of their hidden
states, and each token of the reference with the most similar one of the prediction:

    P = mean over the prediction's tokens, R = mean over the reference's tokens, F1 = 2 P R / (P + R)

without weights by rarity (idf) and without rescaling. As in the authors' code, control tokens can be matched but do not
count in the means. There, padding has the cosine 0, which changes the score of a token that resembles no other; here it
is never matched, so a score does not depend on its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.evaluation.answer_metrics import MeanScore
from precis.evaluation.rouge import check_scored, signature_of
from precis_text.errors import UserError

_PER_CENT = 100.0


class _Tokens(NamedTuple):
    """Texts as unit vectors.

    Attributes:
        vectors: (b n d), of length 1.
        there: (b n), False for padding.
        counts: (b n), False for padding and control tokens.
    """

    vectors: Tensor
    there: Tensor
    counts: Tensor


class BertScore:
    """BERTScore's F1 by one encoder.

    Args:
        model: an encoder in evaluation mode.
        tokenizer: the model's tokenizer.
        name: its name in the signature.
        limit: most tokens of a text; longer ones are truncated, and `cut` counts them.
        layer: the layer whose hidden states are compared; 0 is the embeddings, None the last.

    Attributes:
        cut: number of texts truncated so far.

    Raises:
        UserError: the model does not have that layer.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        limit: int,
        layer: int | None = None,
        batch_size: int = 16,
    ) -> None:
        layers = int(model.config.num_hidden_layers)
        if layer is not None and not 0 <= layer <= layers:
            raise UserError(f"--bertscore-layer {layer}: the encoder has {layers} layers; use 0 to {layers}")
        self._model, self._tokenizer, self._name = model, tokenizer, name
        self._limit, self._batch_size = limit, batch_size
        self._layer = layers if layer is None else layer
        self.cut = 0

    @property
    def signature(self) -> str:
        """All settings needed to reproduce the figures, in sacrebleu's `key:value|...` form."""
        usual = {"idf": "no", "rescaled": "no", "limit": self._limit, "refs": "max"}
        versions = {"transformers": version("transformers")}
        return signature_of("bertscore", model=self._name, layer=self._layer, **usual, **versions)

    def __call__(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
        """Score a test set, in the form that `precis.evaluation.scoring.score` needs.

        Raises:
            UserError: the predictions are empty; or as for `score`.
        """
        check_scored("BERTScore", predictions, references)
        return MeanScore(signature=self.signature, examples=self.score(predictions, references))

    def score(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Compute F1 * 100 of each prediction against its best reference, (n); an empty text scores 0."""
        rows = [
            (row, prediction, reference)
            for row, (prediction, texts) in enumerate(zip(predictions, references, strict=True))
            for reference in texts
            if prediction.strip() and reference.strip()
        ]
        rows.sort(key=lambda one: len(one[1]) + len(one[2]))
        best: dict[int, float] = {}
        for start in range(0, len(rows), self._batch_size):
            batch = rows[start : start + self._batch_size]
            found = self._f1([one[1] for one in batch], [one[2] for one in batch])
            for (row, *_), value in zip(batch, found.tolist(), strict=True):
                best[row] = max(value, best.get(row, value))
        return np.array([_PER_CENT * best.get(row, 0.0) for row in range(len(predictions))])

    @torch.inference_mode()
    def _f1(self, predictions: Sequence[str], references: Sequence[str]) -> Tensor:
        """Compute F1 of pairs of texts, (b)."""
        ours, theirs = self._read(predictions), self._read(references)
        cosines = ours.vectors @ theirs.vectors.mT  # (b p r)
        cosines = cosines.masked_fill(~(ours.there[:, :, None] & theirs.there[:, None]), -1.0)
        precision = _mean(cosines.amax(2), ours.counts)
        recall = _mean(cosines.amax(1), theirs.counts)
        return (2 * precision * recall / (precision + recall)).nan_to_num(0.0)

    def _read(self, texts: Sequence[str]) -> _Tokens:
        read = self._tokenizer(
            list(texts), truncation=True, max_length=self._limit, padding=True,
            return_overflowing_tokens=False, return_special_tokens_mask=True, return_tensors="pt",
        )  # fmt: skip
        whole = self._tokenizer(list(texts), verbose=False)["input_ids"]
        self.cut += sum(len(ids) > self._limit for ids in whole)
        there = read["attention_mask"].bool()
        states = self._model(
            input_ids=read["input_ids"].to(self._model.device),
            attention_mask=read["attention_mask"].to(self._model.device),
            output_hidden_states=True,
        ).hidden_states[self._layer]
        vectors = torch.nn.functional.normalize(states.float(), dim=-1).cpu()
        return _Tokens(vectors, there, there & ~read["special_tokens_mask"].bool())


def _mean(values: Tensor, counts: Tensor) -> Tensor:
    """Return the mean of the values that count: (b n) -> (b); 0 if none does."""
    return values.masked_fill(~counts, 0.0).sum(-1) / counts.sum(-1).clamp(min=1)
