"""Sentences of a summary while it is written: as soon as nothing that follows can change them."""

from __future__ import annotations

from collections.abc import Sequence

from precis.data.text.sentences import split_sentences
from precis.data.text.words import length_in_words
from precis.generation.decoding import Hear
from precis.generation.length import Length, beginning_of, trim

_BEHIND = 3  # words behind a sentence that make its end sure


def sure_beginning(text: str, length: Length, *, more: int, most: int) -> str:
    """Return the sentences that a summary begins with whatever is written after `text`; "" if none is sure.

    Args:
        more: words that may still be written.
        most: words of the document; a summary that gets longer is not kept (`Length.short`).
    """
    sentences = split_sentences(text)
    # Where a sentence ends depends on the word behind it, which may be unfinished.
    open_ones = 1 if sentences and len(sentences[-1].split()) >= _BEHIND else 2
    if not sentences[:-open_ones]:
        return ""
    found = trim(beginning_of(text, sentences[:-open_ones]), length.cap, ended=True)
    left = more if length.cap is None else 0
    is_kept = length.short == "write" or length_in_words(found.text) + left <= most
    return found.text if is_kept and found.finished else ""


class Beginnings:
    """Tells each new sentence once.

    Args:
        documents: of each its place, its text, and the most tokens of its summary; a word has one at least.
        hear: called with a document's place and the sentences that its summary begins with.
    """

    def __init__(self, documents: Sequence[tuple[int, str, int]], length: Length, hear: Hear) -> None:
        self._documents, self._length, self._hear = documents, length, hear
        self._words = [length_in_words(text) for _, text, _ in documents]
        self._told = [""] * len(documents)

    def __call__(self, job: int, text: str) -> None:
        """`text` is what is written for the document `job` of `documents`."""
        place, _, room = self._documents[job]
        more = max(0, room - length_in_words(text))
        sure = sure_beginning(text, self._length, more=more, most=self._words[job])
        if len(sure) > len(self._told[job]):
            self._told[job] = sure
            self._hear(place, sure)
