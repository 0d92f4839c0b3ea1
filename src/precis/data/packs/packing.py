"""Make a packed corpus: every document is tokenized once, by several processes, into flat files.

The pack does not depend on the number of processes: documents are handed out in chunks and taken back in order. Memory
holds the chunks in flight and a digest of each document, by which exact duplicates are dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

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
    """Counts of what went into a pack, and of what was dropped.

    Attributes:
        documents, tokens: documents to train on, and their tokens.
        held_out, held_out_tokens: documents that are held out, and their tokens.
        characters: characters of all these documents.
        duplicates: documents that were dropped because an equal one came before.
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
        workers: processes that tokenize; the pack is the same for any number.
        dev_share: share of the documents held out, 0 to 1. A digest of the text decides, so a document is on the same
            side in every pack.
        facts: called when all texts were read, for more entries of `pack.json`.
        progress: called with the counts after each chunk.

    Raises:
        UserError: the tokenizer has no [CLS] or no [SEP].
        RunError: a worker died.
    """
    counts, began = Counts(), time.perf_counter()
    tokenizer = load_tokenizer(tokenizer_folder)
    common, dtype = _common_facts(tokenizer, tokenizer_folder), _smallest_dtype(tokenizer)
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
    more = {**facts(), "characters": counts.characters, "duplicates": counts.duplicates}
    more |= {"dev_share": dev_share, "held_out": counts.held_out, "held_out_tokens": counts.held_out_tokens}
    more |= {"workers": workers, "seconds": seconds}
    more["tokens_per_second"] = (counts.tokens + counts.held_out_tokens) / max(seconds, 1e-9)
    if dev is not None:
        dev.write_facts(common)
    train.write_facts({**common, **more})
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


def _distinct(texts: Iterable[str], counts: Counts) -> Iterator[tuple[str, bytes]]:
    """Yield documents that did not come before, with their digests."""
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
    """Yield (held out, documents): documents of one side in chunks of some size, each side in its order."""
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
    """A growing file of numbers, its size in bytes and its digest."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype, self.bytes = dtype, 0
        self._file, self._digest = path.open("wb"), hashlib.sha256()

    def write(self, values: NDArray[Any]) -> None:
        content = values.astype(self.dtype).tobytes()
        self._file.write(content)
        self._digest.update(content)
        self.bytes += len(content)

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def facts(self) -> dict[str, Any]:
        """Type, size and digest, as `pack.json` has them."""
        return {"dtype": self.dtype.name, "bytes": self.bytes, "sha256": self._digest.hexdigest()}


@final
class PartWriter:
    """Writes the three files of one part of a pack: what is trained on, or what is held out."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], closing: ExitStack) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.documents = folder, 0
        self._files: dict[str, _ArrayFile] = {}
        for name in ARRAYS:
            kind = dtype if name == "tokens" else np.dtype(np.int64)
            self._files[name] = _ArrayFile(folder / f"{name}.bin", kind)
            closing.callback(self._files[name].close)

    @property
    def tokens(self) -> int:
        """Tokens written so far."""
        return self._files["tokens"].bytes // self._files["tokens"].dtype.itemsize

    def add(self, packed: TokenizedDocuments) -> None:
        """Append documents."""
        first = self.tokens
        self._files["tokens"].write(packed.tokens)
        self._files["documents"].write(first + np.concatenate([[0], np.cumsum(packed.lengths)[:-1]]))
        self._files["sentences"].write(first + packed.sentences)
        self.documents += len(packed.lengths)

    def finish(self) -> None:
        """Write the ends of the offsets, and sync everything to the disk."""
        for name in ("documents", "sentences"):
            self._files[name].write(np.array([self.tokens]))
        for file in self._files.values():
            file.sync()

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write `pack.json`: these facts, and what the part holds."""
        arrays = {name: file.facts() for name, file in self._files.items()}
        record = {**facts, "documents": self.documents, "tokens": self.tokens, "arrays": arrays}
        write_file(self.folder / PACK_FILE, json.dumps(record, indent=2) + "\n")
