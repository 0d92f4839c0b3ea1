"""Subtitles (.srt, .vtt): what is said, in paragraphs, each cue with its time."""

from __future__ import annotations

import re
from html import unescape

from precis.data.documents.passages import Passages, Writer
from precis.data.rows.texts import NotTextError, decode_text
from precis.errors import UserError

_TIMES = re.compile(r"^\s*(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})\s*-->\s*(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}|[♪♫]")
_SOUND = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")  # [applause]
_CHANGE = re.compile(r"\s*>{2,}\s*")  # ">> " where another person speaks
_NAME = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")
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
    writer, ended, before, voice, sounds = Writer(), 0.0, "", "", 0
    starts = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    if not starts:
        raise UserError("has no cue with times (00:01:02,000 --> 00:01:04,000); it is broken or no subtitles")
    for start in starts:
        found = _TIMES.match(lines[start])
        assert found is not None
        begins, ends = _seconds(found.groups()[:4]), _seconds(found.groups()[4:])
        shown = _text_lines(lines, start + 1)
        voices = [name.strip() for line in shown for name in _VOICE.findall(line)]
        said = [line for line in map(_plain, shown) if line]
        said = said[1:] if said and said[0] == before else said
        sounds += sum(bool(_SOUND.fullmatch(line)) for line in said)
        said = [line for line in said if not _SOUND.fullmatch(line)]
        if not said:
            continue
        before = said[-1]
        is_new = begins - ended > _PAUSE or _begins_turn(said[0])
        said = [_CHANGE.sub("", line, count=1) if _CHANGE.match(line) else line for line in said]
        if voices and voices[0] != voice:
            voice, is_new = voices[0], True
            said[0] = f"{voice}: {said[0]}"
        hours, minutes, seconds = int(begins // 3600), int(begins // 60 % 60), int(begins % 60)
        writer.at(time=f"{hours}:{minutes:02}:{seconds:02}")
        writer.add(_joined(said), between="\n" if is_new else " ")
        ended = ends
    if sounds:
        writer.notes.append(f"{sounds:,} {'sound' if sounds == 1 else 'sounds'} in brackets left out")
    return writer.finished()


def _begins_turn(line: str) -> bool:
    """Whether another person says this: a dash, ">>" or a name with capital letters in front of it."""
    name = _NAME.match(_CHANGE.sub("", line, count=1))
    return bool(
        line.startswith("-")
        or _CHANGE.match(line)
        or (name and all(not word[0].islower() for word in name.group(1).split()))
    )


def _text_lines(lines: list[str], start: int) -> list[str]:
    """The lines of a cue, up to a blank one; rolling captions begin with one of spaces."""
    while start < len(lines) and lines[start].isspace():
        start += 1
    end = start
    while end < len(lines) and lines[end].strip() and not _TIMES.match(lines[end]):
        end += 1
    return lines[start:end]


def _plain(line: str) -> str:
    return " ".join(unescape(_TAG.sub("", line)).split())


def _joined(said: list[str]) -> str:
    """The lines of a cue as one; a dash begins what another person says."""
    return "".join(
        (("\n" if line.startswith("-") else " ") if place else "") + line for place, line in enumerate(said)
    )


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts)
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
