"""Sources and targets of many pairs as token ids in flat arrays.

All rows are concatenated as 32-bit integers, with an offset for each: a row is a view, not a copy.
"""

import hashlib
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Self, final

import numpy as np
import numpy.typing as npt
from transformers import PreTrainedTokenizerBase

from precis.data.pairs.pair import Pair
from precis.data.text.encoding import (
    all_cores,
    control_ids,
    encode_documents,
    encode_summaries,
    portions,
    with_instruction,
)
from precis.data.text.segments import UnitSegmenter
from precis_text.errors import UserError

_CHARACTERS = 2_000_000  # most characters of pairs to tokenize together

_Chunk = list[tuple[int, Pair]]
_Ids = tuple[list[list[int]], list[list[int]]]

Ids = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]


@final
class Ragged:
    """Token id rows of unequal length in one flat array; `lengths` (n) int64 holds the tokens of each row."""

    def __init__(self, flat: Ids, offsets: Indices) -> None:
        self._flat, self._offsets = flat, offsets
        self.lengths: Indices = np.diff(offsets)

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Flatten rows."""
        offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        return cls(np.array([token for row in rows for token in row], dtype=np.int32), offsets)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def digest(self) -> str:
        """A digest of all rows: 16 hexadecimal digits."""
        return hashlib.sha256(self._offsets.tobytes() + self._flat.tobytes()).hexdigest()[:16]

    def __getitem__(self, index: int) -> Ids:
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self._flat[self._offsets[index] : self._offsets[index + 1]]


@final
@dataclass(frozen=True, kw_only=True)
class TokenizedPairs:
    """Pairs as token ids.

    Attributes:
        sources: documents.
        targets: labels, which are summaries with their end marks.
        segments: the prefix segment of each source token for a blocked prefix; None if there are none.
        truncated_sources, truncated_targets: number of rows truncated to the limit.
        kept: index of each row among the given pairs; None if no pair was skipped.
    """

    sources: Ragged
    targets: Ragged
    segments: Ragged | None = None
    truncated_sources: int = 0
    truncated_targets: int = 0
    kept: Indices | None = None

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise ValueError(f"{len(self.sources)} sources but {len(self.targets)} targets")

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[Pair],
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_source: int,
        max_target: int,
        decoder_start_token_id: int,
        instruction: str = "",
        segmenter: UnitSegmenter | None = None,
        skip: Callable[[int, str], None] | None = None,
    ) -> Self:
        """Tokenize pairs with any Hugging Face tokenizer.

        A text longer than its limit is truncated and counted. Its last token remains the end mark ([SEP], </s>) if the
        tokenizer sets one. Labels are what the decoder predicts. If the tokenizer starts a text with the decoder's
        start token, that token is dropped, because the shift would repeat it.

        Args:
            max_source, max_target: limits in tokens, control tokens included; at least 2.
            decoder_start_token_id: the model's decoder start token.
            instruction: text to put before every document, with a space between.
            segmenter: assigns a segment to each source token; if None, rows get none.
            skip: called with the index and the problem of a pair with a text that gives no tokens; the pair is
                skipped. If None, this is an error.

        Raises:
            UserError: a limit is too small, there are zero pairs, or a text has zero tokens (the pair is named).
        """
        if max_source < 2 or max_target < 2:
            raise UserError(f"max_source={max_source}, max_target={max_target}: both must be 2 or more")
        sources, targets = _Cutter(tokenizer, max_source), _Cutter(tokenizer, max_target)
        before = sources.words(encode_documents([instruction], tokenizer)[0]) if instruction else 0
        chunks = portions(
            enumerate(pairs), lambda row: len(row[1].document) + len(row[1].summary), most=_CHARACTERS
        )
        # A segmenter calls the tokenizer too, and two threads must not call it at once.
        encode = partial(_encode, tokenizer=tokenizer, instruction=instruction)
        rows = _encoded(chunks, encode, ahead=segmenter is None)
        kept: list[int] | None = None
        with all_cores(), closing(rows) as encoded:
            for (index, pair), source, target in encoded:
                if target and target[0] == decoder_start_token_id and len(target) > 1:
                    target = target[1:]
                has_document = sources.has_words(source, beyond=before)
                if not has_document or not targets.has_words(target):
                    what = "summary" if has_document else "document"
                    problem = f"{pair_name(index, pair)}: the {what} gives no tokens"
                    if skip is None:
                        raise UserError(f"{problem}; remove the pair, or skip such pairs with --skip-bad")
                    kept = list(range(len(sources))) if kept is None else kept
                    skip(index, problem)
                    continue
                if kept is not None:
                    kept.append(index)
                sources.add(source, None if segmenter is None else segmenter.units(pair.document))
                targets.add(target)
        if not len(sources):
            raise UserError("zero pairs to tokenize; give at least one")
        return cls(
            sources=sources.ragged(),
            targets=targets.ragged(),
            segments=None
            if segmenter is None
            else Ragged.of([segmenter.segments(units) for units in sources.units]),
            truncated_sources=sources.cut,
            truncated_targets=targets.cut,
            kept=None if kept is None else np.array(kept, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.sources)


def _encode(chunk: _Chunk, *, tokenizer: PreTrainedTokenizerBase, instruction: str) -> _Ids:
    documents = [with_instruction(pair.document, instruction) for _, pair in chunk]
    read = encode_documents(documents, tokenizer)
    return read, encode_summaries([pair.summary for _, pair in chunk], tokenizer)


def _encoded(
    chunks: Iterable[_Chunk], encode: Callable[[_Chunk], _Ids], *, ahead: bool
) -> Generator[tuple[tuple[int, Pair], list[int], list[int]], None, None]:
    """Yield each pair with the ids of its texts, in order.

    With `ahead`, the next chunk is encoded while the caller processes one. The tokenizers library releases Python's
    lock, and its cores would otherwise wait for Python. Memory holds two chunks.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="tokenizer") as pool:
        begun: tuple[_Chunk, Future[_Ids]] | None = None
        for chunk in chain(chunks, [None]):
            last, begun = begun, None
            if chunk is not None:
                begun = chunk, pool.submit(encode, chunk)
                if not ahead:
                    begun[1].exception()  # waits
            if last is not None:
                yield from zip(last[0], *last[1].result(), strict=True)


