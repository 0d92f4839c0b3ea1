"""Make a packed corpus: every document is tokenized once, by several processes, into flat files.

The pack does not depend on the number of processes: documents are handed out in chunks and taken back in order. What
is held in memory are the chunks in flight and a digest of each document, by which exact duplicates are dropped.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from precis.data.corpus import ARRAYS, DEV_FOLDER, FORMAT, PACK_FILE, TOKENIZER_FOLDER
from precis.data.sentences import split_sentences
from precis.data.tokenizer import digest_of, load_tokenizer
from precis.errors import RunError
from precis.version import __version__

_CHUNK = 200_000  # characters that are handed to a process at once
_SPACES = np.array([c for c in range(0x3001) if chr(c).isspace()], np.uint32)


@dataclass
class Counts:
    """What went into a pack, and what did not."""

    documents: int = 0
    tokens: int = 0
    characters: int = 0
    duplicates: int = 0
    held_out: int = 0


@dataclass(frozen=True)
class Packed:
    """One chunk of documents as token ids.

    Attributes:
        tokens: (n) ids, each document closed by [SEP].
        lengths: tokens of each document, its [SEP] included.
        sentences: where sentences begin, counted from the chunk's first token.
    """

    tokens: NDArray[Any]
    lengths: NDArray[np.int64]
    sentences: NDArray[np.int64]


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
        texts: documents; each is read once.
        tokenizer_folder: with the tokenizer; it is copied into the pack.
        workers: processes that tokenize; the pack is the same for any number.
        dev_share: share of the documents held out, chosen by a digest of the text, so that a document is on the same
            side in every pack.
        facts: what else `pack.json` is to say, asked for when all texts were read.
        progress: told the counts after each chunk.

    Raises:
        RunError: a worker died.
    """
    counts, began = Counts(), time.perf_counter()
    tokenizer = load_tokenizer(tokenizer_folder)
    tokenizer.save_pretrained(out / TOKENIZER_FOLDER)
    dtype = np.dtype(np.uint16 if len(tokenizer) <= 2**16 else np.uint32)
    with _sinks(out, dtype, dev=dev_share > 0) as (train, dev), _mapper(tokenizer_folder, workers) as mapped:
        chunks = _chunks(_distinct(texts, counts), dev_share)
        for is_dev, packed in mapped((chunk for chunk in chunks), dtype):
            sink = dev if is_dev else train
            assert sink is not None
            sink.add(packed)
            counts.documents, counts.tokens = train.documents, train.size("tokens")
            counts.held_out = dev.documents if dev is not None else 0
            progress(counts)
    seconds = time.perf_counter() - began
    common = _common_facts(tokenizer)
    more = {**facts(), "characters": counts.characters, "duplicates": counts.duplicates}
    more |= {"dev_share": dev_share, "held_out": counts.held_out, "workers": workers, "seconds": seconds}
    more["tokens_per_second"] = (counts.tokens + (dev.size("tokens") if dev else 0)) / max(seconds, 1e-9)
    if dev is not None:
        _write_facts(dev, common)
    _write_facts(train, {**common, **more})
    return counts


def _common_facts(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "precis": __version__,
        "tokenizer": digest_of(tokenizer),
        "cls": tokenizer.cls_token_id,
        "sep": tokenizer.sep_token_id,
    }


def _write_facts(sink: _Sink, facts: dict[str, Any]) -> None:
    record = {**facts, "documents": sink.documents, "tokens": sink.size("tokens"), "arrays": sink.arrays()}
    (sink.folder / PACK_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def text_digest(text: str) -> bytes:
    """Of a document in NFC with its white space collapsed: equal for what counts as a duplicate."""
    return hashlib.blake2b(
        " ".join(unicodedata.normalize("NFC", text).split()).encode(), digest_size=16
    ).digest()


def falls_below(digest: bytes, share: float) -> bool:
    """Whether a text belongs to the `share` of all texts that is set apart."""
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _distinct(texts: Iterable[str], counts: Counts) -> Iterator[tuple[str, bytes]]:
    """Documents that did not come before, with their digests."""
    seen: set[bytes] = set()
    for text in texts:
        digest = text_digest(text)
        if digest in seen:
            counts.duplicates += 1
            continue
        seen.add(digest)
        counts.characters += len(text)
        yield text, digest


def _chunks(texts: Iterable[tuple[str, bytes]], dev_share: float) -> Iterator[tuple[bool, list[str]]]:
    """(held out, documents): documents of one side in pieces of some size, each side in its order."""
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


Mapper = Callable[[Iterable[tuple[bool, list[str]]], "np.dtype[Any]"], Iterator[tuple[bool, Packed]]]


@contextmanager
def _mapper(tokenizer_folder: Path, workers: int) -> Iterator[Mapper]:
    """Tokenizes chunks in order: here, or in processes of their own."""
    if workers == 1:
        tokenizer = load_tokenizer(tokenizer_folder)
        yield lambda chunks, dtype: ((side, tokenize(texts, tokenizer, dtype)) for side, texts in chunks)
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # processes share out the work, not threads
    context = multiprocessing.get_context("spawn")  # forking a process with threads can hang
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_set_up, initargs=(str(tokenizer_folder),)
    ) as pool:

        def mapped(
            chunks: Iterable[tuple[bool, list[str]]], dtype: np.dtype[Any]
        ) -> Iterator[tuple[bool, Packed]]:
            flying: deque[tuple[bool, Future[Packed]]] = deque()
            for side, texts in chunks:
                flying.append((side, pool.submit(_tokenize_there, texts, dtype.str)))
                if len(flying) > 2 * workers:
                    yield _landed(*flying.popleft())
            while flying:
                yield _landed(*flying.popleft())

        yield mapped


