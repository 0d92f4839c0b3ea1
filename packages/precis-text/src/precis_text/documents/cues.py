"""The cues of subtitle files: SubRip (.srt), WebVTT (.vtt), SubViewer (.sub), TTML (.ttml, .dfxp), ASS (.ass, .ssa).

YouTube's .sbv and XML are among them; `cue_dialects` has older formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from xml.etree import ElementTree

from precis_text.documents.cue_dialects import Timed, dialect_of
from precis_text.errors import UserError

_CLOCK = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMES = re.compile(rf"^\s*{_CLOCK}\s*(?:-{{1,2}}>|→|,)\s*{_CLOCK}(?:\s|$)")
_ARROW = re.compile(r"->|→")
_NUMBER = re.compile(r"\s*(?:\d+|[\da-f-]{36}/[\d-]+)\s*")  # Teams: of the call and the cue
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_OPEN_VOICE = re.compile(r"<v[.\s]")
_BEFORE_VOICE = re.compile(r"(?=<v[.\s])")
_TAG = re.compile(r"<rt>.*?</rt>|</?[a-zA-Z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}|[♪♫]")
_BREAK = re.compile(r"\[br\]|<br\s*/?>", re.IGNORECASE)
_DECLARATION = re.compile(r"\A<\?xml[^>]*\?>")
_CAPTIONS_XML = ("<?xml", "<tt", "<timedtext", "<transcript")
_DRAWN = re.compile(r"\{[^{}]*\\p[1-9][^{}]*\}.*?(?:\{[^{}]*\\p0[^{}]*\}|$)", re.DOTALL)
_OVERRIDE = re.compile(r"\{[^{}]*\}")
_OFFSET = re.compile(r"([\d.]+)(h|ms|m|s|f|t)?$")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_RATE = 30.0  # frames in a second where the file does not say


@dataclass(frozen=True)
class Cue:
    """Lines shown from `begins` to `ends`, in seconds, each with the speaker that its tag names, or ""."""

    begins: float
    ends: float
    lines: tuple[tuple[str, str], ...]


def cues_of(text: str) -> list[Cue]:
    """Return the cues of a subtitle file in the order of the file.

    Raises:
        UserError: it contains none, or is damaged XML.
    """
    start = text.lstrip("\ufeff \t\n")
    dialect = dialect_of(text)
    if dialect is not None:
        found = [*_of_dialect(dialect(text))]
    elif start.startswith(_CAPTIONS_XML):
        found = [*_of_ttml(_DECLARATION.sub("", start))]
    elif re.search(r"^\s*\[(?:Script Info|Events)\]", text, re.IGNORECASE | re.MULTILINE):
        found = [*_of_ass(text)]
    else:
        found = [*_of_lines(text.split("\n"), is_srt=not start.startswith("WEBVTT"))]
    if not found:
        raise UserError("lacks cues (00:01:02,000 --> 00:01:04,000); it is damaged or not subtitles")
    return found


def _of_dialect(timed: Iterator[Timed]) -> Iterator[Cue]:
    for begins, ends, lines in timed:
        yield Cue(begins, ends, tuple(("", _plain(line)) for line in lines))


def _of_lines(lines: list[str], *, is_srt: bool) -> Iterator[Cue]:
    """Yield the cues of .srt, .vtt and .sbv; only in .vtt does a blank line always end a cue."""
    for number, line in enumerate(lines):
        found = _TIMES.match(line)
        if found is not None:
            said = (_all_lines if is_srt else _text_lines)(lines, number + 1)
            shown = [
                (_voice(part), _plain(part))
                for text in said
                for part in _BEFORE_VOICE.split(_BREAK.sub(" ", text))
                if part.strip()
            ]
            yield Cue(_seconds(found.groups()[:4]), _seconds(found.groups()[4:]), tuple(shown))


def _all_lines(lines: list[str], start: int) -> list[str]:
    """Return the lines of a cue, up to the number or times of the next one; editors leave blank lines in cues."""
    end = start
    while end < len(lines) and not _TIMES.match(lines[end]):
        end += 1
    shown = [line for line in lines[start:end] if line.strip()]
    is_numbered = end < len(lines) and _ARROW.search(lines[end]) and shown and _NUMBER.fullmatch(shown[-1])
    return shown[:-1] if is_numbered else shown


def _text_lines(lines: list[str], start: int) -> list[str]:
    """Return the lines of a cue, up to a blank one; rolling captions start with a line of spaces."""
    while start < len(lines) and lines[start].isspace():
        start += 1
    end = start
    while end < len(lines) and lines[end].strip() and not _TIMES.match(lines[end]):
        end += 1
    return lines[start:end]


def _of_ass(text: str) -> Iterator[Cue]:
    """Yield the lines of dialogue, which `Format:` describes."""
    names = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
    is_event = False
    for line in text.split("\n"):
        kind, _, value = line.partition(":")
        if line.lstrip().startswith("["):
            is_event = line.strip().lower() == "[events]"
        elif is_event and kind.strip().lower() == "format":
            names = [name.strip().lower() for name in value.split(",")]
        elif is_event and kind.strip().lower() == "dialogue":
            fields = dict(zip(names, value.split(",", len(names) - 1), strict=False))
            begins, ends = (re.fullmatch(_CLOCK, fields.get(name, "").strip()) for name in ("start", "end"))
            if begins and ends:
                spoken = _OVERRIDE.sub("", _DRAWN.sub("", fields.get("text", "")))
                name = (fields.get("name") or fields.get("actor") or "").strip()
                lines = [" ".join(part.split()) for part in re.split(r"\\N", re.sub(r"\\[hn]", " ", spoken))]
                yield Cue(
                    _seconds(begins.groups()), _seconds(ends.groups()), tuple((name, line) for line in lines)
                )


def _of_ttml(text: str) -> Iterator[Cue]:
    """Yield the paragraphs of TTML.

    Raises:
        UserError: the XML is damaged, or a time is not one.
    """
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise UserError(f"is damaged XML ({error}); export the captions again") from None
    rates = {name.rpartition("}")[2]: value for name, value in root.attrib.items()}
    rate, ticks = float(rates.get("frameRate") or _RATE), float(rates.get("tickRate") or 1.0)
    agents = {
        next((value for name, value in agent.attrib.items() if name.endswith("}id")), ""): " ".join(
            " ".join(agent.itertext()).split()
        )
        for agent in root.findall(".//{*}agent")
    }
    for paragraph in root.findall(".//{*}p") or root.findall(".//{*}text"):
        begins, ends = _ttml_times(paragraph, rate, ticks)
        agent = next((value for name, value in paragraph.attrib.items() if name.endswith("}agent")), "")
        lines = "".join(_ttml_text(paragraph)).split("\n")
        is_escaped_twice = paragraph.tag == "text"  # of YouTube
        shown = (
            (agents.get(agent, ""), _plain(line) if is_escaped_twice else " ".join(line.split()))
            for line in lines
        )
        yield Cue(begins, ends, tuple(shown))
    if loose := " ".join(_loose_words(root)):
        yield Cue(0.0, 0.0, (("", loose),))


def ttml_metadata(text: str) -> str:
    """Return the title, copyright and description of TTML, without its speakers; "" for other subtitles."""
    start = text.lstrip("\ufeff \t\n")
    if not start.startswith(_CAPTIONS_XML):
        return ""
    try:
        root = ElementTree.fromstring(_DECLARATION.sub("", start).encode())
    except ElementTree.ParseError:
        return ""
    told = [element for element in root.findall(".//{*}metadata/*") if not element.tag.endswith("}agent")]
    return " ".join(" ".join(element.itertext()) for element in told)


def _ttml_times(element: ElementTree.Element, rate: float, ticks: float) -> tuple[float, float]:
    """Return when a paragraph begins and ends; YouTube writes `t` and `d` in milliseconds, or `start` and `dur`."""
    if "t" in element.attrib or "start" in element.attrib:
        unit = "ms" if "t" in element.attrib else "s"
        times = [
            f"{element.get(one) or element.get(other) or 0}{unit}"
            for one, other in (("t", "start"), ("d", "dur"))
        ]
        begins, lasts = (_ttml_seconds(time, rate, ticks) for time in times)
        return begins, begins + lasts
    begins, ends, lasts = (
        _ttml_seconds(element.get(name) or "0s", rate, ticks) for name in ("begin", "end", "dur")
    )
    return begins, ends or begins + lasts


def _loose_words(root: ElementTree.Element) -> Iterator[str]:
    """Yield the text of divisions that is in no paragraph."""
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in ("body", "div"):
            for text in (element.text, *(child.tail for child in element)):
                yield from (text or "").split()


def _ttml_text(element: ElementTree.Element) -> Iterator[str]:
    yield " ".join((element.text or "").splitlines())
    for child in element:
        name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        if name == "br":
            yield "\n"
        elif name != "metadata":
            yield from _ttml_text(child)
        yield " ".join((child.tail or "").splitlines())


def _ttml_seconds(time: str, rate: float, ticks: float) -> float:
    """Return a time in seconds: "00:01:02.5", "00:01:02:12" with frames, "62.5s", "620000t"."""
    offset = _OFFSET.fullmatch(time.strip())
    if offset is not None:
        units = {**_SECONDS, "f": 1 / rate, "t": 1 / ticks}
        return float(offset[1]) * units[offset[2] or "s"]
    found = re.fullmatch(r"(\d+):(\d{2}):(\d{2})(?:[:;](\d+)|(\.\d+))?", time.strip())
    if found is None:
        raise UserError(f"has a cue at {time!r}, which is not a time; export the captions again")
    hours, minutes, seconds = (int(found[part]) for part in (1, 2, 3))
    return hours * 3600 + minutes * 60 + seconds + int(found[4] or 0) / rate + float(found[5] or 0)


def _plain(line: str) -> str:
    text = _TAG.sub("", line)
    cut_off = _OPEN_VOICE.search(text, text.rfind(">") + 1)  # a tag that does not end takes the rest
    return " ".join(unescape(text[: cut_off.start()] if cut_off else text).split())


def _voice(line: str) -> str:
    """Return the speaker that the tag names, or "" without a tag."""
    found = _VOICE.search(line)
    return found.group(1).strip() if found else ""


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds = (int(part or 0) for part in parts[:3])
    return hours * 3600 + minutes * 60 + seconds + float(f"0.{parts[3] or 0}")
