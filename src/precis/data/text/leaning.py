"""English sentences that lean on the one before them: "It is ready." says nothing alone.

A list of first words, as extractive systems have long had (Edmundson 1969 gave such sentences a penalty). Sentences of
other languages are rarely taken for one.
"""

from __future__ import annotations

from precis.data.text.words import unicode_words

_WORDS = {
    "it", "its", "this", "that", "these", "those", "he", "she", "they", "his", "her", "hers", "him", "their",
    "theirs", "them", "such", "both", "neither", "either", "another", "others", "but", "however", "yet", "still",
    "though", "then", "therefore", "thus", "so", "hence", "also", "too", "moreover", "furthermore", "instead",
    "otherwise", "meanwhile", "nevertheless", "nonetheless", "besides", "similarly", "likewise", "accordingly",
    "consequently", "and", "or", "nor", "here", "there",
}  # fmt: skip
_PHRASES = (
    "for example", "for instance", "in addition", "in contrast", "by contrast", "on the other hand", "as a result",
    "in other words", "because of this", "after that", "before that", "of these", "of those", "in this", "in that",
    "at this", "at that", "one of them", "the same", "the other", "the former", "the latter",
)  # fmt: skip
_LONGEST = max(len(phrase.split()) for phrase in _PHRASES)


def leans(sentence: str) -> bool:
    """Whether a sentence begins with a word that points back."""
    words = unicode_words(sentence.lower())
    start = " ".join(words[:_LONGEST])
    return bool(words) and (words[0] in _WORDS or f"{start} ".startswith(tuple(f"{p} " for p in _PHRASES)))
