"""Slack's export, a zip of CHANNEL/DATE.json: a document for each channel, a line for each message with its speaker."""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from precis_text.documents.archives import open_archive
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from precis_text.row import counted

_DAY = re.compile(r"(?:.*/)?([^/]+)/\d{4}-\d\d-\d\d\.json")
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_SMILEY = re.compile(r":[a-z0-9_+-]+:")
_NOT_SAID = (
    "bot_add",
    "bot_remove",
    "pinned_item",
    "reminder_add",
    "tombstone",
)  # and channel_join, group_name, ...


def read(content: bytes) -> list[Passages]:
    """Read the messages of each channel in order, the replies of a thread behind its first message."""
    archive = open_archive(content, what="a Slack export")
    days = sorted((found[1], name) for name in archive.namelist() if (found := _DAY.fullmatch(name)))
    if not days:
        raise UserError("is an archive, not plain text; unpack it first")
    people = [
        each for name in archive.namelist() if name.endswith("users.json") for each in _rows(archive, name)
    ]
    names = {each.get("id"): _name(each.get("profile"), each) for each in people}
    channels = groupby(days, key=itemgetter(0))
    return [
        _channel(channel, (row for _, name in group for row in _rows(archive, name)), names)
        for channel, group in channels
    ]


def _rows(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    rows = json.loads(archive.read(name))
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _channel(name: str, rows: Iterable[dict[str, Any]], names: Mapping[Any, str]) -> Passages:
    writer, notices, files = Writer(), [], 0
    for row in sorted(
        rows, key=lambda row: (_seconds(row.get("thread_ts", row.get("ts"))), _seconds(row.get("ts")))
    ):
        kind, text = str(row.get("subtype", "")), _shown(str(row.get("text") or ""), names)
        files += len(row.get("files") or ())
        if kind.startswith(("channel_", "group_")) or kind in _NOT_SAID:
            notices.append(text)
        elif text:
            speaker = names.get(row.get("user")) or _name(row.get("user_profile"), row)
            writer.at(time=f"{datetime.fromtimestamp(_seconds(row.get('ts')), UTC):%Y-%m-%d %H:%M UTC}")
            writer.add(f"{speaker}: {text}", between="\n")
    if notices:
        writer.leave_out(f"{counted(len(notices), 'line')} of the chat program", "\n".join(notices))
    if files:
        writer.notes.append(f"{counted(files, 'attached file')} not read")
    return writer.finished(name)


def _name(profile: Any, row: Mapping[str, Any]) -> str:
    known = {**row, **(profile if isinstance(profile, dict) else {})}
    keys = ("real_name", "display_name", "username", "name", "user")
    return next((str(known[key]).replace(":", " ") for key in keys if known.get(key)), "someone")


def _seconds(stamp: Any) -> float:
    return float(stamp or 0)


def _shown(text: str, names: Mapping[Any, str]) -> str:
    """Return a message on one line, with the names of people, channels and links in place of their codes."""
    named = _LINK.sub(lambda link: _named(link, names), text)
    return " ".join(html.unescape(_SMILEY.sub(" ", named)).replace("*", "").split())


def _named(link: re.Match[str], names: Mapping[Any, str]) -> str:
    sign, code, label = link.groups()
    return label or (names.get(code, "someone") if sign == "@" else f"@{code}" if sign == "!" else code)
