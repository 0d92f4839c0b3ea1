"""The text of a document, with the page, heading or time of each part."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

# Ligatures and forms of letters in PDFs, and characters that are not text. All would make equal words differ.
_FORMS = (*range(0xFB00, 0xFBB2), *range(0xFBD3, 0xFD3E), *range(0xFD50, 0xFDFD), *range(0xFE80, 0xFEFD))
_SIGNS: dict[int, str | None] = {
    **{
        sign: unicodedata.normalize("NFKC", chr(sign))
        for sign in _FORMS
        if unicodedata.decomposition(chr(sign))
    },
    **dict.fromkeys((*range(9), 11, *range(14, 32), 127, 173, 65279)),
    **dict.fromkeys((0xF0B7, 0xF0A7, 0xF076, 0xF0D8), "•"),  # bullets of the fonts Symbol and Wingdings
    0x0C: "\n",
    0xA0: " ",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a part of a document.

    Attributes:
        page: counted from 1; 0 if the format does not have pages.
        heading: the last heading before it.
        time: when it is spoken, as hours:minutes:seconds.
        line: in the file, counted from 1; 0 if it is unknown.
    """

    page: int = 0
    heading: str = ""
    time: str = ""
    line: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the known fields, JSON-ready."""
        return {name: value for name, value in asdict(self).items() if value}

    def __str__(self) -> str:
        page = f"page {self.page:,}" if self.page else ""
        heading = f'"{self.heading}"' if self.heading else ""
        line = f"line {self.line:,}" if self.line else ""
        return ", ".join(part for part in (page, heading, self.time, line) if part)


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a file's words that came out of its reader.

    Attributes:
        words: words of the file, by another way than the reader's.
        read: those that are in the text.
        named: those that are not, in parts that the notes name.
    """

    words: int
    read: int
    named: int

    @property
    def kept(self) -> float:
        """Return the share of the words that were read or named, from 0 to 1."""
        return (self.read + self.named) / self.words if self.words else 1.0

    def __str__(self) -> str:
        lost = self.words - self.read - self.named
        return (
            f"{self.kept:.1%} of {self.words:,} words: {self.read:,} read, {self.named:,} left out and named, "
            f"{lost:,} lost"
        )


def added(shares: Sequence[Share]) -> Share:
    """Return the share of several documents together."""
    return Share(*(sum(getattr(share, name) for share in shares) for name in ("words", "read", "named")))


@dataclass(frozen=True)
class Passages:
    """A text with its places.

    Attributes:
        text: lines end in a line feed; a blank line separates paragraphs.
        starts: offsets in `text`, increasing; `places[i]` holds from `starts[i]` up to the next one.
        notes: parts of the file that are not in the text, each in a few words.
        title: its name among several documents in one file; "" if the file holds one.
        name: the title that its format gives: the only heading of the first level, the subject of a mail; else "".
        left: what was left out and named, as pairs of name and text; not sent between processes.
        share: words of the file against words of the text; None if they were not counted.
    """

    text: str = ""
    starts: Sequence[int] = ()
    places: Sequence[Place] = ()
    notes: Sequence[str] = ()
    title: str = ""
    name: str = ""
    left: Sequence[tuple[str, str]] = ()
    share: Share | None = None

    def at(self, offset: int) -> Place:
        """Return the place of the character at `offset`."""
        index = bisect_right(self.starts, offset)
        return self.places[index - 1] if index else Place()

    def describe_places(self, offsets: Iterable[int]) -> str:
        """Describe the places of these characters, without lines, each once; empty if they are unknown."""
        found = dict.fromkeys(str(replace(self.at(offset), line=0)) for offset in offsets)
        return "; ".join(place for place in found if place)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready fields, which `from_dict` reads."""
        places = [place.to_dict() for place in self.places]
        share = asdict(self.share) if self.share else None
        return {
            "text": self.text, "starts": [*self.starts], "places": places, "notes": [*self.notes],
            "title": self.title, "name": self.name, "share": share,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Passages:
        """Rebuild passages from the fields of `to_dict`."""
        places = [Place(**place) for place in fields["places"]]
        share = Share(**fields["share"]) if fields["share"] else None
        return cls(
            fields["text"], fields["starts"], places, fields["notes"], title=fields["title"],
            name=fields["name"], share=share,
        )  # fmt: skip


CUT = "\ue000"
"""A line of a mail behind which all is quoted."""
NOWHERE = Passages()


def text_of(document: Any) -> Any:
    """Return the text of a document that may be passages; anything else unchanged."""
    return document.text if isinstance(document, Passages) else document


class Writer:
    """A builder that assembles a document from its parts, in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._place = Place()
        self._starts: list[int] = []
        self._places: list[Place] = []
        self.notes: list[str] = []
        self.names: list[str] = []  # headings of the first level
        self._left: list[tuple[str, str]] = []

    def at(self, **place: Any) -> None:
        """Set the place of the parts that follow: `page`, `heading`, `time`."""
        self._place = replace(self._place, **place)

    def add(self, text: str, *, between: str = "\n\n") -> None:
        """Add a part; blank ones are skipped.

        Args:
            between: separator from the part before it.
        """
        text = clean(text).strip("\n")
        if not text.strip():
            return
        if self._parts:
            self._put(between)
        if not self._places or self._places[-1] != self._place:
            self._starts.append(self._length)
            self._places.append(self._place)
        self._put(text)

    def heading(self, text: str) -> None:
        """Add a heading for the parts that follow."""
        words = " ".join(clean(text).split())
        if words:
            self.at(heading=words[:200])
            self.add(words)

    def leave_out(self, what: str, text: str) -> None:
        """Note once that `what` is left out, and count its text; with "" count a text that a note names already."""
        if text.strip():
            self._left.append((what, text))
        if what and text.strip() and (note := f"{what} left out") not in self.notes:
            self.notes.append(note)

    def add_from(self, other: Passages, start: int, stop: int, *, between: str = "\n\n") -> None:
        """Add a part of a finished document at its place."""
        self.at(**other.at(start).to_dict())
        self.add(other.text[start:stop], between=between)

    def take(self, other: Writer) -> None:
        """Add all of another builder but its name: the title of a part is not the whole's."""
        found = other.finished()
        for start, stop in zip(found.starts, [*found.starts[1:], len(found.text)], strict=True):
            self.add_from(found, start, stop)
        self.notes += [note for note in found.notes if note not in self.notes]
        self._left += found.left

    def finished(self, title: str = "") -> Passages:
        """Return the assembled document."""
        return Passages(
            "".join(self._parts), [*self._starts], [*self._places], [*self.notes], title=title,
            left=[*self._left], name=" ".join(clean(self.names[0]).split()) if len(self.names) == 1 else "",
        )  # fmt: skip

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def clean(text: str) -> str:
    """Remove control characters, soft hyphens and ligatures from a text; each line ends in a line feed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_SIGNS)
    return text.encode("utf-8", "replace").decode()
