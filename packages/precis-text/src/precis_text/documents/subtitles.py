"""Subtitles (.srt, .vtt): the spoken text in paragraphs, with the time of each cue."""

from __future__ import annotations

import re
from html import unescape

from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from precis_text.text_files import NotTextError, decode_text

_TIMES = re.compile(r"^\s*(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})\s*-->\s*(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}|[♪♫]")
_SOUND = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")  # [applause]
_CHANGE = re.compile(r"^\s*>{2,}\s*")  # ">> " marks another speaker
_NAME = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")
_PAUSE = 4.0  # seconds without words that start a paragraph


def read(content: bytes) -> Passages:
    """Read subtitles. A line that a cue repeats from the previous cue, as in rolling captions, is written once.

    Raises:
        UserError: it is not UTF-8, or contains no cue.
    """
    try:
        lines = decode_text(content).split("\n")
    except NotTextError as error:
        raise UserError(str(error)) from None
    writer, ended, before, voice, sounds = Writer(), 0.0, "", "", 0
    starts = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    if not starts:
        raise UserError("lacks cues (00:01:02,000 --> 00:01:04,000); it is damaged or not subtitles")
    for start in starts:
        found = _TIMES.match(lines[start])
        assert found is not None
        begins, ends = _seconds(found.groups()[:4]), _seconds(found.groups()[4:])
        shown = _text_lines(lines, start + 1)
        said = [(_voice(line), text) for line in shown if (text := _plain(line))]
        said = said[1:] if said and said[0][1] == before else said
        sounds += sum(bool(_SOUND.fullmatch(text)) for _, text in said)
        said = [(name, text) for name, text in said if not _SOUND.fullmatch(text)]
        if not said:
            continue
        before = said[-1][1]
        is_new = begins - ended > _PAUSE or _begins_turn(said[0][1]) or said[0][0] not in ("", voice)
        text, voice = _joined(said, voice)
        hours, minutes, seconds = int(begins // 3600), int(begins // 60 % 60), int(begins % 60)
        writer.at(time=f"{hours}:{minutes:02}:{seconds:02}")
        writer.add(text, between="\n" if is_new else " ")
        ended = ends
    if sounds:
        writer.notes.append(f"{sounds:,} {'sound' if sounds == 1 else 'sounds'} in brackets left out")
    return writer.finished()


def _begins_turn(line: str) -> bool:
    """Check whether another person says this: it starts with a dash, ">>" or a capitalized name."""
    name = _NAME.match(_CHANGE.sub("", line))
    return bool(
        line.startswith("-")
        or _CHANGE.match(line)
        or (name and all(not word[0].islower() for word in name.group(1).split()))
    )


def _text_lines(lines: list[str], start: int) -> list[str]:
    """Return the lines of a cue, up to a blank one; rolling captions start with a line of spaces."""
    while start < len(lines) and lines[start].isspace():
        start += 1
    end = start
    while end < len(lines) and lines[end].strip() and not _TIMES.match(lines[end]):
        end += 1
    return lines[start:end]


def _plain(line: str) -> str:
    return " ".join(unescape(_TAG.sub("", line)).split())


def _voice(line: str) -> str:
    """Return the speaker that the tag names, or "" without a tag."""
    found = _VOICE.search(line)
    return found.group(1).strip() if found else ""


def _joined(said: list[tuple[str, str]], voice: str) -> tuple[str, str]:
    """Join the lines of a cue and return the last speaker too; a dash or a voice starts another person's words.

    Args:
        said: voices and lines.
        voice: the speaker before the cue.
    """
    joined = ""
    for name, line in said:
        is_other = name not in ("", voice)
        voice = name or voice
        between = ("\n" if is_other or line.startswith("-") else " ") if joined else ""
        joined += between + (f"{voice}: " if is_other else "") + _CHANGE.sub("", line)
    return joined, voice


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts)
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
