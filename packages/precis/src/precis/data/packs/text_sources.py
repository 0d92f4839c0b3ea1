"""Unlabelled text, one document at a time: text files, JSON lines, CSV, Parquet, and data sets on the hub.

A document's digest decides whether it is a duplicate, held out or sampled. The digest depends only on the text, so
these decisions are the same in every pack, whatever the order of files.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from itertools import islice
from pathlib import Path

from precis.data.pairs.pair import BadRowError, Columns, EmptyDocumentError, document_of
from precis.data.rows.hub import PREFIX, read_hub
from precis.data.rows.row_files import known_endings, read_rows
from precis.storage.seal import SEAL
from precis_text.bounded_io import is_folder, names_in, open_regular, stat_or_none, suggest
from precis_text.control_characters import remove_marks
from precis_text.errors import UserError
from precis_text.row import Row, SkippedRows
from precis_text.text_files import NotTextError, read_text

_TEXT = ".txt"
_SUMMARY = ".summary.txt"
_NAMED = "--document-column"
_AND = "+"  # between the columns of parallel texts


@dataclass
class TextReport(SkippedRows):
    """A record of skipped input: the first 20 bad rows and unread files, their counts, and empty documents."""

    empty: int = 0


@dataclass(frozen=True)
class HubTexts:
    """The training split of `hub:owner/name[:config][@revision]`, streamed; at most `rows` rows, all if None."""

    name: str
    rows: int | None = None

    def __str__(self) -> str:
        return self.name


Source = Path | HubTexts


def text_sources(
    sources: Iterable[str | Path], *, rows: int | None = None, report: TextReport | None = None
) -> list[Source]:
    """List the files and the data sets that the sources name, in the order given; see `text_files`.

    Args:
        rows: the most rows of each data set on the hub.

    Raises:
        UserError: a file cannot be read, a data set is named twice, or rows are limited without one.
    """
    found: list[Source] = []
    for source in sources:
        if str(source).startswith(PREFIX):
            found.append(HubTexts(str(source), rows))
    names = [str(each) for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{twice}: is named twice; name every data set once")
    if rows is not None and not found:
        raise UserError(f"--rows {rows} limits data sets on the hub; name one as hub:owner/name, or omit it")
    local = [source for source in sources if not str(source).startswith(PREFIX)]
    return [*text_files(local, report=report), *found]


def text_files(sources: Iterable[str | Path], *, report: TextReport | None = None) -> list[Path]:
    """List the files that the sources name, in the order given.

    The files of a folder or a pattern (``books/*.txt``) are sorted. Folders are searched recursively. Hidden names and
    links to folders are skipped.

    Args:
        report: receives the files of folders that are not read, summaries included.

    Raises:
        UserError: a source does not exist, its kind is unknown, or a folder contains nothing readable.
    """
    endings = (_TEXT, *known_endings())
    files: list[Path] = []
    for path in (path for source in sources for path in _matching(source)):
        if stat_or_none(path) is None:
            raise UserError(f"{path}: no such file or folder{suggest(path)}")
        if is_folder(path):
            every = sorted(_files_below(path))
            inside = [p for p in every if p.name.lower().endswith(endings) and not p.name.endswith(_SUMMARY)]
            if not inside:
                raise UserError(f"{path}: contains no readable file; known endings: {', '.join(endings)}")
            files += inside
            if report is not None:
                read = set(inside)
                report.leave_unread(str(p.relative_to(path)) for p in every if p not in read)
        elif path.name.lower().endswith(endings):
            files.append(path)
        else:
            raise UserError(f"{path}: unknown kind of file; known endings: {', '.join(endings)}")
    times = Counter(path.absolute() for path in files)
    twice = [path for path in files if times[path.absolute()] > 1]
    if twice:
        raise UserError(f"{twice[0]}: is named twice; name every file once")
    for path in files:
        open_regular(path).close()  # report an unreadable file before any work starts
    return files


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, however deep, without recursion."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        for name in names_in(here):
            path = here / name
            if name.startswith(".") or name == SEAL:  # the seal is in folders that precis wrote
                continue
            if not is_folder(path) or path.is_symlink():
                yield path
            else:
                waiting.append(path)


def _matching(source: str | Path) -> list[Path]:
    """Return the path itself, or the files that match a pattern that the shell did not expand."""
    path = Path(source)
    if stat_or_none(path) is not None or not has_magic(str(source)):
        return [path]
    root = Path(path.anchor)
    found = sorted(root.glob(str(path.relative_to(root))))
    if not found:
        raise UserError(f"{source}: no file matches this pattern")
    return found


def read_texts(
    files: Sequence[Source], *, column: str = "text", skip_bad: bool = False, report: TextReport | None = None
) -> Iterator[str]:
    """Yield the documents of all files: a text file is one document, and so is each row of other files.

    Columns of parallel texts, "de+en", give one document with a line for each; every second row has the reverse order.
    A model can then fill masks in one text from the other (translation language modelling, XLM, arXiv:1901.07291,
    section 3.3), as in Z-Code++ (section 3.1). Languages and positions do not get separate embeddings.

    Raises:
        UserError: a row cannot be read or lacks the column (with `skip_bad` it is skipped and reported).
    """
    report = report if report is not None else TextReport()
    for path in files:
        for place, text, problem in _documents(path, column):
            if problem and not skip_bad:
                remedy = "" if _NAMED in problem else "; correct it, or skip such rows with --skip-bad"
                raise UserError(f"{place}: {problem}{remedy}")
            if problem:
                report.skip(f"{place}: {problem}")
            elif not text.strip():
                report.empty += 1
            else:
                yield remove_marks(text)


def _documents(path: Source, column: str) -> Iterator[tuple[str, str, str]]:
    """Yield (place, text, problem) for each document of a file or of a data set."""
    if isinstance(path, HubTexts):
        rows: Iterable[Row] = islice(read_hub(path.name, ("train",), stream=True), path.rows)
    elif path.name.lower().endswith(_TEXT):
        try:
            yield str(path), read_text(path), ""
        except NotTextError as error:
            yield str(path), "", str(error)
        return
    else:
        rows = read_rows(path)
    for number, row in enumerate(rows):
        place = f"{path}: {row.place}"
        names = [column] if column in row.values else column.split(_AND)
        try:
            for name in names:
                if row.values.get(name, "") is None:
                    raise BadRowError(f"column {name!r} must hold text, not null")
            texts = [document_of(row, Columns(document=name)) for name in names]
            text, problem = "\n".join(texts[:: -1 if number % 2 else 1]), ""
        except BadRowError as error:
            text, problem = "", "" if isinstance(error, EmptyDocumentError) else str(error)
        yield place, text, problem


_PIECE = 1_000_000  # characters to normalize at once: a list of words takes ten times the memory
_SPACE = re.compile(r"\s")


def text_digest(text: str) -> bytes:
    """Return the 16-byte digest of a document in NFC with collapsed white space; duplicates have equal digests."""
    digest, joint = hashlib.blake2b(digest_size=16), b""
    for piece in _pieces(text):
        words = " ".join(unicodedata.normalize("NFC", piece).split()).encode()
        if words:
            digest.update(joint + words)
            joint = b" "
    return digest.digest()


def _pieces(text: str) -> Iterator[str]:
    """Split a text before white space, which no normalization joins to the preceding text."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE)
        stop = space.start() if space is not None else len(text)
        yield text[start:stop]
        start = stop


def falls_below(digest: bytes, share: float) -> bool:
    """Check whether a text belongs to the `share` of all texts that is held out."""
    return int.from_bytes(digest[:8], "big") < share * 2**64


def sample_texts(texts: Iterable[str], *, characters: int, longest: int) -> list[str]:
    """Sample documents uniformly, in their order and without duplicates.

    The sample holds the documents with the smallest digests, as many as fit. So it does not depend on the order, and
    memory holds only the sample. It uses the half of the digest that `falls_below` ignores.

    Args:
        characters: most characters of the sample; a single document may be longer.
        longest: most characters of a document, which is truncated to it.
    """
    heap: list[tuple[int, int, str]] = []  # largest digest first
    kept: set[int] = set()
    size, limit = 0, 2**64
    for place, text in enumerate(texts):
        rank = int.from_bytes(text_digest(text)[8:], "big")
        if rank >= limit or rank in kept:
            continue
        heapq.heappush(heap, (-rank, place, text[:longest]))
        kept.add(rank)
        size += min(len(text), longest)
        while size > characters and len(heap) > 1:
            largest, _, dropped = heapq.heappop(heap)
            size, limit = size - len(dropped), -largest
            kept.discard(limit)
    return [text for _, text in sorted((place, text) for _, place, text in heap)]
