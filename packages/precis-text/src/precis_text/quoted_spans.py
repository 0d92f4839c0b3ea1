"""The short quotations and brackets of a line, inside which no sentence ends."""

from __future__ import annotations

import re

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


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the opening and the closing mark of each short quotation and bracket."""
    spans = _straight_spans(text) if '"' in text else []
    if _MARKS.isdisjoint(text):
        return spans
    bare = without_smileys(text)
    return spans + [(found.start(), found.end() - 1) for found in _CLOSED.finditer(bare)]


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
