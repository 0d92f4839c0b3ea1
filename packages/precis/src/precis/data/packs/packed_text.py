"""Packed text: token ids in flat files, mapped into memory whatever their size.

    PACK/pack.json       description of the contents: counts, versions and a digest
    PACK/tokens.bin      ids of all documents, concatenated, each closed by [SEP]
    PACK/documents.bin   int64: the start of each document, and the end
    PACK/sentences.bin   int64: the start of each sentence, and the end
    PACK/tokenizer/      the tokenizer of the ids
    PACK/dev/            the same three files and pack.json for the held-out documents
    PACK/seal.json       sizes and checksums of all files (`precis.storage.seal`)

`precis.data.packs.pack_writer` writes packs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from precis.storage.seal import check_sealed
from precis_text.bounded_io import read_json, stat_or_none
from precis_text.errors import UserError

PACK_FILE = "pack.json"
FORMAT = 1
ARRAYS = ("tokens", "documents", "sentences")
TOKENIZER_FOLDER = "tokenizer"
DEV_FOLDER = "dev"
_REST = "pack the texts again with `precis data pack --restart`"


@final
@dataclass(frozen=True)
class PackedText:
    """An open pack. Arrays are memory maps, read only when needed.

    Attributes:
        tokens: (n) ids.
        documents: (d + 1) start positions of documents in `tokens`, then n.
        sentences: (s + 1) start positions of sentences in `tokens`, then n.
        facts: the content of `pack.json`.
        dev: the held-out part; None in the held-out part itself, or if nothing is held out.
    """

    folder: Path
    tokens: NDArray[Any]
    documents: NDArray[np.int64]
    sentences: NDArray[np.int64]
    facts: dict[str, Any]
    dev: PackedText | None = None

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> PackedText:
        """Map a pack into memory.

        Args:
            verify: read everything once and compare the checksums of the seal; otherwise compare only sizes.

        Raises:
            UserError: the folder is not a pack, the version differs, or files are missing or damaged.
        """
        place = Path(folder)
        if not place.is_dir():
            raise UserError(
                f"{folder}: no such folder; make a pack with `precis data pack FILES --out {folder}`"
            )
        if stat_or_none(place / PACK_FILE) is None:
            raise UserError(f"{folder}: not a pack (it lacks {PACK_FILE}); make one with `precis data pack`")
        try:
            facts = read_json(place / PACK_FILE)
        except UserError as error:
            raise UserError(f"{error}; {_REST}") from error
        found = facts.get("format")
        if found != FORMAT:
            raise UserError(f"{folder}: the pack has format {found}, but precis reads {FORMAT}; {_REST}")
        try:
            tokens, documents, sentences = (_map(place, name, facts) for name in ARRAYS)
        except UserError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"{place / PACK_FILE}: is damaged (no {error}); {_REST}") from error
        if verify:
            check_sealed(place, remedy=_REST)
        if len(documents) == 0 or len(sentences) == 0 or not documents[-1] == sentences[-1] == len(tokens):
            raise UserError(f"{folder}: its files do not belong together; {_REST}")
        words = place / TOKENIZER_FOLDER
        if verify and words.exists():  # the held-out part does not contain a tokenizer
            from precis.data.text.unigram_tokenizer import (  # slow import, needed only here
                digest_of,
                load_tokenizer,
            )

            if digest_of(load_tokenizer(words)) != facts["tokenizer"]:
                raise UserError(f"{words}: not the tokenizer that produced the ids; {_REST}")
        inner = place / DEV_FOLDER
        dev = cls.open(inner, verify=verify) if (inner / PACK_FILE).exists() else None
        return cls(place, tokens, documents, sentences, facts, dev)

    @property
    def num_tokens(self) -> int:
        """Tokens, including the [SEP] after every document."""
        return len(self.tokens)

    @property
    def num_documents(self) -> int:
        """Documents in this part."""
        return len(self.documents) - 1

    @property
    def tokenizer_digest(self) -> str:
        """Digest of the vocabulary of the ids."""
        return str(self.facts["tokenizer"])

    @property
    def digest(self) -> str:
        """Digest of the tokens: packs with equal digests train alike."""
        return str(self.facts["digest"])

    def blocks(self, length: int = 512) -> Blocks:
        """Split the text into rows of `length` tokens; raise `UserError` if `length` is below 16."""
        return Blocks([self], length)


@final
class Blocks:
    """Rows of equal length: [CLS], `length - 2` tokens of the running text, [SEP].

    Documents follow one another, with [SEP] between them. A remainder shorter than a block is dropped. The blocks of
    several packs come in the order of the packs.

    Raises:
        UserError: `length` is below 16.
    """

    def __init__(self, packs: Sequence[PackedText], length: int) -> None:
        if length < 16:
            raise UserError(f"block_length={length} is too short; use 16 or more")
        self._packs = packs
        self.length = length
        self._inner = length - 2
        self._starts = np.cumsum([0, *(pack.num_tokens // self._inner for pack in packs)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def rows(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the (b length) ids of the blocks; raise `IndexError` if an index is out of range."""
        if len(indices) and (indices.min() < 0 or indices.max() >= len(self)):
            raise IndexError(f"blocks {indices.min()} to {indices.max()} of {len(self)}")
        ids = np.empty((len(indices), self.length), np.int64)
        owners = self._owners(indices)
        for number in np.unique(owners):
            pack, here = self._packs[number], owners == number
            firsts = (indices[here] - self._starts[number]) * self._inner
            ids[here, 0], ids[here, -1] = pack.facts["cls"], pack.facts["sep"]
            ids[here, 1:-1] = pack.tokens[firsts[:, None] + np.arange(self._inner)]
        return ids

    def sentence_starts(self, index: int) -> NDArray[np.int64]:
        """Return the positions in block `index` at which sentences begin, counted from its [CLS]."""
        owner = int(self._owners(np.array([index]))[0])
        starts = self._packs[owner].sentences
        first = (index - int(self._starts[owner])) * self._inner
        low, high = np.searchsorted(starts, [first, first + self._inner])
        return np.asarray(starts[low:high]) - first + 1

    def _owners(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the (b) index of each block's pack."""
        return np.searchsorted(self._starts, indices, side="right") - 1


def _map(folder: Path, name: str, facts: dict[str, Any]) -> NDArray[Any]:
    path, told = folder / f"{name}.bin", facts["arrays"][name]
    if not path.exists():
        raise UserError(f"{path}: is missing; {_REST}")
    size = path.stat().st_size
    if size != told["bytes"]:
        raise UserError(f"{path}: has {size:,} bytes instead of {told['bytes']:,}; {_REST}")
    if not size:
        return np.zeros(0, told["dtype"])
    return np.memmap(path, dtype=told["dtype"], mode="r")
