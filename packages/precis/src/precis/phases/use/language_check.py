"""Checks that texts are in a language of the model that comes with precis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from precis.data.pairs.pair import Pair
from precis.messages import Notify
from precis.phases.use.input_documents import Document
from precis_text.language import language_of
from precis_text.words import length_in_words

_NAMES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese", "it": "Italian",
    "nl": "Dutch", "ca": "Catalan", "ro": "Romanian", "sv": "Swedish", "da": "Danish or Norwegian",
    "pl": "Polish", "cs": "Czech", "ru": "Russian", "zh": "Chinese", "ja": "Japanese", "ko": "Korean",
    "el": "Greek", "he": "Hebrew",
}  # fmt: skip
_TELLING = 40  # words; in a shorter text, missing English function words prove nothing


def in_other_language(text: str, languages: Collection[str]) -> str:
    """Return "seems to be Italian" or similar, to end a sentence, if a text is in none of the languages; else ""."""
    found = language_of(text)
    if found in languages or (found == "cyrillic" and "ru" in languages):
        return ""
    is_table = text.count(" | ") > text.count("\n")
    if found is None and (is_table or length_in_words(text) < _TELLING):
        return ""
    return (
        f"seems to be {_NAMES[found]}"
        if found in _NAMES
        else "does not seem to be prose in one of its languages"
    )


def trained_on(languages: Collection[str]) -> str:
    """Return what to expect of the model that comes with precis in other languages."""
    *names, last = sorted(_NAMES[code] for code in languages)
    listed = f"{', '.join(names)} and {last}" if names else last
    return f"the model that comes with precis was trained on {listed} only, so its choice may be poorer"


def warn_of_other_languages(
    documents: Iterable[Document], languages: Collection[str], notify: Notify
) -> Iterator[Document]:
    """Yield the documents; warn of each that is in another language, with the reason at the first."""
    told = False
    for document in documents:
        if seems := in_other_language(document.text, languages):
            notify(f"{document.name} {seems}{'' if told else f': {trained_on(languages)}'}")
            told = True
        yield document


def are_english(pairs: Iterable[Pair]) -> bool:
    """Return whether at least half of the pairs look English."""
    found = [language_of(f"{pair.summary}\n{pair.document}") == "en" for pair in pairs]
    return bool(found) and 2 * sum(found) >= len(found)
