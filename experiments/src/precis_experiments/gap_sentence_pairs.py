"""Pairs made from plain text: a passage, and the one or two of its sentences that share most with the others.

They teach a model to find the topic of a text and to copy it. PEGASUS (Zhang et al. 2020, section 3.1, "Ind-Orig")
trains on such sentences removed from their text; here they stay in it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from precis_text.sentences import split_sentences
from precis_text.words import unicode_words

SENTENCES = (6, 30)  # of a passage
_WORDS = (6, 60)  # of a sentence that may be principal
_TWO = 0.4  # share of the pairs with two sentences


def gap_sentence_pairs(texts: Iterable[str], *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield one pair per text with enough sentences: `document`, a passage of it, and `summaries`.

    Args:
        seed: random seed of the passages' positions and lengths; the pair of text i does not depend on other texts.
    """
    for number, text in enumerate(texts):
        rng = random.Random(f"{seed}-{number}")
        passage = _passage(split_sentences(text), rng)
        chosen = principal_sentences(passage, 2 if rng.random() < _TWO else 1)
        if len(passage) >= SENTENCES[0] and chosen:
            summary = " ".join(passage[place] for place in chosen)
            yield {"document": " ".join(passage), "summaries": [summary]}


def principal_sentences(sentences: list[str], count: int) -> list[int]:
    """Return the indices of the `count` sentences whose words have the highest F1 with all others, in order."""
    words = [Counter(unicode_words(sentence.lower())) for sentence in sentences]
    whole: Counter[str] = sum(words, Counter())
    scores = {
        place: _f1(own, whole - own)
        for place, own in enumerate(words)
        if _WORDS[0] <= own.total() <= _WORDS[1]
    }
    return sorted(sorted(scores, key=lambda place: -scores[place])[:count])


def _passage(sentences: list[str], rng: random.Random) -> list[str]:
    """Return consecutive sentences from a random start."""
    length = rng.randint(*SENTENCES)
    start = rng.randrange(max(1, len(sentences) - length + 1))
    return sentences[start : start + length]


def _f1(own: Counter[str], others: Counter[str]) -> float:
    shared = (own & others).total()
    return 2 * shared / max(1, own.total() + others.total())
