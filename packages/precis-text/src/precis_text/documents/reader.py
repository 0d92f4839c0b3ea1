"""Read documents of every kind, with limits on time and memory, in a separate process (`worker`)."""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from precis_text.bounded_io import MIB, is_folder, read_bounded, size, stat_or_none, suggest
from precis_text.documents import recognition
from precis_text.documents.alphabets import is_western
from precis_text.documents.file_kinds import BEGINNING, KINDS, MAIL, PDF, PICTURE, DocumentFormat, kind_of
from precis_text.documents.mail_quotes import as_mail
from precis_text.documents.passages import Passages, Writer, added
from precis_text.documents.plain_text import passages_of, with_words_joined
from precis_text.errors import UserError, missing_extra
from precis_text.row import UTF16
from precis_text.text_files import NOT_TEXT, NotTextError, decode_marked, decode_text, other_kind
from precis_text.text_lines import MAX_LINE

MOST_BYTES = max(kind.most for kind in KINDS)
# A label or a quotation, without one of which no text is a pasted mail
_LIKE_MAIL = re.compile(r"^\s*(?:>|-{3}|[^\s:：][^\n:：]{0,40}[:：](?:\s|$))|[:：]\s*$", re.MULTILINE)
_SECONDS, _MOST_SECONDS = 5.0, 240.0  # of processor time: base for any file, and limit for the largest
_WAIT = 20  # wall-clock limit as a multiple of it, since other work may use the processor


def read_document(path: str | Path) -> Passages:
    """Read a file as one document: the text that `precis summarize` reads, its places and what is left out.

    Offsets of a summary, such as `places` in the JSON of `precis summarize`, count characters of this text.

    Args:
        path: a file of a kind in `file_kinds.KINDS`, or a text in UTF-8 or marked UTF-16.

    Returns:
        the document: `text`; `at(offset)`, the page, heading or time of a character; `notes`, the omissions.

    Raises:
        UserError: it is missing, a folder, unsupported, empty or damaged, or it holds several documents.

    Examples:
        >>> _ = Path("report.md").write_text("# Bridge\\n\\nThe bridge is closed. Repairs take nine weeks.")
        >>> document = read_document("report.md")
        >>> document.at(document.text.index("Repairs")).heading
        'Bridge'
    """
    documents = read_documents(path)
    if len(documents) > 1:
        raise UserError(
            f"{path}: holds {len(documents):,} documents; precis.read_documents reads them as a list"
        )
    return documents[0]


def read_documents(path: str | Path) -> list[Passages]:
    """Read the documents of a file: each mail of a mailbox or digest, with its `title`; one of any other file.

    Raises:
        UserError: the file is missing, a folder, unsupported, empty or damaged.

    Examples:
        >>> _ = Path("notes.txt").write_text("Ann sings in the hall. Bob listens to her.")
        >>> [document.text for document in read_documents("notes.txt")]
        ['Ann sings in the hall. Bob listens to her.']
    """
    place = Path(path)
    if stat_or_none(place) is None:
        raise UserError(f"{path}: no such file{suggest(path)}")
    if is_folder(place):
        raise UserError(f"{path}: is a folder; name one file")
    return _named_contents(place)


def _named_contents(place: Path) -> list[Passages]:
    try:
        return read_contents(read_bounded(place, limit=MOST_BYTES), name=place.name)
    except UserError as error:
        raise UserError(f"{place}: {str(error).removeprefix(f'{place}: ')}") from None


def read_content(content: bytes, *, name: str = "", within: float | None = None) -> Passages:
    """Read a file as one document, its documents one behind the other if it holds several; see `read_contents`."""
    documents = read_contents(content, name=name, within=within)
    if len(documents) == 1:
        return documents[0]
    writer = Writer()
    for passages in documents:
        part = Writer()
        part.add_from(passages, 0, len(passages.text))
        part.notes += passages.notes
        writer.take(part)
    shares = [passages.share for passages in documents if passages.share]
    return replace(writer.finished(), share=added(shares) if shares else None)


def read_contents(content: bytes, *, name: str = "", within: float | None = None) -> list[Passages]:
    """Read the documents of a file: a text in UTF-8 or marked UTF-16, or a file of a kind in `file_kinds.KINDS`.

    A mailbox and a digest hold several, each with its title; every other file holds one.

    Args:
        name: the file's name, or "" if it has none.
        within: limit in seconds for waiting for other documents, and again for reading this one.

    Raises:
        UserError: it is unsupported, empty, locked, damaged, or takes too much time or memory. The message states
            the problem and the remedy, without the name.
    """
    kind = kind_of(name, content[:BEGINNING])
    if kind is None:
        return [_plain_text(content, name, within)]
    if not content:
        raise UserError("is empty")
    if len(content) > kind.most:
        raise UserError(f"is {kind.name} of more than {size(kind.most)}, the limit; split it")
    for package in kind.needs:
        if find_spec(package) is None:
            raise UserError(
                f"is {kind.name}, not plain text; {missing_extra('documents', wanted_by='reading it')}"
            )
    return _WORKER.read(kind, content, within)


