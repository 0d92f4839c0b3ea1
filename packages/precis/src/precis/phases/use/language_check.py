"""Checks that texts are English, the only language of the model that comes with precis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from precis.data.pairs.pair import Pair
from precis.messages import Notify
from precis.phases.use.input_documents import Document
from precis_text.support.language import language_of
from precis_text.words import length_in_words

_NAMES = {
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pt": "Portuguese",
    "it": "Italian",
    "nl": "Dutch",
    "ca": "Catalan",
    "ro": "Romanian",
    "sv": "Swedish",
    "da": "Danish or Norwegian",
    "pl": "Polish",
    "zh": "Chinese",
    "ja": "Japanese",
    "ko": "Korean",
    "el": "Greek",
    "he": "Hebrew",
}
POOR = "the model that comes with precis was trained on English prose only, so its choice may be poor"
_TELLING = 40  # words; in a shorter text, missing English function words prove nothing


def not_english(text: str) -> str:
    """Return "seems to be German" or similar, to end a sentence, if a text is not English prose; else ""."""
    found = language_of(text)
    if found == "en" or (found is None and length_in_words(text) < _TELLING):
        return ""
    return f"seems to be {_NAMES[found]}" if found in _NAMES else "does not seem to be English prose"


def telling_others(documents: Iterable[Document], notify: Notify) -> Iterator[Document]:
    """Yield the documents; warn of each that does not look English, with the reason at the first."""
    told = False
    for document in documents:
        if seems := not_english(document.text):
            notify(f"{document.name} {seems}{'' if told else f': {POOR}'}")
            told = True
        yield document


def are_english(pairs: Iterable[Pair]) -> bool:
    """Return whether at least half of the pairs look English."""
    found = [language_of(f"{pair.summary}\n{pair.document}") == "en" for pair in pairs]
    return bool(found) and 2 * sum(found) >= len(found)
