"""Summarizes documents by choosing their units word for word: sentences, or turns of a dialogue.

    document -> units -> encoder, once -> scorer (`precis.models.unit_scorer`) -> the best units that fit, in order

An extract invents nothing, but may lack the context that its units refer to. Without a limit it has about as many
words as the scorer expects of a summary of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, Unpack

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.unit_batches import filled
from precis.data.text.encoding import portions
from precis.extract.scorer_files import load_scorer
from precis.extract.unit_encoder import ReadUnits, UnitReader, UnitTokens
from precis.generation.decoder_batches import Watch
from precis.generation.input_plan import assumed_limit, input_limit
from precis.generation.model_loader import LoadedModel, load_model
from precis.generation.model_location import ModelLocation
from precis.generation.summary import NOTHING, Summary, kept, several
from precis.models.unit_scorer import UnitScorer
from precis_text.central_choice import scores_in_language
from precis_text.control_characters import main_part, unmarked
from precis_text.documents.passages import Passages, text_of
from precis_text.errors import UserError
from precis_text.forms.form import Form, FormType, ScoredText
from precis_text.forms.form_choice import FormOptions, chosen_form, formed
from precis_text.length import Length, LengthOptions, Tokens, chosen_length, trim
from precis_text.selection import TOGETHER, WINDOW, choose, expected_words, joined
from precis_text.unit_features import unit_facts

AHEAD = 8 * TOGETHER
"""Approximate characters of documents read together, which give the tokens of one or two passes."""

_UNITS = 4 * WINDOW  # units in a pass of the scorer, padding included


class ExtractOptions(LengthOptions, FormOptions, total=False):
    """The options of `Extractor.stream`."""

    form: Form | None
    length: Length | None
    skip_empty: bool
    watch: Watch | None


class Extractor:
    """An extractive summarizer with the methods of `precis.generation.summarizer.Summarizer`.

    Args:
        model: any encoder-decoder; its decoder is not used.
        tokenizer: the model's tokenizer.
        scorer: trained on the hidden states of its encoder.
        max_source: the longest input in tokens that it was trained on; if None, the limit of model and tokenizer.
        languages: the languages that the scorer was trained on; see `precis_text.central_choice.scores_in_language`.

    Examples:
        >>> extractor = Extractor.from_pretrained("runs/news")
        >>> (summary,) = extractor.summarize(["Ann sings in the hall. Bob listens to her. It rains."], sentences=1)
        >>> summary.mode
        'extract'
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
        self.languages = (*languages,)
        declared = input_limit(model.config, tokenizer, trained=max_source)
        self.limit_is_assumed = declared is None
        self.max_source = assumed_limit(model.config) if declared is None else declared
        self.model = model
        self.scorer = scorer.to(model.device)
        self.tokenizer = tokenizer
        self._read = UnitReader(model, tokenizer, max_source=self.max_source)

    @classmethod
    def from_pretrained(
        cls, model: str | Path | ModelLocation, *, device: str | torch.device | None = None
    ) -> Self:
        """Load a model trained for extraction, such as `default`; see `precis.generation.model_loader.load_model`.

        Raises:
            UserError: if it cannot be loaded, or was not trained for extraction.
        """
        return cls.of(load_model(model, device=device))

    @classmethod
    def of(cls, loaded: LoadedModel) -> Self:
        """Use a loaded model trained for extraction.

        Raises:
            UserError: if it was not trained for extraction.
        """
        if loaded.folder is None:
            raise UserError(
                f"{loaded.source}: only models in a folder can choose sentences; use --mode abstract"
            )
        scorer = load_scorer(loaded.folder, states=loaded.model.config.hidden_size)
        use = loaded.use
        return cls(loaded.model, loaded.tokenizer, scorer, max_source=use.max_source, languages=use.languages)

    def summarize(
        self, documents: Sequence[str | Passages], **options: Unpack[ExtractOptions]
    ) -> list[Summary]:
        """Return the extracts of `documents`, in their order. Options are those of `stream`."""
        return list(self.stream(several(documents), **options))

    def stream(
        self,
        documents: Iterable[str | Passages],
        *,
        form: Form | None = None,
        type: FormType | None = None,  # noqa: A002  the name of the option
        about: str | None = None,
        length: Length | None = None,
        skip_empty: bool = False,
        watch: Watch | None = None,
        **lengths: Unpack[LengthOptions],
    ) -> Iterator[Summary]:
        """Yield the extracts in the order of the documents. Options are those of `Summarizer.stream`.

        Raises:
            UserError: if a document lacks tokens (the error gives its number), or an option is invalid.
        """
        wanted = _Wanted(chosen_form(form, type, about), chosen_length(length, lengths))
        done = 0
        for window in portions(_own_texts(documents), _size, most=AHEAD):
            found = self._read.tokenize([passages.text for passages in window])
            if None in found and not skip_empty:
                place = found.index(None)
                is_blank = not window[place].text.strip()
                problem = "is empty" if is_blank else "contains no tokens that the model knows"
                raise UserError(f"document {done + place + 1} {problem}: there is nothing to summarize")
            yield from self._together(window, found, wanted, watch)
            done += len(window)

    def _together(
        self,
        documents: Sequence[Passages],
        found: Sequence[UnitTokens | None],
        wanted: _Wanted,
        watch: Watch | None,
    ) -> list[Summary]:
        """Return the extracts of documents that are read together."""
        to_read = {
            place: tokens
            for place, (passages, tokens) in enumerate(zip(documents, found, strict=True))
            if tokens is not None and not wanted.keeps(passages.text, tokens=tokens.document_tokens)
        }
        read = self._read.read([*to_read.values()], watch)
        chosen = {
            place: self._extract(documents[place].text, units, scores, wanted.length)
            if wanted.form.is_plain
            else self._formed(documents[place], units, scores, wanted)
            for place, units, scores in zip(to_read, read, self.scores(read), strict=True)
        }
        made = [
            NOTHING
            if tokens is None
            else chosen.get(place) or kept(documents[place].text, tokens.document_tokens)
            for place, tokens in enumerate(found)
        ]
        counts = self._read.counts(*(summary.text for summary in made))
        return [
            replace(summary, mode="extract", summary_tokens=summary.summary_tokens if summary.kept else count)
            for summary, count in zip(made, counts, strict=True)
        ]

    def _extract(self, document: str, read: ReadUnits, scores: UnitScores, length: Length) -> Summary:
        """Return one extract, with its tokens still to be counted."""
        places = choose(read, scores.units, length, words=scores.words)
        if length.short == "keep" and length.cap is None and len(places) == len(read.units):
            return kept(document, read.document_tokens)
        units = [read.units[place] for place in places]
        text, finished = joined(document, units), True
        if isinstance(length.cap, Tokens):
            most = length.cap.count
            while units[1:] and self._read.counts(text)[0] > most:  # joined text can have more tokens
                text = joined(document, units := units[:-1])
            if self._read.counts(text)[0] > most:
                text, finished = self._read.beginning(text, most), False
        trimmed = trim(text, length.cap, ended=finished)
        return Summary(
            text=trimmed.text,
            document_tokens=read.document_tokens,
            tokens_read=read.read,
            summary_tokens=0,
            finished=trimmed.finished and finished,
            how=self._read.how(read.document_tokens) if read.pieces == 1 else "chunk",
            pieces=read.pieces,
            places=tuple((unit.start, unit.stop) for unit in units),
        )

    def _formed(self, document: Passages, read: ReadUnits, scores: UnitScores, wanted: _Wanted) -> Summary:
        """Return one extract in a form, with its tokens still to be counted."""
        source = ScoredText(document, read.units, read.tokens, scores.units, scores.words)
        made = formed(wanted.form, source, wanted.length, lambda text: self._read.counts(text)[0])
        return Summary(
            text=made.text,
            document_tokens=read.document_tokens,
            tokens_read=read.read,
            summary_tokens=0,
            finished=made.finished,
            how=self._read.how(read.document_tokens) if read.pieces == 1 else "chunk",
            pieces=read.pieces,
            places=tuple((line.start, line.stop) for line in made.lines),
            form=wanted.form.name,
            lines=made.lines,
            answered=made.answered,
        )

    @torch.inference_mode()
    def scores(self, read: Sequence[ReadUnits]) -> list[UnitScores]:
        """Score the units of each document independently, many documents in one pass."""
        facts = [torch.from_numpy(unit_facts([u.text for u in r.units], r.tokens)) for r in read]
        windows = [
            (facts[number][start : start + WINDOW], each.vectors[start : start + WINDOW])
            for number, each in enumerate(read)
            for start in range(0, len(each.units), WINDOW)
        ]
        found: dict[int, tuple[list[float], float]] = {}
        for batch in filled([len(window[0]) for window in windows], _UNITS):
            states = pad_sequence([windows[place][1] for place in batch], batch_first=True)
            told = pad_sequence([windows[place][0] for place in batch], batch_first=True).to(states)
            sizes = torch.tensor([len(windows[place][0]) for place in batch], device=states.device)
            valid = torch.arange(states.shape[1], device=states.device) < sizes[:, None]
            logits, words = self.scorer(states, told, valid)
            rows = zip(batch, logits.sigmoid().tolist(), sizes.tolist(), words.tolist(), strict=True)
            found.update({place: (row[:size], log) for place, row, size, log in rows})
        scores = []
        ordered = (found[place] for place in range(len(windows)))
        for each in read:
            own = [next(ordered) for _ in range(0, len(each.units), WINDOW)]
            units = scores_in_language(each.units, [s for row, _ in own for s in row], self.languages)
            scores.append(UnitScores(units, expected_words([log for _, log in own])))
        return scores


@dataclass(frozen=True)
class UnitScores:
    """The scorer's output for a document.

    Attributes:
        units: the score of each unit, 0 to 1.
        words: the expected number of words in a summary of the document.
    """

    units: list[float]
    words: float


@dataclass(frozen=True)
class _Wanted:
    """The requested form and length."""

    form: Form
    length: Length

    def keeps(self, document: str, *, tokens: int) -> bool:
        """Return whether a document is its own summary, which has the form of a paragraph."""
        return self.form.is_plain and self.length.keeps(document, tokens=tokens)


def _size(passages: Passages) -> int:
    return len(passages.text)


def _own_texts(documents: Iterable[str | Passages]) -> Iterator[Passages]:
    """Yield the main text of each document, without marks.

    Raises:
        UserError: if a document is neither a string nor passages.
    """
    for number, document in enumerate(documents, start=1):
        text = text_of(document)
        if not isinstance(text, str):
            raise UserError(f"document {number} is of type {type(text).__name__}; give a str")
        own = unmarked(main_part(text))
        yield replace(document, text=own) if isinstance(document, Passages) else Passages(own)
