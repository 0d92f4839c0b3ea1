"""Cues of older subtitle files, by their first lines.

MicroDVD    {25}{100}text|text           frames, whose rate the first cue may give
MPL2        [10][50]text|/text           tenths of a second
LRC         [00:12.30]text               songs; the end is the beginning of the next line
SAMI        <SYNC Start=1000><P>text     milliseconds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise

Timed = tuple[float, float, list[str]]
"""Begin and end in seconds, and lines."""

_FRAME_CUE = re.compile(r"^[ \t]*\{(\d+)\}\{(\d*)\}(.*)$", re.MULTILINE)
_TENTH_CUE = re.compile(r"^[ \t]*\[(\d+)\]\[(\d*)\](.*)$", re.MULTILINE)
_STYLE = re.compile(r"\{[^{}]*\}")
_RATE = 23.976  # frames in a second where the file does not say
_LRC_LINE = re.compile(r"^[ \t]*((?:\[\d{1,3}:\d{2}(?:[.:]\d{1,3})?\])+)(.*)$", re.MULTILINE)
_LRC_TIME = re.compile(r"\[(\d{1,3}):(\d{2})(?:[.:](\d{1,3}))?\]")
_LRC_LABEL = re.compile(r"^[ \t]*\[(?:ti|ar|al|au|by|re|ve|la|length|offset|tool|#)[^\]\n]*\][ \t]*$", re.M)
_SYNC = re.compile(r"<sync\s[^>]*start\s*=\s*[\"']?(\d+)[^>]*>", re.IGNORECASE)
_REMARK = re.compile(r"<!--.*?-->", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_WORD_TIME = re.compile(r"<\d{1,3}:\d{2}(?:[.:]\d{1,3})?>")
_LAST = 5.0  # seconds that a line of a song lasts at most


def dialect_of(text: str) -> Callable[[str], Iterator[Timed]] | None:
    """Return the reader of an older subtitle file; None for the others."""
    start = text.lstrip("\ufeff \t\n")
    if _FRAME_CUE.match(start):
        return _of_frames
    if _TENTH_CUE.match(start):
        return _of_tenths
    if _LRC_LINE.match(_LRC_LABEL.sub("", start).lstrip()):
        return _of_song
    return _of_sami if start[:200].lower().startswith("<sami") else None


def _of_frames(text: str) -> Iterator[Timed]:
    rate = _RATE
    for number, found in enumerate(_FRAME_CUE.finditer(text)):
        begins, ends, said = int(found[1]), int(found[2] or found[1]), _STYLE.sub("", found[3])
        if not number and re.fullmatch(r"\s*\d{2}(?:[.,]\d+)?\s*", said):
            rate = float(said.replace(",", ".")) or _RATE
            continue
        yield begins / rate, ends / rate, [line.lstrip("/") for line in said.split("|")]


def _of_tenths(text: str) -> Iterator[Timed]:
    for found in _TENTH_CUE.finditer(text):
        lines = [line.lstrip("/") for line in _STYLE.sub("", found[3]).split("|")]
        yield int(found[1]) / 10, int(found[2] or found[1]) / 10, lines


def _of_song(text: str) -> Iterator[Timed]:
    """Yield the lines of a song once, at the first of their times."""
    lines: list[tuple[float, str]] = []
    for found in _LRC_LINE.finditer(text):
        minutes, seconds, part = _LRC_TIME.findall(found[1])[0]
        begins = int(minutes) * 60 + int(seconds) + float(f"0.{part or 0}")
        lines.append((begins, _WORD_TIME.sub("", found[2])))
    lines.sort(key=lambda line: line[0])
    for (begins, said), (ends, _) in pairwise([*lines, (lines[-1][0] + _LAST, "")] if lines else []):
        yield begins, min(ends, begins + _LAST), [said]


def _of_sami(text: str) -> Iterator[Timed]:
    text = _REMARK.sub("", text)
    starts = [*_SYNC.finditer(text)]
    for found, following in pairwise([*starts, None]):
        assert found is not None
        stop = following.start() if following else len(text)
        ends = int(following[1]) if following else int(found[1])
        shown = _BREAK.sub("\n", " ".join(text[found.end() : stop].split()))
        yield (
            int(found[1]) / 1000, ends / 1000, unescape(_TAG.sub("", shown)).replace("\xa0", " ").split("\n"),
        )  # fmt: skip
