"""Make a packed corpus: tokenize every document once, in this process or in several, into flat files.

The pack does not depend on the number of processes: results come back in the order of the chunks. Memory holds the
chunks in flight and a digest of each document, which finds exact duplicates.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from precis.data.packs.packed_text import ARRAYS, DEV_FOLDER, FORMAT, PACK_FILE, TOKENIZER_FOLDER
from precis.data.packs.text_sources import falls_below, text_digest
from precis.data.text.encoding import one_thread, panics_in_one_line, portions
from precis.data.text.unigram_tokenizer import digest_of, load_tokenizer
from precis.process import follow_parent
from precis.storage.atomic import write_file
from precis.version import __version__
from precis_text.errors import RunError, UserError
from precis_text.sentences import split_sentences

_CHUNK = 200_000  # characters to hand to a process at once
_PIECE = 1_000_000  # characters of a document to tokenize at once
_BATCH = 200_000  # characters of several documents to tokenize at once
_SPACES = np.array([c for c in range(0x3001) if chr(c).isspace()], np.uint32)

Chunk = tuple[bool, list[str]]
"""A flag for held-out documents, and the documents."""
Mapper = Callable[[Iterable[Chunk]], Iterator[tuple[bool, "TokenizedDocuments"]]]


@dataclass
class Counts:
    """Counts of a pack: documents and tokens written, and documents dropped.

    Attributes:
        documents, tokens: training documents, and their tokens.
        held_out, held_out_tokens: held-out documents, and their tokens.
        characters: characters of all these documents.
        duplicates: documents dropped because an equal one came before.
    """

    documents: int = 0
    tokens: int = 0
    held_out: int = 0
    held_out_tokens: int = 0
    characters: int = 0
    duplicates: int = 0


def pack(
    texts: Iterable[str],
    tokenizer_folder: Path,
    out: Path,
    *,
    workers: int = 1,
    dev_share: float = 0.01,
    facts: Callable[[], dict[str, Any]] = dict,
    progress: Callable[[Counts], None] = lambda _: None,
) -> Counts:
    """Tokenize documents into the folder `out`, which must be new.

    Args:
        texts: the documents; each is read once.
        tokenizer_folder: the tokenizer, which is copied into the pack.
        workers: number of tokenizing processes, which does not change the pack.
        dev_share: share of the documents to hold out, 0 to 1. A digest of the text decides, so a document is on the
            same side in every pack.
        facts: called after all texts are read, for more entries of `pack.json`.
        progress: called with the counts after each chunk.

    Raises:
        UserError: the tokenizer lacks [CLS] or [SEP].
        RunError: a worker died.
    """
    counts, began = Counts(), time.perf_counter()
    tokenizer = load_tokenizer(tokenizer_folder)
    common = _common_facts(tokenizer, tokenizer_folder)
    dtype = np.dtype(np.uint16 if max(tokenizer.get_vocab().values()) < 2**16 else np.uint32)
    tokenizer.save_pretrained(out / TOKENIZER_FOLDER)
    with ExitStack() as closing, tokenizing(tokenizer_folder, workers, dtype) as tokenized:
        train = PartWriter(out, dtype, closing)
        dev = PartWriter(out / DEV_FOLDER, dtype, closing) if dev_share > 0 else None
        for is_dev, packed in tokenized(_chunks(_distinct(texts, counts), dev_share)):
            part = dev if is_dev else train
            assert part is not None
            part.add(packed)
            counts.documents, counts.tokens = train.documents, train.tokens
            if dev is not None:
                counts.held_out, counts.held_out_tokens = dev.documents, dev.tokens
            progress(counts)
        for part in filter(None, (train, dev)):
            part.finish()
    seconds = time.perf_counter() - began
    more = {
        **{
            name: getattr(counts, name)
            for name in ("characters", "duplicates", "held_out", "held_out_tokens")
        },
        "dev_share": dev_share,
        "workers": workers,
        "seconds": seconds,
        "tokens_per_second": (counts.tokens + counts.held_out_tokens) / max(seconds, 1e-9),
    }
    if dev is not None:
        dev.write_facts(common)
    train.write_facts({**common, **facts(), **more})
    return counts


def _common_facts(tokenizer: PreTrainedTokenizerBase, folder: Path) -> dict[str, Any]:
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise UserError(
            f"{folder}: the tokenizer lacks [CLS] or [SEP]; make one with `precis tokenizer`, which extends "
            "another model's with --from"
        )
    return {
        "format": FORMAT, "precis": __version__, "tokenizer": digest_of(tokenizer), "entries": len(tokenizer),
        "cls": tokenizer.cls_token_id, "sep": tokenizer.sep_token_id,
    }  # fmt: skip


def _distinct(texts: Iterable[str], counts: Counts) -> Iterator[tuple[str, bytes]]:
    """Yield the documents without duplicates, with their digests."""
    seen: set[bytes] = set()
    for text in texts:
        digest = text_digest(text)
        if digest in seen:
            counts.duplicates += 1
            continue
        seen.add(digest)
        counts.characters += len(text)
        yield text, digest


def _chunks(texts: Iterable[tuple[str, bytes]], dev_share: float) -> Iterator[Chunk]:
    """Yield (held out, documents): chunks of training or held-out documents, each side in its order."""
    waiting: dict[bool, list[str]] = {False: [], True: []}
    sizes = {False: 0, True: 0}
    for text, digest in texts:
        side = falls_below(digest, dev_share)
        waiting[side].append(text)
        sizes[side] += len(text)
        if sizes[side] >= _CHUNK:
            yield side, waiting[side]
            waiting[side], sizes[side] = [], 0
    for side, rest in waiting.items():
        if rest:
            yield side, rest


class _ArrayFile:
    """A growing file of numbers and its size in bytes."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype, self.bytes = dtype, 0
        self.file = path.open("wb")

    def write(self, values: NDArray[Any]) -> bytes:
        """Append numbers and return their bytes in the file."""
        content = values.astype(self.dtype).tobytes()
        self.file.write(content)
        self.bytes += len(content)
        return content

    def facts(self) -> dict[str, Any]:
        """Return type and size, as in `pack.json`."""
        return {"dtype": self.dtype.name, "bytes": self.bytes}


