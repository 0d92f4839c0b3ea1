"""Bounds how much longer a tokenizer's own replacements make a text.

A `tokenizer.json` may replace each letter by a thousand, several times in a row, and so take all memory for a short
text. The bound is the product of what each step can do to one character.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from precis_text.errors import UserError

MOST_GROWTH = 64
"""Characters that may replace one. NFKC, which needs the most of the usual steps, writes 18."""

_COMPATIBLE = 18  # NFKC and NFKD write at most so many characters for one
_ADDED = ("content", "prepend", "replacement", "prefix", "suffix")
_PARTS = ("normalizer", "pre_tokenizer", "decoder")


def check_growth(values: Mapping[str, Any]) -> None:
    """Refuse a tokenizer whose normalizer, splitter or decoder makes texts much longer.

    Args:
        values: the content of `tokenizer.json`.

    Raises:
        UserError: if one character can become more than `MOST_GROWTH`; the caller names the file.
    """
    for part in _PARTS:
        growth = 1
        for step in _steps(values.get(part)):
            growth *= _growth(step)
            if growth > MOST_GROWTH:
                raise UserError(
                    f"its {part} can make one character {growth:,}, more than {MOST_GROWTH}; "
                    "use another tokenizer"
                )


def _steps(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a part, which may be nested sequences."""
    if isinstance(value, Mapping):
        inner = [each for each in value.values() if isinstance(each, list)]
        if value.get("type") == "Sequence":
            for each in inner:
                yield from _steps(each)
        else:
            yield value
    elif isinstance(value, list):
        for each in value:
            yield from _steps(each)


def _growth(step: Mapping[str, Any]) -> int:
    """Return how many characters a step can write for one."""
    kind = step.get("type")
    if kind in ("NFKC", "NFKD"):
        return _COMPATIBLE
    if kind == "Precompiled":
        return _longest(step.get("precompiled_charsmap"))
    if kind == "Replace":
        pattern = step.get("pattern")
        given = pattern.get("String") if isinstance(pattern, Mapping) else None
        written = len(str(step.get("content", "")))
        length = len(given) if isinstance(given, str) else 1  # a regular expression may match one character
        return max(1, -(-written // max(1, length)))
    return max([1, *(len(step[name]) for name in _ADDED if isinstance(step.get(name), str))])


def _longest(given: Any) -> int:
    """Return the length of the longest text in SentencePiece's map: four bytes of size, a trie, texts that end in 0."""
    try:
        content = base64.b64decode(given or "", validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise UserError("its precompiled_charsmap is damaged; copy the file again") from None
    texts = content[4 + int.from_bytes(content[:4], "little") :].split(b"\0")
    return max(1, *(len(text.decode(errors="replace")) for text in texts)) if texts else 1
