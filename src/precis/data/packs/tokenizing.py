"""Documents as token ids, with the places where their sentences begin, made in this process or by several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from precis.data.text.encoding import one_thread, panics_in_one_line
from precis.data.text.sentences import split_sentences
from precis.data.text.tokenizer import load_tokenizer
from precis.errors import RunError

_PIECE = 1_000_000  # characters of a document that are tokenized at once
_BATCH = 200_000  # characters of several documents; the tokenizer's record of a text takes 250 times its room
_SPACES = np.array([c for c in range(0x3001) if chr(c).isspace()], np.uint32)


@dataclass(frozen=True)
class TokenizedDocuments:
    """Documents as token ids.

    Attributes:
        tokens: (n) ids, each document closed by [SEP].
        lengths: (d) tokens of each document, its [SEP] included.
        sentences: (s) places at which sentences begin, counted from the first token.
    """

    tokens: NDArray[Any]
    lengths: NDArray[np.int64]
    sentences: NDArray[np.int64]


def tokenize(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, dtype: np.dtype[Any]
) -> TokenizedDocuments:
    """Tokenize documents, each closed by [SEP], and find where their sentences begin.

    A document of more than a million characters is tokenized in pieces, or time and memory would grow without bound. It
    is cut at a blank line if there is one, whose token is then lost.
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
    return TokenizedDocuments(np.concatenate(parts), np.array(lengths, np.int64), np.concatenate(starts))


def _batches(texts: list[str]) -> Iterator[list[tuple[str, bool]]]:
    """Yield batches of (piece of a document, whether it is the last piece), of some size."""
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
    """The place behind the last blank line between `low` and `high`, or the last line, or the last word."""
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, low, high)
        if place >= 0:
            return place + len(mark)
    return high


def _sentence_starts(text: str, offsets: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Indices of the tokens that begin sentences.

    The splitter tidies the white space of sentences. Counted in characters that are not white space, places in the
    sentences and in the text are the same.
    """
    if not offsets:
        return np.zeros(0, np.int64)
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    solid = np.concatenate([[0], np.cumsum(~np.isin(characters, _SPACES))])
    before = solid[np.array([start for start, _ in offsets])]  # of each token
    sizes = [len("".join(sentence.split())) for sentence in split_sentences(text)]
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return np.unique(np.minimum(np.searchsorted(before, places), len(offsets) - 1)).astype(np.int64)


Chunk = tuple[bool, list[str]]
"""Whether the documents are held out, and the documents."""
Mapper = Callable[[Iterable[Chunk]], Iterator[tuple[bool, TokenizedDocuments]]]


@contextmanager
def tokenizing(tokenizer_folder: Path, workers: int, dtype: np.dtype[Any]) -> Iterator[Mapper]:
    """A function that turns chunks into ids, in the chunks' order, for any number of `workers`.

    Memory holds at most two chunks for each worker, and one more.

    Raises:
        RunError: a worker died.
    """
    with one_thread():  # processes share out the work, not the tokenizer's threads
        if workers == 1:
            tokenizer = load_tokenizer(tokenizer_folder)
            yield lambda chunks: ((side, tokenize(texts, tokenizer, dtype)) for side, texts in chunks)
            return
        context = multiprocessing.get_context("spawn")  # forking a process with threads can hang
        pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_set_up, initargs=(str(tokenizer_folder),)
        )
        try:
            yield lambda chunks: _in_flight(chunks, pool, 2 * workers, dtype.str)
        finally:
            pool.shutdown(cancel_futures=True)


def _in_flight(
    chunks: Iterable[Chunk], pool: ProcessPoolExecutor, most: int, dtype: str
) -> Iterator[tuple[bool, TokenizedDocuments]]:
    flying: deque[tuple[bool, Future[TokenizedDocuments]]] = deque()
    try:
        for side, texts in chunks:
            flying.append((side, pool.submit(_tokenize_there, texts, dtype)))
            if len(flying) > most:
                side, future = flying.popleft()
                yield side, future.result()
        while flying:
            side, future = flying.popleft()
            yield side, future.result()
    except BrokenProcessPool as error:
        raise RunError("a process that tokenizes died (out of memory?); use fewer --workers") from error


_tokenizer_there: PreTrainedTokenizerBase | None = None  # in a worker process: set once, when it starts


def _set_up(folder: str) -> None:
    global _tokenizer_there
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _tokenizer_there = load_tokenizer(folder)


def _end_with_parent() -> None:
    """End this process with its parent: a pool's workers would wait for work forever if the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tokenize_there(texts: list[str], dtype: str) -> TokenizedDocuments:
    assert _tokenizer_there is not None
    return tokenize(texts, _tokenizer_there, np.dtype(dtype))