def _landed(side: bool, future: Future[Packed]) -> tuple[bool, Packed]:
    try:
        return side, future.result()
    except BrokenProcessPool as error:
        raise RunError("a process that tokenizes died (out of memory?); use fewer --workers") from error


_tokenizer_there: PreTrainedTokenizerBase | None = None  # in a worker process: set once, when it starts


def _set_up(folder: str) -> None:
    global _tokenizer_there
    _tokenizer_there = load_tokenizer(folder)


def _tokenize_there(texts: list[str], dtype: str) -> Packed:
    assert _tokenizer_there is not None
    return tokenize(texts, _tokenizer_there, np.dtype(dtype))


def tokenize(texts: list[str], tokenizer: PreTrainedTokenizerBase, dtype: np.dtype[Any]) -> Packed:
    """Documents as ids, each closed by [SEP], with the starts of their sentences."""
    encoded = tokenizer(
        texts,
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    end = np.array([tokenizer.sep_token_id], dtype)
    parts: list[NDArray[Any]] = []
    starts: list[NDArray[np.int64]] = []
    lengths: list[int] = []
    position = 0
    for text, ids, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        parts += [np.array(ids, dtype), end]
        starts.append(position + _sentence_starts(text, offsets))
        lengths.append(len(ids) + 1)
        position += len(ids) + 1
    return Packed(np.concatenate(parts), np.array(lengths, np.int64), np.concatenate(starts))


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


@dataclass
class _Sink:
    """The three growing files of one part of a pack."""

    folder: Path
    dtype: np.dtype[Any]
    documents: int = 0
    _files: dict[str, IO[bytes]] = field(default_factory=dict)
    _digests: dict[str, Any] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)

    def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ARRAYS:
            self._files[name] = (self.folder / f"{name}.bin").open("wb")
            self._digests[name], self._bytes[name] = hashlib.sha256(), 0

    def add(self, packed: Packed) -> None:
        first = self.size("tokens")
        starts = first + np.concatenate([[0], np.cumsum(packed.lengths)[:-1]])
        self._write("tokens", packed.tokens.astype(self.dtype))
        self._write("documents", starts.astype(np.int64))
        self._write("sentences", (first + packed.sentences).astype(np.int64))
        self.documents += len(packed.lengths)

    def close(self) -> None:
        """Write the ends of the offsets, and everything to the disk."""
        end = np.array([self.size("tokens")], np.int64)
        self._write("documents", end)
        self._write("sentences", end)
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def size(self, name: str) -> int:
        """Items written so far."""
        return self._bytes[name] // self._dtype_of(name).itemsize

    def arrays(self) -> dict[str, Any]:
        return {
            name: {
                "dtype": self._dtype_of(name).name,
                "bytes": self._bytes[name],
                "sha256": self._digests[name].hexdigest(),
            }
            for name in ARRAYS
        }

    def _dtype_of(self, name: str) -> np.dtype[Any]:
        return self.dtype if name == "tokens" else np.dtype(np.int64)

    def _write(self, name: str, values: NDArray[Any]) -> None:
        content = values.tobytes()
        self._files[name].write(content)
        self._digests[name].update(content)
        self._bytes[name] += len(content)


@contextmanager
def _sinks(out: Path, dtype: np.dtype[Any], *, dev: bool) -> Iterator[tuple[_Sink, _Sink | None]]:
    train, held_out = _Sink(out, dtype), _Sink(out / DEV_FOLDER, dtype) if dev else None
    opened = [sink for sink in (train, held_out) if sink is not None]
    for sink in opened:
        sink.open()
    yield train, held_out
    for sink in opened:
        sink.close()
