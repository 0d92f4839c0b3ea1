"""An extractor whose scorer reads the hidden states of an encoder.

units -> encoder, once (`precis.extract.unit_encoder`) -> scorer (`precis.models.unit_scorer`) -> a score each
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.unit_batches import filled
from precis.extract.extractor import Extractor, UnitScores
from precis.extract.unit_encoder import EncodedUnits, UnitReader
from precis.extract.unit_tokens import ReadUnits, UnitTokens
from precis.generation.input_plan import assumed_limit, input_limit
from precis.generation.model_loader import LoadedModel
from precis.generation.summary import How
from precis.messages import OnProgress
from precis.models.unit_scorer import UnitScorer, load_scorer
from precis_text.errors import UserError
from precis_text.length import Cap
from precis_text.selection import WINDOW, expected_words
from precis_text.unit_features import unit_features

_UNITS = 4 * WINDOW  # units in a pass of the scorer, padding included


class EncoderExtractor(Extractor):
    """An extractor with a model.

    Args:
        model: any encoder-decoder; its decoder is not used.
        tokenizer: the model's tokenizer.
        scorer: trained on the hidden states of its encoder.
        max_source: the longest input in tokens that it was trained on; if None, the limit of model and tokenizer.
        languages: the languages that the scorer was trained on.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        scorer: UnitScorer,
        *,
        max_source: int | None = None,
        languages: Sequence[str] = (),
    ) -> None:
        declared = input_limit(model.config, tokenizer, trained=max_source)
        self.max_source = assumed_limit(model.config) if declared is None else declared
        self.model, self.tokenizer = model, tokenizer
        self.scorer = scorer.to(model.device)
        self.reader = UnitReader(model, tokenizer, max_source=self.max_source)
        self.tokens, self.languages = self.reader.tokens, (*languages,)

    @classmethod
    def of(cls, loaded: LoadedModel) -> Self:
        """Use a loaded model with a scorer; raise `UserError` if it was not trained for extraction."""
        if loaded.folder is None:
            raise UserError(
                f"{loaded.source}: only models in a folder can choose sentences; use --mode abstract"
            )
        scorer = load_scorer(loaded.folder, states=loaded.model.config.hidden_size)
        use = loaded.use
        return cls(loaded.model, loaded.tokenizer, scorer, max_source=use.max_source, languages=use.languages)

    def read(
        self, documents: Sequence[UnitTokens], on_progress: OnProgress | None = None
    ) -> list[EncodedUnits]:
        return self.reader.read(documents, on_progress)

    def open_tokenizer(self) -> PreTrainedTokenizerBase:
        return self.tokenizer

    def how(self, read: ReadUnits) -> How:
        return self.reader.how(read.document_tokens) if read.pieces == 1 else "chunk"

    @torch.inference_mode()
    def scored(
        self, read: Sequence[ReadUnits], cap: Cap | None, on_progress: OnProgress | None = None
    ) -> list[UnitScores]:
        """Score the units of each document independently, many documents in one pass."""
        encoded = [each for each in read if isinstance(each, EncodedUnits)]
        features = [torch.from_numpy(unit_features([u.text for u in r.units], r.tokens)) for r in encoded]
        windows = [
            (features[number][start : start + WINDOW], each.vectors[start : start + WINDOW])
            for number, each in enumerate(encoded)
            for start in range(0, len(each.units), WINDOW)
        ]
        found: dict[int, tuple[list[float], float]] = {}
        lengths = [len(told) for told, _ in windows]
        for batch in filled(lengths, _UNITS):
            states = pad_sequence([windows[place][1] for place in batch], batch_first=True)
            told = pad_sequence([windows[place][0] for place in batch], batch_first=True).to(states)
            sizes = torch.tensor([lengths[place] for place in batch], device=states.device)
            valid = torch.arange(states.shape[1], device=states.device) < sizes[:, None]
            logits, words = self.scorer(states, told, valid)
            rows = zip(batch, logits.sigmoid().tolist(), sizes.tolist(), words.tolist(), strict=True)
            found.update({place: (row[:size], log) for place, row, size, log in rows})
        scores = []
        ordered = (found[place] for place in range(len(windows)))
        for each in encoded:
            own = [next(ordered) for _ in range(0, len(each.units), WINDOW)]
            scores.append(
                UnitScores([s for row, _ in own for s in row], expected_words([log for _, log in own]))
            )
        return scores
