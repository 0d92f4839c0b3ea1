"""Chats that a program exported as a web page: a line for each message, with its speaker, and its time as the place.

Telegram, Messenger and Instagram mark speaker, text and time of a message by the names of classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from precis_text.documents.html_text import words_in, write_tree
from precis_text.documents.passages import Writer

_FEWEST = 2  # messages


@dataclass(frozen=True)
class _Form:
    """The classes of a program's pages; `time_follows` says that the time is behind its message."""

    speaker: str
    text: str
    time: str
    time_follows: bool


_FORMS = (
    _Form(speaker="from_name", text="text", time="date", time_follows=False),  # Telegram
    _Form(speaker="_a6-h", text="_a6-p", time="_a6-o", time_follows=True),  # Messenger and Instagram
    _Form(speaker="_2pio", text="_2let", time="_2lem", time_follows=True),  # the same before 2022
)


@dataclass
class _Message:
    speaker: str
    text: str
    time: str


def write_chat(root: Any, writer: Writer) -> bool:
    """Add the messages of an exported chat; return whether the page is one."""
    for form in _FORMS:
        others: list[str] = []
        messages = _messages(root, form, others)
        if len(messages) >= _FEWEST:
            for message in messages:
                writer.at(time=message.time)
                writer.add(f"{message.speaker}: {message.text}", between="\n")
            writer.leave_out("lines of the chat program", "\n".join(others))
            return True
    return False


def _messages(root: Any, form: _Form, others: list[str]) -> list[_Message]:
    """Return the messages of a page; what belongs to none is added to `others`."""
    found: list[_Message] = []
    speaker = time = ""
    for kind, text in _pieces(root, form):
        if kind == form.speaker:
            speaker = text
        elif kind == form.text and text and speaker:
            found.append(_Message(speaker, text, "" if form.time_follows else time))
        elif kind == form.time:
            time = text
            others.append(text)
            if form.time_follows and found and not found[-1].time:
                found[-1].time = text
        else:
            others.append(text)
    return found


def _pieces(element: Any, form: _Form) -> Iterator[tuple[str, str]]:
    """Yield the classes of a page with their text, in order, and all other text with ""."""
    if not isinstance(element.tag, str) or element.tag in ("head", "script", "style"):
        return
    names = (element.get("class") or "").split()
    kind = next((name for name in (form.speaker, form.text, form.time) if name in names), "")
    if kind:
        yield kind, _shown(element) if kind == form.text else words_in(element)
        return
    yield "", element.text or ""
    for each in element:
        yield from _pieces(each, form)
        yield "", each.tail or ""


def _shown(element: Any) -> str:
    """Return the text of a message on one line."""
    writer = Writer()
    write_tree(element, writer)
    return " ".join(writer.finished().text.split())
