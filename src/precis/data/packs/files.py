"""The growing files of a pack."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from precis.data.packs.corpus import ARRAYS, DEV_FOLDER
from precis.data.text.document_tokens import Packed


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

    def add(self, packed: Packed) -> None:
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
