"""Subtitles and captions: the spoken text in paragraphs, with the time of each cue."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from precis_text.documents.alphabets import guessed
from precis_text.documents.character_sets import declared_in, decode
from precis_text.documents.cues import Cue, cues_of, ttml_metadata
from precis_text.documents.file_kinds import BEGINNING, begins_with_cue
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from precis_text.text_files import NotTextError, decode_marked, decode_text
from precis_text.unmarked_speech import language_of_unmarked

_ARROW = "-->"  # between the times of a cue
_SOUND = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")  # [applause]
_CHANGE = re.compile(r"^\s*>{2,}\s*")  # ">> " marks another speaker
_NAME = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")
_PAUSE = 4.0  # seconds without words that start a paragraph
_BREATH = 0.7  # seconds between two pieces of speech without full stops
_FEWEST, _PIECE = 8, 24  # words of such a piece: least before a breath, and enough without one
_STOPS = re.compile(r"[.?!。？！।]")
_WORDS_A_STOP = 60  # at most, where full stops are written
_GROWING = 0.25  # least share of cues that repeat the beginning of their line

Line = tuple[str, str]


@dataclass(frozen=True)
class _Said:
    """The lines that a cue adds to those before it."""

    begins: float
    ends: float
    lines: list[Line]


def read(content: bytes) -> Passages:
    """Read subtitles. What a cue repeats of the one before it, as in rolling and live captions, is written once.

    Raises:
        UserError: it contains no cue.
    """
    text, note = _decoded(content)
    said, sounds = _without_sounds([*_added(cues_of(text))])
    writer = Writer()
    spoken = " ".join(line for cue in said for _, line in cue.lines)
    is_marked = len(_STOPS.findall(spoken)) * _WORDS_A_STOP >= len(spoken.split())
    _write(writer, said, is_marked=is_marked, piece=sys.maxsize if language_of_unmarked(spoken) else _PIECE)
    writer.leave_out("title and copyright", ttml_metadata(text))
    if note:
        writer.notes.append(note)
    if sounds:
        writer.notes.append(f"{sounds:,} {'sound' if sounds == 1 else 'sounds'} in brackets left out")
    return writer.finished()


def as_read(document: Any) -> Any:
    """Return a text of .vtt or .srt as passages, as its file would be read; anything else unchanged."""
    if not isinstance(document, str) or _ARROW not in document[:BEGINNING]:
        return document
    if not begins_with_cue(document[:BEGINNING].encode(errors="replace")):
        return document
    return read(document.encode(errors="replace"))


def _decoded(content: bytes) -> tuple[str, str]:
    """Return the text and a note on a guess. Old subtitles are rarely UTF-8.

    Raises:
        UserError: it is marked as UTF-16 but is not.
    """
    if content.lstrip().startswith(b"<?xml") and (declared := declared_in(content)):
        return decode(content, declared, Writer()).replace("\r\n", "\n"), ""
    try:
        return decode_marked(content) or decode_text(content), ""
    except NotTextError as error:
        if b"\0" in content:
            raise UserError(str(error)) from None
    name, codec = guessed(content)
    text = content.decode(codec, "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text, f"not UTF-8; read as {name} ({codec})"


def _added(cues: Sequence[Cue]) -> Iterator[_Said]:
    """Yield what each cue adds to the lines of the one before it."""
    shown = [[line for line in cue.lines if line[1]] for cue in cues]
    grown = sum(_grows(before, after) for before, after in pairwise(shown))
    is_growing = grown >= _GROWING * len(cues)
    before: list[Line] = []
    for cue, lines in zip(cues, shown, strict=True):
        if lines:
            yield _Said(cue.begins, cue.ends, _new(before, lines, is_growing=is_growing))
            before = lines


def _grows(before: Sequence[Line], after: Sequence[Line]) -> bool:
    return bool(before and after) and any(line.startswith(f"{before[-1][1]} ") for _, line in after)


def _new(before: list[Line], lines: list[Line], *, is_growing: bool) -> list[Line]:
    """Return the lines without those, and without the beginning of that, with which the last cue ended."""
    old, texts = [line for _, line in before], [line for _, line in lines]
    for count in range(min(len(old), len(texts)), 0, -1):
        if texts[:count] == old[-count:]:
            return lines[count:]
        rest = texts[count - 1].removeprefix(f"{old[-1]} ")
        if is_growing and texts[: count - 1] == old[-count:-1] and rest != texts[count - 1]:
            return [(lines[count - 1][0], rest), *lines[count:]]
    return lines


def _without_sounds(said: list[_Said]) -> tuple[list[_Said], int]:
    """Leave out sounds and cues that add nothing; return the number of sounds too."""
    kept = [
        _Said(cue.begins, cue.ends, [line for line in cue.lines if not _SOUND.fullmatch(line[1])])
        for cue in said
    ]
    sounds = sum(len(cue.lines) for cue in said) - sum(len(cue.lines) for cue in kept)
    return [cue for cue in kept if cue.lines], sounds


def _write(writer: Writer, said: list[_Said], *, is_marked: bool, piece: int) -> None:
    """Write the cues: a pause or another speaker begins a line.

    Args:
        is_marked: whether sentences end in full stops; else a breath, or enough words, ends a piece.
        piece: how many words are enough; none are where `unmarked_speech` divides them.
    """
    ended, voice, words, line = 0.0, "", 0, ""
    for cue in said:
        pause, lines = cue.begins - ended, cue.lines
        if is_marked and pause <= _PAUSE:
            lines = [(lines[0][0], _continued(lines[0][1], line)), *lines[1:]]
        first = lines[0]
        is_new = pause > _PAUSE or _begins_turn(first[1]) or first[0] not in ("", voice)
        between = "\n" if is_new else " "
        if not is_marked and (words >= piece or (words >= _FEWEST and (pause > _BREATH or is_new))):
            between = "\n\n"
        text, voice = _joined(lines, voice)
        line = f"{'' if is_new else line} {text}".rpartition("\n")[2].strip()
        hours, minutes, seconds = int(cue.begins // 3600), int(cue.begins // 60 % 60), int(cue.begins % 60)
        writer.at(time=f"{hours}:{minutes:02}:{seconds:02}")
        writer.add(text, between=between)
        words = len(text.split()) + (words if between == " " else 0)
        ended = cue.ends


def _continued(text: str, line: str) -> str:
    """Return a text without its speaker if it continues that speaker's sentence: Zoom names each cue."""
    name = _NAME.match(text)
    is_open = not _STOPS.search(line[-2:])
    return text[name.end() :] if name and is_open and line.startswith(name[0]) else text


def _begins_turn(line: str) -> bool:
    """Check whether another person says this: it starts with a dash, ">>" or a capitalized name."""
    name = _NAME.match(_CHANGE.sub("", line))
    return bool(
        line.startswith("-")
        or _CHANGE.match(line)
        or (name and all(not word[0].islower() for word in name.group(1).split()))
    )


def _joined(said: list[Line], voice: str) -> tuple[str, str]:
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
