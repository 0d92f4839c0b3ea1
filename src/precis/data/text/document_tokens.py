"""Documents as token ids, with the places where their sentences begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from precis.data.text.sentences import split_sentences
from precis.data.text.tokenizer_errors import panics_in_one_line

_PIECE = 1_000_000  # characters of a document that are tokenized at once
_BATCH = 200_000  # characters of several documents; the tokenizer's record of a text takes 250 times its room
_SPACES = np.array([c for c in range(0x3001) if chr(c).isspace()], np.uint32)


@dataclass(frozen=True)
class Packed:
    """Some documents as token ids.

    Attributes:
        tokens: (n) ids, each document closed by [SEP].
        lengths: tokens of each document, its [SEP] included.
        sentences: where sentences begin, counted from the first token.
    """

    tokens: NDArray[Any]
    lengths: NDArray[np.int64]
    sentences: NDArray[np.int64]


def tokenize(texts: list[str], tokenizer: PreTrainedTokenizerBase, dtype: np.dtype[Any]) -> Packed:
    """Documents as ids, each closed by [SEP], with the starts of their sentences.

    A document of more than a million characters is tokenized in pieces, cut at a blank line if there is one (whose
    token is then lost); time and memory would otherwise grow without bound.
    """
    end = np.array([tokenizer.sep_token_id], dtype)
    parts: list[NDArray[Any]] = []
    starts: list[NDArray[np.int64]] = []
    lengths: list[int] = []
    position = begin = 0
    for batch in _batches(texts):
        with panics_in_one_line():
            encoded = tokenizer(
                [piece for piece, _ in batch],
                add_special_tokens=False,
                return_offsets_mapping=True,
                return_attention_mask=False,
                verbose=False,
            )
        columns = encoded["input_ids"], encoded["offset_mapping"]
        for (piece, is_last), ids, offsets in zip(batch, *columns, strict=True):
            parts.append(np.array(ids, dtype))
            starts.append(position + _sentence_starts(piece, offsets))
            position += len(ids)
            if is_last:
                parts.append(end)
                position += 1
                lengths.append(position - begin)
                begin = position
    return Packed(np.concatenate(parts), np.array(lengths, np.int64), np.concatenate(starts))


def _batches(texts: list[str]) -> Iterator[list[tuple[str, bool]]]:
    """(piece of a document, whether it is its last) in batches of some size."""
    batch: list[tuple[str, bool]] = []
    size = 0
    for text in texts:
        pieces = list(_pieces(text))
        for number, piece in enumerate(pieces, start=1):
            batch.append((piece, number == len(pieces)))
            size += len(piece)
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE:
        stop = _cut(text, start + _PIECE // 2, start + _PIECE)
        yield text[start:stop]
        start = stop
    yield text[start:]


def _cut(text: str, low: int, high: int) -> int:
    """Behind the last blank line between the two, or the last line, or the last word."""
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, low, high)
        if place >= 0:
            return place + len(mark)
    return high


def _sentence_starts(text: str, offsets: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Indices of the tokens that begin sentences.

    The splitter gives sentences with their white space tidied; counted in characters that are not white space, places
    are the same in both.
    """
    if not offsets:
        return np.zeros(0, np.int64)
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    solid = np.concatenate([[0], np.cumsum(~np.isin(characters, _SPACES))])
    before = solid[np.array([start for start, _ in offsets])]  # of each token
    sizes = [len("".join(sentence.split())) for sentence in split_sentences(text)]
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return np.unique(np.minimum(np.searchsorted(before, places), len(offsets) - 1)).astype(np.int64)