@final
class PartWriter:
    """Writer of the three files of one part of a pack: training documents or held-out ones."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], closing: ExitStack) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.documents = folder, 0
        self._digest = hashlib.sha256()  # of the tokens: it identifies the text, and the seal finds damage
        self._files: dict[str, _ArrayFile] = {}
        for name in ARRAYS:
            kind = dtype if name == "tokens" else np.dtype(np.int64)
            self._files[name] = _ArrayFile(folder / f"{name}.bin", kind)
            closing.callback(self._files[name].file.close)

    @property
    def tokens(self) -> int:
        """Tokens written so far."""
        return self._files["tokens"].bytes // self._files["tokens"].dtype.itemsize

    def add(self, packed: TokenizedDocuments) -> None:
        """Append documents."""
        first = self.tokens
        self._digest.update(self._files["tokens"].write(packed.tokens))
        self._files["documents"].write(first + np.concatenate([[0], np.cumsum(packed.lengths)[:-1]]))
        self._files["sentences"].write(first + packed.sentences)
        self.documents += len(packed.lengths)

    def finish(self) -> None:
        """Write the ends of the offsets, and sync everything to disk."""
        for name in ("documents", "sentences"):
            self._files[name].write(np.array([self.tokens]))
        for array in self._files.values():
            array.file.flush()
            os.fsync(array.file.fileno())

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write `pack.json`: these entries, and the contents of the part."""
        arrays = {name: file.facts() for name, file in self._files.items()}
        record = {
            **facts, "documents": self.documents, "tokens": self.tokens,
            "digest": self._digest.hexdigest()[:16], "arrays": arrays,
        }  # fmt: skip
        write_file(self.folder / PACK_FILE, json.dumps(record, indent=2) + "\n")


@dataclass(frozen=True)
class TokenizedDocuments:
    """Documents as token ids.

    Attributes:
        tokens: (n) ids, each document closed by [SEP].
        lengths: (d) tokens of each document, including its [SEP].
        sentences: (s) positions of the first tokens of sentences, counted from the first token.
    """

    tokens: NDArray[Any]
    lengths: NDArray[np.int64]
    sentences: NDArray[np.int64]


def tokenize(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, dtype: np.dtype[Any]
) -> TokenizedDocuments:
    """Tokenize documents, each closed by [SEP], and find their sentence starts.

    A document of more than a million characters is tokenized in pieces, which bounds time and memory. It is split at a
    blank line if there is one; the token of that line is lost.
    """
    end = np.array([tokenizer.sep_token_id], dtype)
    parts: list[NDArray[Any]] = []
    starts: list[NDArray[np.int64]] = []
    lengths: list[int] = []
    position = begin = 0
    pieces = (piece for text in texts for piece in _pieces(text))
    for batch in portions(pieces, lambda piece: len(piece[0]), most=_BATCH):
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


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (piece, is last) for the pieces of a document."""
    start = 0
    while len(text) - start > _PIECE:
        stop = _cut(text, start + _PIECE // 2, start + _PIECE)
        yield text[start:stop], False
        start = stop
    yield text[start:], True


def _cut(text: str, low: int, high: int) -> int:
    """Return the place after the last blank line between `low` and `high`, else the last line or word."""
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, low, high)
        if place >= 0:
            return place + len(mark)
    return high


def _sentence_starts(text: str, offsets: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the indices of the tokens that start sentences.

    The splitter normalizes the white space of sentences. Positions counted without white space are the same in the
    sentences and in the text.
    """
    if not offsets:
        return np.zeros(0, np.int64)
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    solid = np.concatenate([[0], np.cumsum(~np.isin(characters, _SPACES))])
    before = solid[np.array([start for start, _ in offsets])]  # of each token
    sizes = [len("".join(sentence.split())) for sentence in split_sentences(text)]
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return np.unique(np.minimum(np.searchsorted(before, places), len(offsets) - 1)).astype(np.int64)


@contextmanager
def tokenizing(tokenizer_folder: Path, workers: int, dtype: np.dtype[Any]) -> Iterator[Mapper]:
    """Yield a function that tokenizes chunks in order, with any number of `workers`.

    Memory holds at most two chunks for each worker, and one more.

    Raises:
        RunError: a worker died.
    """
    with one_thread():  # work is divided among processes, not the tokenizer's threads
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
        raise RunError("a tokenizing process died (out of memory?); use fewer --workers") from error


_tokenizer_there: PreTrainedTokenizerBase | None = None  # in a worker process: set once, at its start


def _set_up(folder: str) -> None:
    global _tokenizer_there
    follow_parent()
    _tokenizer_there = load_tokenizer(folder)


def _tokenize_there(texts: list[str], dtype: str) -> TokenizedDocuments:
    assert _tokenizer_there is not None
    return tokenize(texts, _tokenizer_there, np.dtype(dtype))
