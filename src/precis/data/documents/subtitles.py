"""Subtitles (.srt, .vtt): what is said, in paragraphs, each cue with its time."""

from __future__ import annotations

import re

from precis.data.documents.passages import Passages, Writer
from precis.data.rows.texts import NotTextError, decode_text
from precis.errors import UserError

_TIMES = re.compile(r"^\s*(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})\s*-->\s*(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})")
_SPEAKER = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_PAUSE = 4.0  # seconds without words that begin a paragraph


def read(content: bytes) -> Passages:
    """Read subtitles. A line that a cue repeats from the one before it, as rolling captions do, is written once.

    Raises:
        UserError: it is not UTF-8, or has no cue.
    """
    try:
        lines = decode_text(content).split("\n")
    except NotTextError as error:
        raise UserError(str(error)) from None
    writer, ended, before = Writer(), 0.0, ""
    starts = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    if not starts:
        raise UserError("has no cue with times (00:01:02,000 --> 00:01:04,000); it is broken or no subtitles")
    for start in starts:
        found = _TIMES.match(lines[start])
        assert found is not None
        begins, ends = _seconds(found.groups()[:4]), _seconds(found.groups()[4:])
        said = [line for line in map(_plain, _text_lines(lines, start + 1)) if line]
        said = said[1:] if said and said[0] == before else said
        if not said:
            continue
        before = said[-1]
        is_new = begins - ended > _PAUSE or said[0].startswith("-") or re.match(r"[^\s:]{1,30}: ", said[0])
        hours, minutes, seconds = int(begins // 3600), int(begins // 60 % 60), int(begins % 60)
        writer.at(time=f"{hours}:{minutes:02}:{seconds:02}")
        writer.add(_joined(said), between="\n" if is_new else " ")
        ended = ends
    return writer.finished()


def _text_lines(lines: list[str], start: int) -> list[str]:
    """The lines of a cue, up to a blank one."""
    end = start
    while end < len(lines) and lines[end].strip() and not _TIMES.match(lines[end]):
        end += 1
    return lines[start:end]


def _plain(line: str) -> str:
    return " ".join(_TAG.sub("", _SPEAKER.sub(r"\1: ", line)).split())


def _joined(said: list[str]) -> str:
    """The lines of a cue as one; a dash begins what another person says."""
    return "".join(
        (("\n" if line.startswith("-") else " ") if place else "") + line for place, line in enumerate(said)
    )


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts)
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
