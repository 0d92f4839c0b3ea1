"""Summarizes documents in the model's trained mode: the decoder writes, or the scorer chooses units."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from precis_onnx.folder import Exported, open_folder
from precis_onnx.search import Decoder, Rules, beams, greedy
from precis_text.central_choice import scores_in_language
from precis_text.control_characters import SEPARATOR, main_part, remove_marks
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.extracts import extract_units
from precis_text.length import (
    Cap,
    Length,
    LengthOptions,
    Tokens,
    Words,
    chosen_length,
    decoding_window,
    tokens_per_word,
    trim,
)
from precis_text.row import checked_documents
from precis_text.selection import WINDOW, expected_words, inputs_of, join_units
from precis_text.unit_features import unit_features
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words, word_ends

Floats = NDArray[np.float32]
_LARGE = 1024  # tokens of an input after which memory is released
_SETTINGS = tuple(GenerationSettings.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One summary.

    Attributes:
        text: the summary.
        document_tokens: tokens of the document.
        tokens_read: the number of these that the model read.
        finished: False if the text stops mid-sentence.
        kept: True if the text is the document itself, since a summary would not be shorter.
        tokens: ids that the decoder wrote, the start token first; empty for an extract.
        places: (start, stop) offsets of each chosen unit in the document; stop is exclusive.
    """

    text: str
    document_tokens: int
    tokens_read: int
    finished: bool = True
    kept: bool = False
    tokens: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = ()

    @property
    def truncated(self) -> bool:
        """True if the model did not read the whole document."""
        return self.tokens_read < self.document_tokens


