"""Support of a summary's sentences by a local classifier of the MiniCheck or entailment kind.

Tang et al. (2024), "MiniCheck: Efficient Fact-Checking of LLMs on Grounding Documents": the document is split into
chunks of whole sentences. Each sentence of a summary is checked against each chunk, and the best support counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis_text.errors import UserError
from precis_text.units import extraction_units

_YES = ("entail", "support", "consisten", "factual")
_NO = ("not", "non", "un", "in", "contra")
_LEAST_ROOM = 64  # tokens of a chunk


class Checker:
    """Scorer of summaries: a sequence classifier that reads (chunk of the document, sentence).

    Args:
        limit: most tokens of one input.
        licence: licence named in its folder, shown with its scores.

    Raises:
        UserError: its labels do not show which one means "supported".
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        limit: int,
        licence: str,
        batch_size: int = 8,
    ) -> None:
        self._model, self._tokenizer, self._limit = model, tokenizer, limit
        self._batch_size = batch_size
        self.licence = licence
        self._yes = _supported_label(model.config.id2label or {})

    def __call__(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Mapping[str, NDArray[np.float64]]:
        """Return {"checker": (n)}: mean probability of support of the sentences, 0 to 1; NaN if a text is empty.

        References are ignored.
        """
        rows: list[tuple[str, str]] = []
        places: list[list[list[int]]] = []
        for document, summary in zip(documents, summaries, strict=True):
            units = [unit.text for unit in extraction_units(document)]
            sentences = [unit.text for unit in extraction_units(summary)]
            chunks = self._chunks(units, room=self._room(sentences))
            places.append([])
            for sentence in sentences:
                places[-1].append(list(range(len(rows), len(rows) + len(chunks))))
                rows += [(chunk, sentence) for chunk in chunks]
        found = self._probabilities(rows)
        means = [
            float(np.mean([found[row].max() for row in of_one])) if of_one and of_one[0] else np.nan
            for of_one in places
        ]
        return {"checker": np.array(means, dtype=np.float64)}

    def _room(self, sentences: Sequence[str]) -> int:
        """Return the tokens that a chunk may have, given the longest sentence and the control tokens."""
        longest = max((self._count(sentence) for sentence in sentences), default=0)
        return max(_LEAST_ROOM, self._limit - longest - self._tokenizer.num_special_tokens_to_add(pair=True))

    def _count(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _chunks(self, units: Sequence[str], *, room: int) -> list[str]:
        """Split the document into as few chunks of whole units as possible."""
        chunks: list[list[str]] = []
        used = room + 1
        for unit in units:
            size = self._count(unit) + 1
            if used + size > room:
                chunks.append([])
                used = 0
            chunks[-1].append(unit)
            used += size
        return [" ".join(chunk) for chunk in chunks]

    @torch.inference_mode()
    def _probabilities(self, rows: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Compute the probability of "supported" for each (chunk, sentence), in batches of similar length."""
        found = np.zeros(len(rows))
        order = sorted(range(len(rows)), key=lambda row: len(rows[row][0]) + len(rows[row][1]))
        for start in range(0, len(order), self._batch_size):
            chosen = order[start : start + self._batch_size]
            inputs = self._tokenizer(
                [rows[row][0] for row in chosen],
                [rows[row][1] for row in chosen],
                truncation="only_first",
                max_length=self._limit,
                padding=True,
                return_tensors="pt",
            ).to(self._model.device)
            logits = self._model(**inputs).logits.float()
            found[chosen] = logits.softmax(-1)[:, self._yes].cpu().numpy()
        return found


def _supported_label(names: Mapping[int, str]) -> int:
    """Return the label that means that a sentence is supported."""
    said = {int(label): str(name).lower() for label, name in names.items()}
    fitting = [
        label
        for label, name in said.items()
        if any(word in name for word in _YES) and not name.startswith(_NO)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if sorted(said.values()) == ["label_0", "label_1"]:
        return 1  # as in MiniCheck
    raise UserError(
        f"the checker's labels are {', '.join(names.values())}; use a model with one label named entailment or "
        "supported, or with two unnamed labels"
    )
