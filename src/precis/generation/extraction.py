"""Summarizes documents by choosing units of them: sentences, or turns of a dialogue, word for word.

    document -> units -> encoder, once -> scorer (`precis.models.unit_scorer`) -> the best units that fit, in order

An extract invents nothing, but what its units refer to may be missing. Without a limit it is about as long as the
scorer expects a summary of such a document to be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Self, TypedDict, Unpack

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.text.encoding import control_ids, panics_in_one_line
from precis.data.text.marks import main_part, unmarked
from precis.data.text.unit_facts import unit_facts
from precis.data.text.units import TextUnit, extraction_units
from precis.data.text.words import word_ends
from precis.errors import UserError
from precis.generation.choosing import TOGETHER, WINDOW, choose, expected_words, inputs_of, joined
from precis.generation.decoding import Watch
from precis.generation.length import Length, Short, Tokens, make_length, trim
from precis.generation.loading import load_model
from precis.generation.memory import refuse_too_much
from precis.generation.reading import How, assumed_limit, input_limit, reading
from precis.generation.summarizer import NOTHING, Summary, kept
from precis.generation.unit_scorer import load_scorer
from precis.models.family import FamilyConfig
from precis.models.unit_scorer import UnitScorer


class ExtractOptions(TypedDict, total=False):
    """What `Extractor.stream` takes besides documents; see there."""

    words: int | None
    sentences: int | None
    tokens: int | None
    min_words: int | None
    short: Short
    skip_empty: bool
    watch: Watch | None


class Extractor:
    """Summarizes by choosing units, with the methods of `precis.generation.summarizer.Summarizer`.

    Args:
        model: any encoder-decoder; its decoder is not used.
        tokenizer: its own.
        scorer: trained on the states of its encoder.
        max_source: the longest input in tokens that it was trained on; if None, what model and tokenizer declare.

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
    ) -> None:
        declared = input_limit(model.config, tokenizer, trained=max_source)
        self.limit_is_assumed = declared is None
        self.max_source = assumed_limit(model.config) if declared is None else declared
        self.scorer = scorer.to(model.device)
        self._read = UnitReader(model, tokenizer, max_source=self.max_source)

    @classmethod
    def from_pretrained(cls, model: str | Path, *, device: str | torch.device | None = None) -> Self:
        """Load a model that was trained to choose; see `precis.generation.loading.load_model`.

        Raises:
            UserError: if it cannot be loaded, or was not trained to choose.
        """
        loaded = load_model(model, device=device)
        if loaded.folder is None:
            raise UserError(f"{model}: only models in a folder can choose sentences; use --mode abstract")
        scorer = load_scorer(loaded.folder, states=loaded.model.config.hidden_size)
        return cls(loaded.model, loaded.tokenizer, scorer, max_source=loaded.use.max_source)

    def summarize(self, documents: Sequence[str], **options: Unpack[ExtractOptions]) -> list[Summary]:
        """Return the extracts of `documents`, in their order. Options are those of `stream`."""
        if isinstance(documents, str):
            raise UserError("summarize takes a list of documents; for one alone write [document]")
        return list(self.stream(documents, **options))

    def stream(
        self,
        documents: Iterable[str],
        *,
        words: int | None = None,
        sentences: int | None = None,
        tokens: int | None = None,
        min_words: int | None = None,
        short: Short = "keep",
        skip_empty: bool = False,
        watch: Watch | None = None,
    ) -> Iterator[Summary]:
        """Give the extracts in the order of the documents. Options are those of `Summarizer.stream`.

        Raises:
            UserError: if a document has no tokens (its number is named), or an option cannot be.
        """
        length = make_length(
            words=words, sentences=sentences, tokens=tokens, min_words=min_words, short=short
        )
        for number, document in enumerate(documents, start=1):
            if not isinstance(document, str):
                raise UserError(f"document {number} is of type {type(document).__name__}; give texts")
            text = unmarked(main_part(document))
            read = self._read(text)
            if read is None and not skip_empty:
                problem = "gives no tokens that the model knows" if text.strip() else "is empty"
                raise UserError(f"document {number} {problem}: there is nothing to summarize")
            yield replace(NOTHING, mode="extract") if read is None else self._extract(text, read, length)
            if watch is not None:
                watch(number, number, 0)

    def _extract(self, document: str, read: ReadUnits, length: Length) -> Summary:
        total = read.document_tokens
        if length.short == "keep" and length.cap is not None and length.cap.holds(document, tokens=total):
            return replace(kept(document, total), mode="extract")
        scores, words = self.scores(read)
        chosen = choose(read, scores, length, words=words)
        if length.short == "keep" and len(chosen) == len(read.units):
            return replace(kept(document, total), mode="extract")
        units = [read.units[place] for place in chosen]
        text, finished = joined(document, units), True
        if isinstance(length.cap, Tokens):
            while units[1:] and self._read.count(text) > length.cap.count:  # joined they may make more
                text = joined(document, units := units[:-1])
            if self._read.count(text) > length.cap.count:
                text, finished = self._read.beginning(text, length.cap.count), False
        trimmed = trim(text, length.cap, ended=finished)
        return Summary(
            text=trimmed.text,
            document_tokens=total,
            tokens_read=read.read,
            summary_tokens=self._read.count(trimmed.text),
            finished=trimmed.finished and finished,
            how=self._read.how(total),
            mode="extract",
            places=tuple((unit.start, unit.stop) for unit in units),
        )

    @torch.inference_mode()
    def scores(self, read: ReadUnits) -> tuple[list[float], float]:
        """Return the score of each unit (0 to 1), and how many words a summary of the document would have."""
        facts = torch.from_numpy(unit_facts([unit.text for unit in read.units], read.tokens)).to(read.vectors)
        found: list[float] = []
        expected = []
        for start in range(0, len(facts), WINDOW):
            part = slice(start, start + WINDOW)
            valid = torch.ones(1, len(facts[part]), dtype=torch.bool, device=facts.device)
            logits, words = self.scorer(read.vectors[None, part], facts[None, part], valid)
            found += logits[0].sigmoid().tolist()
            expected.append(words.item())
        return found, expected_words(expected)


