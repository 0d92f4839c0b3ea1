"""Summarizes documents by choosing their units word for word: sentences, or turns of a dialogue.

    document -> units -> encoder, once -> scorer (`precis.models.unit_scorer`) -> the best units that fit, in order
    document -> units -> ranker (`precis_text.unit_ranker`), without an encoder -> the same

An extract invents nothing, but may lack the context that its units refer to. Without a limit it has about as many
words as the scorer expects of a summary of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, Unpack, cast

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.unit_batches import filled
from precis.data.text.encoding import portions
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.extract.scorer_files import load_scorer
from precis.extract.unit_encoder import ReadUnits, UnitReader, UnitTokenizer, UnitTokens, without_vectors
from precis.generation.decoder_batches import Watch
from precis.generation.input_plan import How, assumed_limit, input_limit
from precis.generation.model_loader import LoadedModel, load_model
from precis.generation.model_location import ModelLocation, locate
from precis.generation.summary import NOTHING, Summary, kept, several
from precis.models.unit_scorer import UnitScorer
from precis.storage.seal import check_sealed
from precis_text.central_choice import scores_in_language
from precis_text.control_characters import main_part, unmarked
from precis_text.documents.passages import Passages, text_of
from precis_text.errors import UserError
from precis_text.forms.form import Form, FormType, ScoredText
from precis_text.forms.form_choice import FormOptions, chosen_form, formed
from precis_text.length import Cap, Length, LengthOptions, Tokens, chosen_length, trim
from precis_text.selection import TOGETHER, WINDOW, choose, expected_words, joined
from precis_text.unit_features import unit_facts
from precis_text.unit_ranker import UnitRanker, has_ranker

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

    Attributes:
        model: None if a ranker chooses; then no weights are loaded.

    Examples:
        >>> extractor = Extractor.from_pretrained("runs/news")
        >>> (summary,) = extractor.summarize(["Ann sings in the hall. Bob listens to her. It rains."], sentences=1)
        >>> summary.mode
        'extract'
    """

    model: PreTrainedModel | None

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
        read = UnitReader(model, tokenizer, max_source=self.max_source)
        self._tokens: UnitTokenizer = read
        self._chooser: UnitRanker | _Encoded = _Encoded(read, scorer.to(model.device))
        self.tokenizer, self.model = tokenizer, model
        self.languages = (*languages,)

    @classmethod
    def ranked(
        cls,
        ranker: UnitRanker,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_source: int,
        languages: Sequence[str] = (),
    ) -> Self:
        """Choose by a ranker, without an encoder.

        Args:
            max_source: what `max_source` says; a ranker reads every document whole.
        """
        made = cls.__new__(cls)
        made._tokens, made._chooser = UnitTokenizer(tokenizer), ranker
        made.tokenizer, made.model = tokenizer, None
        made.max_source, made.languages = max_source, (*languages,)
        return made

    @classmethod
    def from_pretrained(
        cls, model: str | Path | ModelLocation, *, device: str | torch.device | None = None
    ) -> Self:
        """Load a model trained for extraction, such as `default`; see `precis.generation.model_loader.load_model`.

        Raises:
            UserError: if it cannot be loaded, or was not trained for extraction.
        """
        location = locate(model)
        if not is_ranked(location):
            return cls.of(load_model(location, device=device))
        folder = cast(Path, location.folder)
        check_sealed(folder)
        use, tokenizer = location.use, load_tokenizer(folder)
        limit = input_limit(location.configuration, tokenizer, trained=use.max_source)
        return cls.ranked(
            UnitRanker.load(folder),
            tokenizer,
            max_source=assumed_limit(location.configuration) if limit is None else limit,
            languages=use.languages,
        )

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
        if has_ranker(loaded.folder):
            return cls.from_pretrained(loaded.folder)
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
            found = self._tokens.tokenize([passages.text for passages in window])
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
        read = self.read([*to_read.values()], watch)
        found_scores = self.scores(read, wanted.length.cap)
        chosen = {
            place: self._extract(documents[place].text, units, scores, wanted.length)
            if wanted.form.is_plain
            else self._formed(documents[place], units, scores, wanted)
            for place, units, scores in zip(to_read, read, found_scores, strict=True)
        }
        made = [
            NOTHING
            if tokens is None
            else chosen.get(place) or kept(documents[place].text, tokens.document_tokens)
            for place, tokens in enumerate(found)
        ]
        counts = self._tokens.counts(*(summary.text for summary in made))
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
            while units[1:] and self._tokens.counts(text)[0] > most:  # joined text can have more tokens
                text = joined(document, units := units[:-1])
            if self._tokens.counts(text)[0] > most:
                text, finished = self._tokens.beginning(text, most), False
        trimmed = trim(text, length.cap, ended=finished)
        return Summary(
            text=trimmed.text,
            document_tokens=read.document_tokens,
            tokens_read=read.read,
            summary_tokens=0,
            finished=trimmed.finished and finished,
            how=self._how(read),
            pieces=read.pieces,
            places=tuple((unit.start, unit.stop) for unit in units),
        )

    def _formed(self, document: Passages, read: ReadUnits, scores: UnitScores, wanted: _Wanted) -> Summary:
        """Return one extract in a form, with its tokens still to be counted."""
        source = ScoredText(document, read.units, read.tokens, scores.units, scores.words)
        made = formed(wanted.form, source, wanted.length, lambda text: self._tokens.counts(text)[0])
        return Summary(
            text=made.text,
            document_tokens=read.document_tokens,
            tokens_read=read.read,
            summary_tokens=0,
            finished=made.finished,
            how=self._how(read),
            pieces=read.pieces,
            places=tuple((line.start, line.stop) for line in made.lines),
            form=wanted.form.name,
            lines=made.lines,
            answered=made.answered,
        )

    def _how(self, read: ReadUnits) -> How:
        """Return how a document was read; a ranker reads all of it at once."""
        if isinstance(self._chooser, UnitRanker):
            return "whole"
        return self._chooser.read.how(read.document_tokens) if read.pieces == 1 else "chunk"

    def read(self, documents: Sequence[UnitTokens], watch: Watch | None = None) -> list[ReadUnits]:
        """Read documents as the scorer needs them: with the encoder, or without it.

        Args:
            watch: called with the number of inputs read and their total.
        """
        if isinstance(self._chooser, UnitRanker):
            return [without_vectors(document) for document in documents]
        return self._chooser.read.read(documents, watch)

    def scores(self, read: Sequence[ReadUnits], cap: Cap | None = None) -> list[UnitScores]:
        """Score the units of each document independently.

        Args:
            cap: of the extract; a ranker chooses other units for a short one than for a long one.
        """
        if isinstance(self._chooser, UnitRanker):
            found = [UnitScores(*self._chooser.scores(each.units, cap)) for each in read]
        else:
            found = self._chooser.scores(read)
        return [
            replace(scores, units=scores_in_language(each.units, scores.units, self.languages))
            for each, scores in zip(read, found, strict=True)
        ]


@dataclass(frozen=True)
class _Encoded:
    """A choice by the hidden states of an encoder."""

    read: UnitReader
    scorer: UnitScorer

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
            scores.append(
                UnitScores([s for row, _ in own for s in row], expected_words([log for _, log in own]))
            )
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


def is_ranked(location: ModelLocation) -> bool:
    """Return whether a ranker chooses a model's sentences, so that its weights are not needed for it."""
    return location.folder is not None and location.adapter is None and has_ranker(location.folder)


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
