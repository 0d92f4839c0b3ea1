"""Chats and transcripts in plain text: a line for each turn, with its speaker, and its time as the place."""

from __future__ import annotations

from collections.abc import Sequence

from precis_text.documents.passages import Passages, Writer
from precis_text.turns import PROGRAM_LINES, Turn, turns_of, without_stamps


def passages_of(text: str) -> Passages:
    """Return a text as passages. The stamps of a chat or transcript become places, and its notices are left out."""
    if not turns_of(text):
        return Passages(text)
    text, notices = PROGRAM_LINES.subn("", text)
    turns, writer = turns_of(text), Writer()
    if not any(turn.speaker for turn in turns):
        return _spoken(text, turns, notices)
    writer.add(text[: turns[0].start].strip())
    between = "\n\n"
    for turn in turns:
        if turn.is_notice:
            notices += bool(turn.text)
            continue
        writer.at(time=turn.time)
        writer.add(turn.line, between=between)
        between = "\n"
    return _noted(writer, notices)


def _noted(writer: Writer, notices: int) -> Passages:
    if notices:
        writer.notes.append(f"{notices:,} {'line' if notices == 1 else 'lines'} of the chat program left out")
    return writer.finished()


def _spoken(text: str, turns: Sequence[Turn], notices: int) -> Passages:
    """Return a transcript without speakers: each piece between two stamps has a time."""
    blanked, writer, done = without_stamps(text, turns), Writer(), 0
    writer.add(blanked[: turns[0].start].strip())
    between = "\n\n"
    for turn in turns:
        gap = blanked[done : turn.body]
        between = gap[: len(gap) - len(gap.lstrip())] if done else between
        writer.at(time=turn.time)
        body = blanked[turn.body : turn.stop]
        lead = len(body) - len(body.lstrip())
        lines = (between + body[:lead]).count("\n")
        writer.add(body.strip(), between=" " if not lines else "\n" * min(lines, 2))
        done = turn.stop
    return _noted(writer, notices)
