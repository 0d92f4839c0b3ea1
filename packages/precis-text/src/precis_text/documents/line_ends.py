"""Words of plain text that a program divided at the ends of lines: "Veld-" and "mouth"."""

from __future__ import annotations

import re
from collections import Counter

_DIVIDED = re.compile(
    r"([ \t]?)(?<!\w)([^\W\d_]+)([-\u2010\u00ad])[ \t]*\n[ \t]*([^\W\d_]+)([^\s\w]*)([ \t]*(?=\n|\Z)|[ \t]?)"
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_FEWEST = 2  # divided words, from which on a text counts as one of divided words


def with_words_joined(text: str) -> tuple[str, int]:
    """Join divided words; each line break moves behind the word or before it, so that no line changes its number.

    A word keeps its hyphen where the text has it with one elsewhere, and where its second part starts with a capital
    letter. A single divided word is joined only if the text has it elsewhere.

    Returns:
        The text, and the number of words joined.
    """
    if "-\n" not in text and "\u2010" not in text and "\u00ad" not in text and "- \n" not in text:
        return text, 0
    known = Counter(word.lower() for word in _WORD.findall(text))
    candidates = [found for found in _DIVIDED.finditer(text) if found.group(4)[0].islower()]
    joined = 0

    def join(found: re.Match[str]) -> str:
        nonlocal joined
        space, first, hyphen, second, end, _ = found.groups()
        whole, parted = (first + second).lower(), f"{first}-{second}".lower()
        if not second[0].islower() or (hyphen == "-" and known[parted] > known[whole]):
            return found.group()
        if len(candidates) < _FEWEST and not known[whole]:
            return found.group()
        joined += 1
        word = f"{first}{second}{end}"
        if found.end() < len(text) and text[found.end()] != "\n":
            return f"{space}{word}\n"
        return f"\n{word}" if space else word  # a line of its own, or the text would get a blank line

    return _DIVIDED.sub(join, text), joined
