"""Measures the minutes of 52 invented meetings: `python -m benchmarks.minutes`.

`minutes.toml` has the meetings with labels: forty of one style, and twelve others (spoken talk, councils on IRC, calls
of projects). Each is written in three formats: plain turns, a chat with stamps, and
subtitles. A line is right if the labelled turn has the same part; its time is right if it is that of its turn. The cues
were written before the meetings, by the same author, so that other meetings are harder.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from precis_text.documents.passages import Passages
from precis_text.documents.reader import read_content
from precis_text.forms.form import FormLine, ScoredText
from precis_text.forms.minutes import Minutes
from precis_text.length import ANY_LENGTH
from precis_text.pauses import Pauses
from precis_text.units import extraction_units

PARTS = {"D": "decisions", "A": "actions", "Q": "questions"}
_SECONDS = 20  # between two turns


@dataclass(frozen=True)
class LabelledTurn:
    """A turn "Ann: text" with the part of the minutes that it belongs to, or ""."""

    part: str
    line: str


STYLES = {"meetings": "the forty", "others": "the twelve others"}


def meetings(style: str = "meetings") -> list[list[LabelledTurn]]:
    """Return the labelled meetings of a style, a key of `STYLES`."""
    table = tomllib.loads(files(__package__).joinpath("minutes.toml").read_text("utf-8"))
    split = [[line.partition("|") for line in text.strip().split("\n")] for text in table[style]]
    return [[LabelledTurn(PARTS.get(label, ""), line.strip()) for label, _, line in turns] for turns in split]


def as_turns(turns: list[LabelledTurn]) -> tuple[Passages, list[str]]:
    """Return a meeting as plain turns, and the time of each: none."""
    return Passages("\n".join(turn.line for turn in turns)), [""] * len(turns)


def as_chat(turns: list[LabelledTurn]) -> tuple[Passages, list[str]]:
    """Return a meeting as a chat with a stamp before each message."""
    times = [f"{9 + place // 60:02}:{place % 60:02}" for place in range(len(turns))]
    lines = [f"12.03.24, {time} - {turn.line}" for time, turn in zip(times, turns, strict=True)]
    return read_content("\n".join(lines).encode(), name="chat.txt"), times


def as_subtitles(turns: list[LabelledTurn]) -> tuple[Passages, list[str]]:
    """Return a meeting as subtitles with voices."""
    begins = [_SECONDS * place for place in range(len(turns))]
    cues = [
        f"{_clock(begin)}.000 --> {_clock(begin + 5)}.000\n<v {name}>{text.strip()}</v>"
        for begin, (name, _, text) in zip(begins, (turn.line.partition(":") for turn in turns), strict=True)
    ]
    found = read_content("\n\n".join(["WEBVTT", *cues]).encode(), name="meeting.vtt")
    return found, [_clock(begin).removeprefix("0") for begin in begins]


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


Format = Callable[[list[LabelledTurn]], tuple[Passages, list[str]]]
FORMATS: dict[str, Format] = {"turns": as_turns, "chat": as_chat, "subtitles": as_subtitles}


@dataclass(frozen=True)
class Outcome:
    """The counts of lines in the minutes of meetings, for each part and for times.

    Attributes:
        right, found, labelled: lines of each part.
        timed, times: lines with the right time, and all of them.
        wrong: the lines that are not labelled so; `missed` are the labelled ones that are not there.
    """

    right: Counter[str]
    found: Counter[str]
    labelled: Counter[str]
    timed: int
    times: int
    wrong: list[str]
    missed: list[str]


def minutes_of(passages: Passages) -> list[FormLine]:
    """Return the lines of the minutes, with equal scores for all units."""
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [0.5] * len(units), 100.0)
    return Minutes().lines(source, ANY_LENGTH)


def measure(write: Format, style: str = "meetings") -> Outcome:
    """Return the outcome of all meetings of a style in one format."""
    right, found, labelled = Counter[str](), Counter[str](), Counter[str]()
    timed = times = 0
    wrong: list[str] = []
    missed: list[str] = []
    for turns in meetings(style):
        passages, clock = write(turns)
        got = {
            (line.part, _turn(line, turns)): line
            for line in minutes_of(passages)
            if line.part in PARTS.values()
        }
        wanted = {(turn.part, place) for place, turn in enumerate(turns) if turn.part}
        found.update(part for part, _ in got)
        labelled.update(part for part, _ in wanted)
        right.update(part for part, _ in got.keys() & wanted)
        wrong += [f"{part}: {got[part, place].shown}" for part, place in sorted(got.keys() - wanted)]
        missed += [f"{part}: {turns[place].line}" for part, place in sorted(wanted - got.keys())]
        times += len(got)
        timed += sum(place >= 0 and line.time == clock[place] for (_, place), line in got.items())
    return Outcome(right, found, labelled, timed, times, wrong, missed)


def _turn(line: FormLine, turns: list[LabelledTurn]) -> int:
    """Return the index of the turn that a line was taken from, by its text; -1 if it joins several turns."""
    said = re.sub(r"^\[[^\]]*\] | \((?:owner|due|agreed): [^()]*\)$", "", line.shown)
    said = said.rpartition(f"{line.speaker}: ")[2]  # without the question that it answers
    heard = Pauses.of(" ".join(turn.line for turn in turns)).left_out
    lines = ((place, turn.line) for place, turn in enumerate(turns) if line.speaker in turn.line)
    places = (place for place, text in lines if said in text or said in heard(text))
    return next(places, -1)


def report(style: str) -> None:
    """Print precision, recall and times of a style for each format, with the wrong and the missed turns."""
    for name, write in FORMATS.items():
        outcome = measure(write, style)
        for part in PARTS.values():
            found, labelled, right = outcome.found[part], outcome.labelled[part], outcome.right[part]
            precision, recall = right / max(1, found), right / max(1, labelled)
            print(
                f"{name:10} {part:10} precision {precision:.2f} ({right} of {found}), "
                f"recall {recall:.2f} ({right} of {labelled})"
            )
        print(f"{name:10} times right: {outcome.timed} of {outcome.times}")
    for line in outcome.wrong:
        print(f"not labelled so: {line}")
    for line in outcome.missed:
        print(f"not found: {line}")


def main() -> None:
    """Print the figures of each style."""
    for style, name in STYLES.items():
        print(f"{name}:")
        report(style)


if __name__ == "__main__":
    main()
