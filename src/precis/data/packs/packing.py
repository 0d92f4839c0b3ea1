"""Make a packed corpus: every document is tokenized once, by several processes, into flat files.

The pack does not depend on the number of processes: documents are handed out in chunks and taken back in order. What
is held in memory are the chunks in flight and a digest of each document, by which exact duplicates are dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from precis.data.packs.packed_text import ARRAYS, DEV_FOLDER, FORMAT, PACK_FILE, TOKENIZER_FOLDER
from precis.data.packs.text_sources import falls_below, text_digest
from precis.data.packs.tokenizing import Chunk, TokenizedDocuments, tokenizing
from precis.data.text.tokenizer import digest_of, load_tokenizer
from precis.errors import UserError
from precis.files import write_file
from precis.version import __version__

_CHUNK = 200_000  # characters that are handed to a process at once


@dataclass
class Counts:
    """What went into a pack, and what did not.

    Attributes:
        documents, tokens: that are trained on.
        held_out, held_out_tokens: that are not.
        characters: of both.
        duplicates: documents that were dropped because they came before.
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
        texts: documents; each is read once.
        tokenizer_folder: with the tokenizer; it is copied into the pack.
        workers: processes that tokenize; the pack is the same for any number.
        dev_share: share of the documents held out, chosen by a digest of the text, so that a document is on the same
            side in every pack.
        facts: what else `pack.json` is to say, asked for when all texts were read.
        progress: told the counts after each chunk.

    Raises:
        UserError: the tokenizer has no [CLS] or no [SEP].
        RunError: a worker died.
    """
    counts, began = Counts(), time.perf_counter()
    tokenizer = load_tokenizer(tokenizer_folder)
    common, dtype = _common_facts(tokenizer, tokenizer_folder), _smallest_dtype(tokenizer)
    tokenizer.save_pretrained(out / TOKENIZER_FOLDER)
    with (
        part_writers(out, dtype, dev=dev_share > 0) as (train, dev),
        tokenizing(tokenizer_folder, workers, dtype) as tokenized,
    ):
        for is_dev, packed in tokenized(_chunks(_distinct(texts, counts), dev_share)):
            part = dev if is_dev else train
            assert part is not None
            part.add(packed)
            counts.documents, counts.tokens = train.documents, train.size("tokens")
            if dev is not None:
                counts.held_out, counts.held_out_tokens = dev.documents, dev.size("tokens")
            progress(counts)
    seconds = time.perf_counter() - began
    more = {**facts(), "characters": counts.characters, "duplicates": counts.duplicates}
    more |= {"dev_share": dev_share, "held_out": counts.held_out, "held_out_tokens": counts.held_out_tokens}
    more |= {"workers": workers, "seconds": seconds}
    more["tokens_per_second"] = (counts.tokens + counts.held_out_tokens) / max(seconds, 1e-9)
    if dev is not None:
        _write_facts(dev, common)
    _write_facts(train, {**common, **more})
    return counts


def _common_facts(tokenizer: PreTrainedTokenizerBase, folder: Path) -> dict[str, Any]:
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise UserError(f"{folder}: the tokenizer has no [CLS] or no [SEP]; make one with `precis tokenizer`")
    return {
        "format": FORMAT,
        "precis": __version__,
        "tokenizer": digest_of(tokenizer),
        "entries": len(tokenizer),
        "cls": tokenizer.cls_token_id,
        "sep": tokenizer.sep_token_id,
    }


def _smallest_dtype(tokenizer: PreTrainedTokenizerBase) -> np.dtype[Any]:
    return np.dtype(np.uint16 if max(tokenizer.get_vocab().values()) < 2**16 else np.uint32)


def _write_facts(part: PartWriter, facts: dict[str, Any]) -> None:
    record = {**facts, "documents": part.documents, "tokens": part.size("tokens"), "arrays": part.arrays()}
    write_file(part.folder / PACK_FILE, json.dumps(record, indent=2) + "\n")


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


def _chunks(texts: Iterable[tuple[str, bytes]], dev_share: float) -> Iterator[Chunk]:
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


@dataclass
class PartWriter:
    """The three files of one part of a pack: what is trained on, or what is held out."""

    folder: Path
    dtype: np.dtype[Any]
    documents: int = 0
    _files: dict[str, IO[bytes]] = field(default_factory=dict)
    _digests: dict[str, Any] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)

    def open(self) -> None:
        """Begin the files anew."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ARRAYS:
            self._files[name] = (self.folder / f"{name}.bin").open("wb")
            self._digests[name], self._bytes[name] = hashlib.sha256(), 0

    def add(self, packed: TokenizedDocuments) -> None:
        """Append documents."""
        first = self.size("tokens")
        starts = first + np.concatenate([[0], np.cumsum(packed.lengths)[:-1]])
        self._write("tokens", packed.tokens.astype(self.dtype))
        self._write("documents", starts.astype(np.int64))
        self._write("sentences", (first + packed.sentences).astype(np.int64))
        self.documents += len(packed.lengths)

    def finish(self) -> None:
        """Write the ends of the offsets, and everything to the disk."""
        end = np.array([self.size("tokens")], np.int64)
        self._write("documents", end)
        self._write("sentences", end)
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files, finished or not."""
        for file in self._files.values():
            file.close()

    def size(self, name: str) -> int:
        """Items written so far."""
        return self._bytes[name] // self._dtype_of(name).itemsize

    def arrays(self) -> dict[str, Any]:
        """Kind, size and digest of each file, as `pack.json` has them."""
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
def part_writers(
    out: Path, dtype: np.dtype[Any], *, dev: bool
) -> Iterator[tuple[PartWriter, PartWriter | None]]:
    """For the part that is trained on and, with `dev`, for the one that is held out; finished when the body ends."""
    train, held_out = PartWriter(out, dtype), PartWriter(out / DEV_FOLDER, dtype) if dev else None
    parts = [part for part in (train, held_out) if part is not None]
    try:
        for part in parts:
            part.open()
        yield train, held_out
        for part in parts:
            part.finish()
    finally:
        for part in parts:
            part.close()
