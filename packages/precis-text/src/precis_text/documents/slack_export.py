"""Slack's export, a zip of CHANNEL/DATE.json: a document for each channel, a line for each message with its speaker."""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from precis_text.documents.archives import open_archive
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from precis_text.row import pluralize

_DAY = re.compile(r"(?:.*/)?([^/]+)/\d{4}-\d\d-\d\d\.json")
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_SMILEY = re.compile(r"(?<![\w:])(?::(?:[a-z_+-][a-z0-9_+-]*|100|1234|8ball):)+(?!\w)")  # not "12:30:45"
_BOLD = re.compile(r"(?<![\w*])\*((?! )[^*\n]+)(?<! )\*(?![\w*])")  # not "2*3"
_NOT_SAID = ("bot_add", "bot_remove", "pinned_item", "reminder_add", "tombstone")  # and channel_join, ...
_PARTS = ("pretext", "title", "text", "fields", "value", "elements", "blocks")  # of blocks and attachments
_LAST = 253_402_300_799  # second of the year 9999


def read(content: bytes) -> list[Passages]:
    """Read the messages of each channel in order, the replies of a thread behind its first message."""
    archive = open_archive(content, what="a Slack export")
    days = sorted((found[1], name) for name in archive.namelist() if (found := _DAY.fullmatch(name)))
    if not days:
        raise UserError("is an archive, not plain text; unpack it first")
    lists = (_rows(archive, name) for name in archive.namelist() if name.endswith("users.json"))
    names = {str(each.get("id")): _name(each.get("profile"), each) for each in chain.from_iterable(lists)}
    return [
        _channel(channel, (row for _, name in group for row in _rows(archive, name)), names)
        for channel, group in groupby(days, key=itemgetter(0))
    ]


def _rows(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    rows = json.loads(archive.read(name))
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _channel(name: str, rows: Iterable[dict[str, Any]], names: Mapping[Any, str]) -> Passages:
    writer, notices, unread = Writer(), [], Counter[str]()
    for row in sorted(rows, key=_order):
        kind, written, extras = str(row.get("subtype", "")), _said(row.get("text")), row.get("attachments")
        text = _shown(written or _said([row.get("blocks"), extras]), names)
        files = row.get("files") or ()
        unread["attached file"] += len(files) if isinstance(files, list) else bool(files)
        unread["preview or attachment"] += len(extras) if written and isinstance(extras, list) else 0
        if kind.startswith(("channel_", "group_")) or kind in _NOT_SAID:
            notices.append(text)
        elif text:
            speaker = names.get(str(row.get("user"))) or _name(row.get("user_profile"), row)
            _, sent = _order(row)
            writer.at(time=f"{datetime.fromtimestamp(sent, UTC):%Y-%m-%d %H:%M UTC}" if sent else "")
            writer.add(f"{speaker}: {text}", between="\n")
        elif not files:
            unread["message without text"] += 1
    if notices:
        writer.leave_out(f"{pluralize(len(notices), 'line')} of the chat program", "\n".join(notices))
    writer.notes += [f"{pluralize(count, kind)} not read" for kind, count in unread.items() if count]
    return writer.finished(name)


def _name(profile: Any, row: Mapping[str, Any]) -> str:
    known = {**row, **(profile if isinstance(profile, dict) else {})}
    keys = ("real_name", "display_name", "username", "name", "user")
    found = (known[key] for key in keys if isinstance(known.get(key), str))
    return next((name.replace(":", " ") for name in found if name), "someone")


def _order(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the seconds at which a message's thread and the message began; 0 if unknown."""
    sent = _seconds(row.get("ts"))
    return _seconds(row.get("thread_ts")) or sent, sent


def _seconds(stamp: Any) -> float:
    with suppress(TypeError, ValueError, OverflowError):
        return seconds if 0 <= (seconds := float(stamp)) <= _LAST else 0
    return 0


def _said(part: Any, gap: str = " ") -> str:
    """Return the text of blocks or attachments, as Slack nests them."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return gap.join(filter(None, (_said(each, gap) for each in part)))
    if not isinstance(part, dict) or part.get("type") == "actions":  # buttons
        return ""
    if "user_id" in part:
        return f"<@{part['user_id']}>"
    gap = "" if part.get("type") == "rich_text_section" else " "
    said = " ".join(filter(None, (_said(part.get(key), gap) for key in _PARTS)))
    return said or _said(part.get("fallback") or part.get("url"))


def _shown(text: str, names: Mapping[Any, str]) -> str:
    """Return a message on one line, with the names of people, channels and links in place of their codes."""
    named = _LINK.sub(lambda link: _named(link, names), text)
    return " ".join(html.unescape(_BOLD.sub(r"\1", _SMILEY.sub(" ", named))).split())


def _named(link: re.Match[str], names: Mapping[Any, str]) -> str:
    sign, code, label = link.groups()
    return label or (names.get(code, "someone") if sign == "@" else f"@{code}" if sign == "!" else code)