def pair_name(index: int, pair: Pair) -> str:
    """Name a pair for messages: its number, counted from 1, and its id if it has one."""
    return f"pair {index + 1}" + (f" (id {pair.id})" if pair.id else "")


@final
class _Cutter:
    """Rows truncated to `limit` tokens; truncation keeps the control tokens at the end."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, limit: int) -> None:
        self._control, self._special = control_ids(tokenizer), set(tokenizer.all_special_ids)
        self._limit = limit
        self._flat, self._offsets = array("i"), array("q", [0])
        self.units: list[list[int]] = []
        self.cut = 0

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def words(self, tokens: Sequence[int]) -> int:
        """Count the tokens of text that are in the vocabulary."""
        return sum(token not in self._special for token in tokens)

    def has_words(self, tokens: Sequence[int], *, beyond: int = 0) -> bool:
        """Check for more than `beyond` tokens of that kind; stop counting there, since rows are long."""
        words = (token for token in tokens if token not in self._special)
        return next(islice(words, beyond, None), None) is not None

    def add(self, tokens: list[int], units: list[int] | None = None) -> None:
        """Append a row, truncated if needed; `units`, one per token, are truncated with the tokens."""
        end = 0  # control tokens to keep at the end of a truncated row
        if len(tokens) > self._limit:
            self.cut += 1
            while tokens[-1 - end] in self._control and end < self._limit - 1:
                end += 1
        self._flat.extend(self._within_limit(tokens, end))
        self._offsets.append(len(self._flat))
        if units is not None:
            if len(units) != len(tokens):
                raise ValueError(f"{len(units)} units for {len(tokens)} tokens")
            kept = self._within_limit(units, end)
            last = kept[-1 - end] if end and len(kept) > end else kept[-1]
            self.units.append([min(unit, last) for unit in kept])  # an end mark belongs to the unit before it

    def _within_limit(self, row: list[int], end: int) -> list[int]:
        """Return the entries of a row that fit, including its last `end` entries."""
        return row if len(row) <= self._limit else row[: self._limit - end] + row[len(row) - end :]

    def ragged(self) -> Ragged:
        """Return the rows added so far."""
        return Ragged(np.array(self._flat, dtype=np.int32), np.array(self._offsets, dtype=np.int64))