class Summarizer:
    """A summarizer with an exported folder.

    Attributes:
        settings: default decoding settings; None if the model only chooses sentences.
    """

    def __init__(self, exported: Exported) -> None:
        self._exported, self._about = exported, exported.settings
        self._special = frozenset(self._about["special"])
        search = self._about.get("search")
        self.settings = None if search is None else GenerationSettings(**{k: search[k] for k in _SETTINGS})

    @classmethod
    def from_folder(cls, folder: str | Path, *, threads: int = 0) -> Self:
        """Open a folder; see `precis_onnx.folder.open_folder`.

        Raises:
            UserError: if it is not an exported folder, or has changed since the export.
        """
        return cls(open_folder(folder, threads=threads))

    def summarize(self, documents: Sequence[str], **options: Any) -> list[Summary]:
        """Return the summaries of `documents`, in their order. Options are those of `stream`."""
        if isinstance(documents, str):
            raise UserError("summarize takes a list of documents; for a single one write [document]")
        return list(self.stream(documents, **options))

    def stream(
        self,
        documents: Iterable[str],
        *,
        length: Length | None = None,
        settings: GenerationSettings | None = None,
        **lengths: Unpack[LengthOptions],
    ) -> Iterator[Summary]:
        """Yield the summaries in the order of the documents. The options are those of precis's `Summarizer.stream`.

        Raises:
            UserError: if a document lacks tokens (the error gives its number), or an option is invalid.
        """
        wanted = chosen_length(length, lengths)
        for number, document in enumerate(checked_documents(documents), start=1):
            if not document.strip():
                raise UserError(f"document {number} is empty: there is nothing to summarize")
            if self._about["modes"][0] == "extract":
                summary = self._extract(remove_marks(main_part(document)), wanted)
            else:
                summary = self._write(document, wanted, settings)
            if summary is None:
                raise UserError(
                    f"document {number} contains no tokens that the model knows: there is nothing to summarize"
                )
            yield summary

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._exported.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _states(self, ids: Sequence[int]) -> Floats:
        if self._exported.encoder is None:
            raise UserError("this folder lacks encoder_model.onnx; export the model again")
        row = np.asarray([ids], dtype=np.int64)
        feeds, run = {"input_ids": row, "attention_mask": np.ones_like(row)}, onnxruntime.RunOptions()
        if len(ids) >= _LARGE:
            run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        (states,) = self._exported.encoder.run(None, feeds, run)
        found: Floats = states
        return found

    def _write(self, document: str, length: Length, settings: GenerationSettings | None) -> Summary | None:
        """Write a summary with the decoder; return None if the document lacks known tokens."""
        head, body = self._read(document)
        own = remove_marks(main_part(document))
        if not any(token != self._about["unknown"] for token in body):
            return None
        total = len(body)
        if length.keeps(own, tokens=total):
            return _kept(own, total)
        room = self._about["longest_source"] - len(head) - len(self._about["after"])
        if room < 1:
            raise UserError(f"the instruction leaves no room for a document of {total} tokens; shorten it")
        read = body[:room]
        window = decoding_window(
            settings or self.settings or GenerationSettings(),
            length,
            ratio=tokens_per_word(total, document),
            document=total,
        )
        rules = self._rules(window)
        states = self._states([*head, *read, *self._about["after"]])
        decoder = self._decoder(states)
        search = greedy if rules.settings.beams == 1 else beams
        written = search(decoder, rules, self._about["search"]["start"])
        ended = self._ended(written, rules)
        trimmed = trim(self._text(written), length.cap, ended=ended)
        most = length_in_words(own)
        if length.short == "keep" and length_in_words(trimmed.text) > most:
            if length.cap is None:
                return _kept(own, total)
            trimmed = trim(trimmed.text, Words(count=most), ended=trimmed.finished)
        return Summary(
            text=trimmed.text,
            document_tokens=total,
            tokens_read=len(read),
            finished=trimmed.finished,
            tokens=tuple(written),
        )

    def _read(self, document: str) -> tuple[list[int], list[int]]:
        """Return the tokens before the document (with the first part of a two-part one), and its own tokens."""
        instruction = self._about["instruction"]
        text = remove_marks(f"{instruction} {document}" if instruction else document)
        first, mark, second = text.partition(SEPARATOR)
        before = list(self._about["before"])
        if mark:
            return [*before, *self._ids(first), self._about["separator"]], self._ids(second)
        ids = self._ids(text)
        cut = min(len(self._ids(instruction)), len(ids)) if instruction else 0
        return [*before, *ids[:cut]], ids[cut:]

    def _decoder(self, states: Floats) -> Decoder:
        if self._exported.decoder is None:
            raise UserError("this folder lacks decoder_model_merged.onnx; export the model again")
        return Decoder(self._exported.decoder, states)

    def _rules(self, settings: GenerationSettings) -> Rules:
        search = self._about["search"]
        limit = search["longest_target"]
        if limit is not None and settings.max_tokens > limit:
            settings = replace(settings, max_tokens=limit, min_tokens=min(settings.min_tokens, limit))
        return Rules(
            settings=settings,
            end_marks=tuple(search["end_marks"]),
            forced_first=search["forced_first"],
            forced_last=tuple(search["forced_last"]),
            never=tuple(search["never"]),
            never_first=tuple(search["never_first"]),
        )

    def _ended(self, written: Sequence[int], rules: Rules) -> bool:
        place = next((i for i, token in enumerate(written[1:], 1) if token in rules.end_marks), None)
        return place is not None and not (rules.forced_last and place == rules.settings.max_tokens)

    def _text(self, written: Sequence[int]) -> str:
        """Decode ids to text; the mark between sentences becomes a line break."""
        mark, lines = self._about["sentence_mark"], [[]]  # type: tuple[int | None, list[list[int]]]
        for token in written:
            if token == mark:
                lines.append([])
            else:
                lines[-1].append(token)
        texts = (self._exported.tokenizer.decode(line, skip_special_tokens=True) for line in lines)
        whole = "\n".join(text for text in texts if mark is None or text.strip())
        return whole.replace("\ufffd", "").strip()

    def _extract(self, document: str, length: Length) -> Summary | None:
        read = self._read_units(document)
        if read is None:
            return None
        total = sum(read.tokens)
        if length.keeps(document, tokens=total):
            return _kept(document, total)
        scores, words = self._scores(read, length.cap)
        units = extract_units(document, read, scores, length, words=words, count=self._count)
        if length.short == "keep" and length.cap is None and len(units) == len(read.units):
            return _kept(document, total)
        text, finished = join_units(document, units), True
        if isinstance(length.cap, Tokens):
            most = length.cap.count
            while units[1:] and self._count(text) > most:  # joined text can have more tokens
                text = join_units(document, units := units[:-1])
            if self._count(text) > most:
                text, finished = self._beginning(text, most), False
        trimmed = trim(text, length.cap, ended=finished)
        return Summary(
            text=trimmed.text,
            document_tokens=total,
            tokens_read=read.read,
            finished=trimmed.finished and finished,
            places=tuple((unit.start, unit.stop) for unit in units),
        )

    def _count(self, text: str) -> int:
        return len(self._ids(text))

    def _read_units(self, document: str) -> _Units | None:
        rows = [(unit, self._ids(unit.text)) for unit in extraction_units(document)]
        rows = [(unit, ids) for unit, ids in rows if ids]
        if not any(token != self._about["unknown"] for _, ids in rows for token in ids):
            return None
        units, counts = [unit for unit, _ in rows], [len(ids) for _, ids in rows]
        if self._exported.ranker is not None:
            return _Units(units, counts, np.zeros((len(units), 0), dtype=np.float32), sum(counts))
        before, after = self._about["before"], self._about["after"]
        room = self._about["longest_source"] - len(before) - len(after)
        vectors, read = [], 0
        for piece in inputs_of([ids for _, ids in rows], room):
            states = self._states([*before, *(token for row in piece for token in row), *after])[0]
            start = len(before)
            for row in piece:
                own = states[start : start + len(row)]
                vectors.append(np.concatenate([own.mean(0), own[-1]]))
                start += len(row)
            read += sum(map(len, piece))
        return _Units(units, counts, np.stack(vectors), read)

    def _scores(self, read: _Units, cap: Cap | None) -> tuple[list[float], float]:
        languages = self._exported.settings.get("languages", ())
        if self._exported.ranker is not None:
            ranked, expects = self._exported.ranker.scores(read.units, cap)
            return scores_in_language(read.units, ranked, languages), expects
        if self._exported.scorer is None:
            raise UserError("this folder lacks scorer_model.onnx; export the model again")
        features = unit_features([unit.text for unit in read.units], read.tokens)
        found: list[float] = []
        expected = []
        for start in range(0, len(features), WINDOW):
            part = slice(start, start + WINDOW)
            feeds = {"vectors": read.vectors[None, part], "facts": features[None, part]}
            there = np.ones((1, len(features[part])), dtype=bool)
            logits, words = self._exported.scorer.run(None, {**feeds, "valid": there})
            found += (1 / (1 + np.exp(-logits[0]))).tolist()
            expected.append(float(words[0]))
        return scores_in_language(read.units, found, languages), expected_words(expected)

    def _beginning(self, text: str, tokens: int) -> str:
        ends = [*word_ends(text)]
        fits = bisect_right(ends, tokens, key=lambda end: len(self._ids(text[:end])))
        if fits:
            return text[: ends[fits - 1]]
        return str(self._exported.tokenizer.decode(self._ids(text)[:tokens], skip_special_tokens=True))


@dataclass(frozen=True)
class _Units:
    """A document's units, their token counts, their vectors for the scorer, and the number of tokens read."""

    units: list[TextUnit]
    tokens: list[int]
    vectors: Floats
    read: int


def _kept(text: str, tokens: int) -> Summary:
    return Summary(text=text.strip(), document_tokens=tokens, tokens_read=tokens, kept=True)
