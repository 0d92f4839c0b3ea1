"""Closeness of a written sentence to one of its source: what a small model combines by itself is often wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from itertools import islice

from precis_text.asides import CLOSED
from precis_text.words import unicode_words

_STATEMENT = 4  # fewest content words of a statement
_MOST_LEFT_OUT = 2  # content words between those of the sentence
_STARTS, _NEAR = 20, 80  # places of a first word that are looked at, and characters around them
_NAMES = re.compile(r"(?<=\w )[A-Z]\w*|\b(?:[A-Z]{2}|\w*(?:[a-z\d]_?[A-Z]|_\w))\w*")
_WE = re.compile(r"\b(?:we|our|us)\b", re.IGNORECASE)
_OURS = re.compile(rf"{_WE.pattern}|\bthis (?:paper|work|article|study|thesis|report)\b", re.IGNORECASE)
_LIMITS = re.compile(
    r"\b(?:[Ii]f|unless|except|until|[Ww]ithout|provided that|in principle|[Oo]nly|partly|almost|nearly|mostly|slightly"
    r"|roughly|[Hh]alf"
    r"|[Ss]ome|[Mm]any|[Mm]ost|[Ff]ew|[Ss]ometimes|[Oo]ften|[Uu]sually|[Pp]robably|[Pp]erhaps|may|might|could|should|would|must"
    r"|can|cannot|hopes?|plans|tr(?:y|ies)|aims?|refuse[sd]?|den(?:y|ies|ied)|says?|said|claim(?:s|ed)?|believe[sd]?|wrong"
    r"|false|rumou?rs)\b"
)
# Words that say which one, when, where and whose; "this week" is not "a week on Sunday"
_RELATING = re.compile(
    r"\b(?:this|these|those|next|last|first|each|every|all|both|any|another|other|no|more|less|than|before|after|since|by"
    r"|from|to|into|in|on|at|with|for|against|over|under|between|of|per|through|during|about|his|her|its|their)\b"
)
# What may stand in the source before a sentence that leaves it out: "It has been shown that", "In May,", "Today"
_LEFT_OUT = re.compile(
    r"(?:^|[,;:–—]|\b(?:that|dass|que|che|что|že)|^\W*(?:\w+ly|also|and|but|here|however|now|so|still|then|today|tomorrow"
    r"|yesterday|yet))\W*$",
    re.IGNORECASE,
)
_COMPOUND = re.compile(r"(?<![^\W_])([^\W_]+)\s?-\s?([^\W_]+)")


def closeness(sentence: str, source: str, words: Sequence[str], near: Sequence[str]) -> float:
    """Return the share, -1 to 1, of a sentence's content words that a source sentence has in the same order, less that
    of words that the source sentence lacks; -1 if it goes further.

    It goes further if it has a name that the source sentence lacks, says "we" where that does not, relates by another
    word ("in", "this"), takes one part of a compound, or leaves out a condition or more than two words between its own.

    Args:
        words, near: the content words of the sentence and of the source sentence. Fewer than four count as four, since
            they say too little.
    """
    blocks = SequenceMatcher(None, words, near, autojunk=False).get_matching_blocks()[:-1]
    same = sum(block.size for block in blocks)
    if not blocks or blocks[-1].b + blocks[-1].size - blocks[0].b - same > _MOST_LEFT_OUT:
        return -1.0
    if _goes_further(sentence, source):
        return -1.0
    return (same - sum(word not in near for word in words)) / max(len(words), _STATEMENT)


def _goes_further(sentence: str, source: str) -> bool:
    has_others = any(name.lower() not in source.lower() for name in _NAMES.findall(sentence))
    claims = _WE.search(sentence) is not None and _OURS.search(source) is None
    limits, kept = (Counter(map(str.lower, _LIMITS.findall(text))) for text in (source, sentence))
    told, known = (f" {' '.join(unicode_words(text.lower()))} " for text in (sentence, source))
    relates = any(f" {word} " not in known for word in _RELATING.findall(told))
    parts = any(
        (f" {one} " in told) != (f" {other} " in told) for one, other in _COMPOUND.findall(source.lower())
    )
    return has_others or claims or not limits <= kept or relates or parts


def is_torn(sentence: str, source: str, function_words: Collection[str] = ()) -> bool:
    """Check whether a sentence lacks its end, or the beginning of its source sentence, which had the verb.

    "Methods that learn." of "We show methods that learn." is torn; "Mice learn." of "We show that mice learn." is not,
    nor "In May Ann sold boats." of "Ann sold boats in May.", where the beginning comes later.
    """
    words = unicode_words(sentence.lower())
    if not words or CLOSED.search(sentence) is None:
        return True
    if _OURS.match(sentence) and _OURS.search(source):
        return False
    found = islice(re.finditer(rf"\b{re.escape(words[0])}\b", source.lower()), _STARTS)
    starts = [each.start() for each in found]
    nearest = [
        at for at in starts if unicode_words(source[at : at + _NEAR].lower())[1:2] == words[1:2]
    ] or starts
    befores = [source[max(at - _NEAR, 0) : at] for at in nearest]
    later = {word for word in words[1:] if word not in function_words}
    return not any(
        _LEFT_OUT.search(before) or later.intersection(unicode_words(before.lower())[-1:])
        for before in befores
    )
