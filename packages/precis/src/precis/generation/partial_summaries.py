"""Streams the sentences of a summary as soon as later text cannot change them."""

from __future__ import annotations

from precis.messages import OnPartial
from precis_text.length import Length, beginning_of, trim
from precis_text.sentences import split_sentences
from precis_text.words import length_in_words

_BEHIND = 3  # words after a sentence that confirm its end


def sure_beginning(text: str, length: Length, *, more: int, most: int) -> str:
    """Return the sentences at the start of `text` that later text cannot change; "" if there are none yet.

    Args:
        more: words that may still be written.
        most: words in the document; a longer summary is discarded (`Length.short`).
    """
    sentences = split_sentences(text)
    # The end of a sentence depends on the next word, which may be incomplete.
    open_ones = 1 if sentences and len(sentences[-1].split()) >= _BEHIND else 2
    if not sentences[:-open_ones]:
        return ""
    found = trim(beginning_of(text, sentences[:-open_ones]), length.cap, ended=True)
    left = more if length.cap is None else 0
    is_kept = length.short == "write" or length_in_words(found.text) + left <= most
    return found.text if is_kept and found.finished else ""


class PartialSummaries:
    """Callback that reports each new sentence once.

    Args:
        documents: the index, the text and the maximum summary tokens of each; a word has at least one token.
        on_partial: called with a document's index and the first sentences of its summary.
    """

    def __init__(self, documents: list[tuple[int, str, int]], length: Length, on_partial: OnPartial) -> None:
        self._documents, self._length, self._on_partial = documents, length, on_partial
        self._words = [length_in_words(text) for _, text, _ in documents]
        self._told = [""] * len(documents)

    def __call__(self, job: int, text: str) -> None:
        """Report the new sentences in `text`, the summary so far of the document `job` of `documents`."""
        place, _, room = self._documents[job]
        more = max(0, room - length_in_words(text))
        sure = sure_beginning(text, self._length, more=more, most=self._words[job])
        if len(sure) > len(self._told[job]):
            self._told[job] = sure
            self._on_partial(place, sure)