@dataclass(frozen=True)
class ReadUnits:
    """A document's units as the scorer reads them.

    Attributes:
        units: their texts and places.
        tokens: how many tokens each has.
        read: how many tokens of all the encoder saw.
        document_tokens: how many tokens the document has.
        vectors: of each the mean of its states and its last state.
    """

    units: tuple[TextUnit, ...]
    tokens: tuple[int, ...]
    read: int
    document_tokens: int
    vectors: Float[Tensor, "u 2d"]


class UnitReader:
    """Turns documents into `ReadUnits` with one model's encoder, each document by itself.

    Args:
        max_source: the longest input in tokens; a Z-Code++ reads longer ones by fusion-in-encoder. Documents beyond are
            read in several inputs.
        most: tokens of a document that are read at most; if None, all.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_source: int,
        most: int | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        fused = model.config.fusion_limit if isinstance(model.config, FamilyConfig) else 0
        self._max_source, self._most = max_source, most
        self._before, self._after = _around(tokenizer)
        self._room = min(max(max_source, fused), TOGETHER) - len(self._before) - len(self._after)

    @torch.inference_mode()
    def __call__(self, document: str) -> ReadUnits | None:
        """Read a document; None if the tokenizer knows nothing of it."""
        units, ids = self._tokenize(document)
        total = sum(map(len, ids))
        if self._most is not None:
            kept = max(1, bisect_right([*accumulate(map(len, ids))], self._most))
            units, ids = units[:kept], ids[:kept]
        if not any(token != self.tokenizer.unk_token_id for row in ids for token in row):
            return None
        vectors, read = [], 0
        for piece in inputs_of(ids, self._room):
            vectors.append(self._encode(piece))
            read += sum(len(row) for row in piece)
        return ReadUnits(tuple(units), tuple(map(len, ids)), read, total, torch.cat(vectors))

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._ids([text])[0])

    def beginning(self, text: str, tokens: int) -> str:
        """Return as many of the first words of a text as make at most `tokens`, or a part of the first."""
        ends = [*word_ends(text)]
        fits = bisect_right(ends, tokens, key=lambda end: self.count(text[:end]))
        if fits:
            return text[: ends[fits - 1]]
        return str(self.tokenizer.decode(self._ids([text])[0][:tokens], skip_special_tokens=True))

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        with panics_in_one_line():
            encoded = self.tokenizer(
                [*texts], add_special_tokens=False, return_attention_mask=False, verbose=False
            )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def how(self, tokens: int) -> How:
        """Return how an input of `tokens` is read."""
        return "fie" if self._max_source < tokens else "whole"

    def _tokenize(self, document: str) -> tuple[list[TextUnit], list[list[int]]]:
        units = extraction_units(document)
        if not units:
            return [], []
        encoded = self._ids([unit.text for unit in units])
        known = [(unit, ids) for unit, ids in zip(units, encoded, strict=True) if ids]
        return [unit for unit, _ in known], [ids for _, ids in known]

    def _encode(self, rows: Sequence[Sequence[int]]) -> Float[Tensor, "u 2d"]:
        """Vectors of units that are read as one input."""
        body = [token for row in rows for token in row]
        ids = torch.tensor([[*self._before, *body, *self._after]], device=self.model.device)
        refuse_too_much(self.model, rows=1, length=ids.shape[1])
        with reading(self.model, self.how(ids.shape[1])):
            states = self.model.get_encoder()(input_ids=ids).last_hidden_state[0].float()
        lengths = torch.tensor([len(row) for row in rows], device=states.device)
        ends = lengths.cumsum(0) + len(self._before)
        sums = torch.zeros(len(rows), states.shape[1], device=states.device)
        owners = torch.repeat_interleave(torch.arange(len(rows), device=states.device), lengths)
        sums.index_add_(0, owners, states[len(self._before) : len(self._before) + len(body)])
        return torch.cat([sums / lengths[:, None], states[ends - 1]], dim=-1)


def _around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and behind a text."""
    control = control_ids(tokenizer)
    ids = tokenizer("a", verbose=False)["input_ids"]
    own = [place for place, token in enumerate(ids) if token not in control]
    return (ids[: own[0]], ids[own[-1] + 1 :]) if own else ([], [])
