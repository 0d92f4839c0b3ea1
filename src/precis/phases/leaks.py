"""Validation documents that are training documents too: what is learnt by heart there is praised as learnt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from precis.data.pairs.sources import Pair
from precis.data.text.marks import main_part


class Leaks:
    """Looks for the documents of `dev` among the training pairs that pass by; white space does not count, and of two
    parts the second does.
    """

    def __init__(self, dev: Sequence[Pair]) -> None:
        self._dev = [_fingerprint(pair) for pair in dev]
        self._looked_for = set(self._dev)
        self._found: set[bytes] = set()

    def watch(self, train: Iterable[Pair]) -> Iterator[Pair]:
        """The training pairs as they are."""
        for pair in train:
            if (print_of := _fingerprint(pair)) in self._looked_for:
                self._found.add(print_of)
            yield pair

    @property
    def count(self) -> int:
        """Validation pairs whose document was among the training pairs so far."""
        return sum(one in self._found for one in self._dev)


def _fingerprint(pair: Pair) -> bytes:
    return hashlib.blake2b(" ".join(main_part(pair.document).split()).encode(), digest_size=12).digest()
