"""What the digest of a document decides: whether it came before, is held out, or is in a sample.

A digest depends on nothing but the text, so the decisions are the same in every pack, whatever the order of files.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections.abc import Iterable, Iterator

_PIECE = 1_000_000  # characters that are normalized at once: words in a list take ten times their room
_SPACE = re.compile(r"\s")


def text_digest(text: str) -> bytes:
    """Of a document in NFC with its white space collapsed, 16 bytes: equal for what counts as a duplicate."""
    digest, joint = hashlib.blake2b(digest_size=16), b""
    for piece in _pieces(text):
        words = " ".join(unicodedata.normalize("NFC", piece).split()).encode()
        if words:
            digest.update(joint + words)
            joint = b" "
    return digest.digest()


def _pieces(text: str) -> Iterator[str]:
    """The text cut in front of white space, which no normalization joins to what precedes it."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE)
        stop = space.start() if space is not None else len(text)
        yield text[start:stop]
        start = stop


def falls_below(digest: bytes, share: float) -> bool:
    """Whether a text belongs to the `share` of all texts that is set apart."""
    return int.from_bytes(digest[:8], "big") < share * 2**64


def sample_texts(texts: Iterable[str], *, characters: int, longest: int) -> list[str]:
    """Documents drawn evenly from all of them, in their order and without duplicates.

    Those with the smallest digests (of the half that `falls_below` does not look at), as many as fit: which they are
    does not depend on the order, and no more than the sample is held in memory.

    Args:
        characters: of the sample at most; a single document may be longer.
        longest: of one document, what is behind that is cut off.
    """
    heap: list[tuple[int, int, str]] = []  # largest digest first
    kept: set[int] = set()
    size, limit = 0, 2**64
    for place, text in enumerate(texts):
        rank = int.from_bytes(text_digest(text)[8:], "big")
        if rank >= limit or rank in kept:
            continue
        heapq.heappush(heap, (-rank, place, text[:longest]))
        kept.add(rank)
        size += min(len(text), longest)
        while size > characters and len(heap) > 1:
            largest, _, dropped = heapq.heappop(heap)
            size, limit = size - len(dropped), -largest
            kept.discard(limit)
    return [text for _, text in sorted((place, text) for _, place, text in heap)]
