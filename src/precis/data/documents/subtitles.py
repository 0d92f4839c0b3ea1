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
_CHANGE = re.compile(r"^\s*>{2,}\s*")  # ">> " where another person speaks
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
    """Whether another person says this: a dash, ">>" or a name with capital letters in front of it."""
    name = _NAME.match(_CHANGE.sub("", line))
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


def _voice(line: str) -> str:
    """Who says it, by its tag; "" if it has none."""
    found = _VOICE.search(line)
    return found.group(1).strip() if found else ""


def _joined(said: list[tuple[str, str]], voice: str) -> tuple[str, str]:
    """The lines of a cue as one, and who speaks at its end; a dash or a voice begins what another person says.

    Args:
        said: voices and lines.
        voice: who spoke before.
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