def _plain_text(content: bytes, name: str, within: float | None) -> Passages:
    kind = other_kind(name, content[:BEGINNING])
    if kind and not (content.startswith(UTF16) and kind == NOT_TEXT):
        raise UserError(kind)
    if len(content) > MAX_LINE:
        raise UserError(f"is larger than {size(MAX_LINE)}, the limit for one text; split it")
    guess: list[str] = []
    try:
        text = decode_marked(content) or decode_text(content)
    except NotTextError as error:
        if not is_western(content):
            raise UserError(str(error)) from None
        text = decode_text(content.decode("cp1252").encode())
        guess = ["not UTF-8; read as Western European (cp1252)"]
    text, joined = with_words_joined(text)
    mail = as_mail(text) if _LIKE_MAIL.search(text) else ""
    passages = _WORKER.read(MAIL, mail.encode(), within)[0] if mail else passages_of(text)
    words = "1 word joined that was" if joined == 1 else f"{joined:,} words joined that were"
    notes = [*guess, *(["read as a mail"] if mail else [])]
    notes += [f"{words} divided at line ends"] if joined else []
    return replace(passages, notes=[*passages.notes, *notes])


_KILLED = -9  # by the system; Windows has no such code


class TooLateError(UserError):
    """A document was not read within the time that its reader was given."""


class _Worker:
    """The reading process, started for the first document and restarted after it ends."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._one_at_a_time = threading.Lock()

    def read(self, kind: DocumentFormat, content: bytes, within: float | None) -> list[Passages]:
        seconds = min(_MOST_SECONDS, _SECONDS + kind.seconds * len(content) / MIB)
        request = {"module": kind.module, "size": len(content), "seconds": seconds}
        if not self._one_at_a_time.acquire(timeout=-1 if within is None else within):
            raise TooLateError(
                f"waited {within:.0f} seconds while other documents were read; try again later"
            )
        try:
            process = self._started()
            wait, begun = _wait(kind, seconds, within), time.monotonic()
            watch = threading.Timer(wait, process.kill)
            watch.start()
            try:
                answer = _ask(process, json.dumps(request).encode() + b"\n", content)
            except BaseException:
                self.end()
                raise
            finally:
                watch.cancel()
            if answer is None:
                is_late, code = time.monotonic() - begun >= wait, self.end()
                if is_late and wait == within:
                    raise TooLateError(f"was not read within {within:g} seconds")
                raise UserError(_why_ended(code, seconds, wait if is_late else None))
        finally:
            self._one_at_a_time.release()
        if "problem" in answer:
            raise UserError(answer["problem"])
        return [Passages.from_dict(fields) for fields in answer["passages"]]

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None or self._owner != os.getpid() or self.process.poll() is not None:
            home = str(Path(__file__).parents[2])  # where precis is imported from
            paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
            # -P: a module in the user's current folder must not replace one of ours
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "precis_text.documents.reading_process"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )  # fmt: skip
            self._owner = os.getpid()
        return self.process

    def end(self) -> int:
        """End the process and return its exit code."""
        process, self.process = self.process, None
        if process is None or self._owner != os.getpid():
            return 0
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        process.kill()
        return process.wait()


def stop_reading() -> None:
    """End the document that is being read, if any; the next one is read in a new process."""
    process = _WORKER.process
    if process is not None:
        process.kill()


def _ask(process: subprocess.Popen[bytes], request: bytes, content: bytes) -> dict[str, Any] | None:
    """Send a request and return the worker's answer; None if it ended instead."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request + content)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    line = process.stdout.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def _wait(kind: DocumentFormat, seconds: float, within: float | None) -> float:
    """Return the limit of wall-clock time for a document, in which another program may recognize its pictures."""
    most = _WAIT * seconds + (
        recognition.MOST_SECONDS if kind in (PDF, PICTURE) and recognition.PROGRAM else 0
    )
    return most if within is None else min(most, within)


def _why_ended(code: int, seconds: float, waited: float | None) -> str:
    """Return why a reading process ended: `seconds` of processor time, or those `waited` for it, were not enough."""
    used = seconds if code == -getattr(signal, "SIGXCPU", 0) else waited
    if used is None and code == _KILLED:
        return "was not read: its reader was ended, perhaps for lack of memory; try again"
    why = (
        f"crashed its reader (code {code})" if used is None else f"takes more than {used:.0f} seconds to read"
    )
    return f"{why}; it may be damaged or malicious, so give its text as plain text"


_WORKER = _Worker()
atexit.register(_WORKER.end)
