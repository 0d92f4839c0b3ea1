"""Parts of a Word document outside its main text: embedded documents, diagrams, charts, comments, page headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zipfile import ZipFile

from precis_text.bounded_io import MIB
from precis_text.documents.archives import local, optional_part, own_text, related
from precis_text.documents.embedded_files import read_embedded
from precis_text.documents.passages import Writer

_LEFT_OUT = {
    "header": "page headers and footers", "footer": "page headers and footers", "comments": "comments",
    "chart": "charts", "chartEx": "charts",
}  # fmt: skip
_NO_TEXT = frozenset(("f", "formatCode", "instrText", "posOffset", "align", "attrName", "tableStyleId"))
_OBJECTS = ("package", "oleObject")
_CHUNK = "an embedded file is not read"
_MOST_CHUNK = 16 * MIB


@dataclass(frozen=True)
class WordParts:
    """The parts that a part of a document refers to, by the id of the relation.

    Attributes:
        what: the kind of file, for messages.
        found: id -> last word of the kind, name.
        depth: the number of documents that this one is in.
    """

    archive: ZipFile
    what: str
    found: dict[str, tuple[str, str]]
    depth: int = 0

    @classmethod
    def of(cls, archive: ZipFile, main: str, *, what: str, depth: int = 0) -> WordParts:
        """List the parts of `main`."""
        return cls(archive, what, related(archive, main, what=what), depth)

    def root(self, name: str) -> Any:
        """Parse a part by its id; None if it is missing."""
        return optional_part(self.archive, self.found.get(name, ("", ""))[1], what=self.what)

    def diagram(self, name: str) -> list[str]:
        """Return the paragraphs of a diagram (SmartArt)."""
        root = self.root(name)
        paragraphs = () if root is None else root.iter("{*}p")
        return [text for each in paragraphs if (text := texts_in(each))]

    def chunk(self, name: str, writer: Writer) -> list[str]:
        """Return the paragraphs of an embedded document; one that is not read is noted."""
        place = self.found.get(name, ("", ""))[1]
        is_there = place in self.archive.namelist() and self.archive.getinfo(place).file_size <= _MOST_CHUNK
        content = self.archive.read(place) if is_there else b""
        read = read_embedded(place, content, depth=self.depth + 1) if content else None
        if read is None:
            writer.notes += [_CHUNK] if _CHUNK not in writer.notes else []
            return []
        writer.notes += [note for note in read.notes if note not in writer.notes]
        for what, text in read.left:
            writer.leave_out(what, text)
        return read.text.split("\n\n")

    def name_unread(self, writer: Writer) -> None:
        """Describe the parts that are not read."""
        objects = 0
        for kind, name in self.found.values():
            objects += kind in _OBJECTS
            root = optional_part(self.archive, name, what=self.what) if kind in _LEFT_OUT else None
            if root is not None:
                writer.leave_out(_LEFT_OUT[kind], texts_in(root))
        pictures = sum("/media/" in name for name in self.archive.namelist())
        if objects:
            writer.notes.append(f"{objects:,} embedded {'object' if objects == 1 else 'objects'} not read")
        if pictures:
            writer.notes.append(f"{pictures:,} {'picture' if pictures == 1 else 'pictures'} not read")


def texts_in(root: Any) -> str:
    """Return the text of a part on one line, a word of its own for each paragraph and value."""
    found = []
    for each in root.iter():
        name = local(each)
        found.append(" " if name in ("p", "v", "tab", "br") else "")
        if name not in _NO_TEXT:
            found.append(each.text or "" if name in ("t", "delText") else own_text(each))
    return " ".join("".join(found).split())
