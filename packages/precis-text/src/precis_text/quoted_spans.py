"""The short quotations and brackets of a line, inside which no sentence ends."""

from __future__ import annotations

import re
from bisect import bisect_left

_LONGEST = 200  # characters
_PAIRS = "“”„“„”«»»«‹›「」『』《》〈〉（）()[]【】"
_CLOSED = re.compile(
    "|".join(
        rf"{re.escape(opened)}[^{re.escape(opened + closed)}]{{0,{_LONGEST}}}{re.escape(closed)}"
        for opened, closed in zip(_PAIRS[::2], _PAIRS[1::2], strict=True)
    )
)
_MARKS = frozenset(_PAIRS)
_INCHES = re.compile(r'(?<=\d)"')
_NOT_OPENED = frozenset(["", *" .,;:!?)]"])
_SMILEYS = re.compile(r"(?:(?<=\s)|^)[:;=]['’]?-?[()DP](?=\s|$)")


class QuotedSpans:
    """The offsets of the opening and the closing mark of each short quotation and bracket of a text."""

    def __init__(self, text: str) -> None:
        spans = _straight_spans(text) if '"' in text else []
        if not _MARKS.isdisjoint(text):
            bare = without_smileys(text)
            spans += [(found.start(), found.end() - 1) for found in _CLOSED.finditer(bare)]
        self._spans = sorted(spans)

    def cover(self, start: int, stop: int) -> bool:
        """Check whether `text[start:stop]` is inside one of them."""
        first = bisect_left(self._spans, (start - _LONGEST - 1, 0))
        last = bisect_left(self._spans, (start, 0))
        return any(stop <= closed for _, closed in self._spans[first:last])


def without_smileys(text: str) -> str:
    """Replace each smiley, which is not a bracket, by spaces; offsets stay valid."""
    return _SMILEYS.sub(lambda found: " " * len(found.group()), text)


def straight_quotes(text: str) -> int:
    """Count the straight quotation marks, without inch marks (27") if these make the number odd."""
    count = text.count('"')
    return count - len(_INCHES.findall(text)) if count % 2 else count


def _straight_spans(text: str) -> list[tuple[int, int]]:
    spans, opened = [], -1
    for found in re.finditer('"', text):
        place = found.start()
        opens = (not place or text[place - 1] in " ([—–-") and text[place + 1 : place + 2] not in _NOT_OPENED
        if opens:
            opened = place
        elif opened >= 0:
            if place - opened <= _LONGEST:
                spans.append((opened, place))
            opened = -1
    return spans
