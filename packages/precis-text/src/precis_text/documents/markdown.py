"""Markdown, by markdown-it: headings, lists and tables as text without marks.

Tags are a problem: people write HTML into Markdown, and people write `List<Object>` or `<name>`. A tag is HTML if it is
in `_TAGS` and needs no end, or is closed somewhere in the text; everything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from precis_text.documents.character_sets import decode
from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Place, Writer
from precis_text.documents.superscripts import raised_text
from precis_text.tables import read_table

_TABLE = read_table("documents/markdown.toml")
_FRONT_MATTER = re.compile(_TABLE["front_matter"], re.DOTALL)
_REMARK = re.compile(r"(?<!\S)%%(?!%)|%%(?!\S)")  # the beginning or the end of one of Obsidian's
_EMBEDDED = re.compile(r"!\[\[[^\[\]\n]{1,300}\]\]")
_WIKI = re.compile(r"\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
_CALLOUT = re.compile(r"^([ \t]*(?:>[ \t]*)+)\[!\w+\][+-]?[ \t]*(.*)$", re.MULTILINE)
_ANCHOR = re.compile(r"[ \t]+\^[a-zA-Z0-9-]{1,40}[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"^([ \t]*(?:[-*+]|\d+[.)])\s+)\[([ xX/-])\](?:[ \t]|$)", re.MULTILINE)
_TAG_LINE = re.compile(r"^(?:#[\w/-]+[ \t]*)+$", re.MULTILINE)
_BOLD_LINE = re.compile(_TABLE["bold_line"])
_HIGHLIGHT = re.compile(r"==(?=\S)([^=\n]+?)(?<=\S)==")
_NOTE_MARK = re.compile(r"\[\^[^\]\s]{1,40}\](?!:)")
_RAISED = re.compile(r"(\w{0,12})\^([^\s^]{1,12})\^")
_LOWERED = re.compile(r"(?<=[A-Za-z])~(\d{1,3})~")
_PLACEHOLDER = re.compile(r"<(?=[^\s<>@]{1,60}@[^\s<>@.]{1,60}>)")  # "<office@archive>" is no address
_NOTE = re.compile(r"^\[\^[^\]\s]{1,40}\]:[ \t]*", re.MULTILINE)
_CODE = re.compile(_TABLE["code"], re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"</?([a-zA-Z][\w-]*)((?:\s[^<>]*)?)/?>|<!--.*?-->|<[?!][^<>]*>", re.DOTALL)
_BEGINNING = re.compile(rf"{_TAG.pattern}|(?:^|(?<=>))[^\w<\n]*(?=\w)", re.DOTALL | re.MULTILINE)
_ADDED, _REMOVED = "\ue010", "\ue011"  # a line end that is not in the file, and one that is only there
_DIGITS = "".join(map(chr, range(0xE020, 0xE02A)))
_AS_MARK, _AS_NUMBER = str.maketrans("0123456789", _DIGITS), str.maketrans(_DIGITS, "0123456789")
_MARK, _OURS = re.compile(f"[{_DIGITS}]+"), re.compile(f"[{_DIGITS}{_ADDED}{_REMOVED}]")
_WORD, _NEAR = re.compile(r"\w+"), 9
_VOID = frozenset(("br", "hr", "img", "wbr", "source", "input"))
_TAGS = _VOID | frozenset(_TABLE["tags"].split())


def read(content: bytes) -> Passages:
    """Read a Markdown text without its front matter, with the line of each part."""
    writer = Writer()
    write_markdown(
        decode(content, "", writer).replace("\r\n", "\n").replace("\r", "\n"), writer, has_lines=True
    )
    return _with_lines(writer.finished())


def write_markdown(text: str, writer: Writer, *, has_lines: bool = False) -> None:
    """Add the text of a Markdown document; with `has_lines` with marks of its lines, which `_with_lines` takes out."""
    text = _OURS.sub("", text)
    rest = _FRONT_MATTER.sub("", text, count=1)
    before = text[: len(text) - len(rest)]
    writer.leave_out("front matter", before)
    plain = _plain_marks(rest, writer)
    numbers = _line_numbers(plain, before.count("\n") + 1)
    parser = MarkdownIt("commonmark", renderer_cls=_Renderer).enable(["table", "strikethrough"])
    tokens = parser.parse(plain := _OURS.sub("", plain))
    if has_lines:
        _mark_lines(tokens, plain.split("\n"), numbers)
    write_page(parser.renderer.render(tokens, parser.options, {}), writer)


def _line_numbers(plain: str, first: int) -> list[int]:
    """Return the number in the file of each line."""
    numbers, number = [], first
    for line in plain.split("\n"):
        numbers.append(number + _WORD.split(line, 1)[0].count(_REMOVED))
        number += (not line.endswith(_ADDED)) + line.count(_REMOVED)
    return numbers


def _mark_lines(tokens: Sequence[Token], lines: Sequence[str], numbers: Sequence[int]) -> None:
    """Write the number of each line before its first word, in characters that no text has."""
    for token in tokens:
        at, stop = token.map or (0, 0)
        if token.type in ("fence", "code_block", "html_block"):
            token.content = _marked(token.content, at + (token.type == "fence"), numbers)
        is_first = True
        for child in token.children or ():
            if is_first and child.type in ("text", "code_inline") and (word := _WORD.search(child.content)):
                near = range(at, min(at + _NEAR, stop))  # a link or code of several lines may be in between
                at = next((place for place in near if word.group() in lines[place]), at)
                begin, is_first = word.start(), False
                child.content = f"{child.content[:begin]}{_mark(numbers[at])}{child.content[begin:]}"
            ends = child.content.count("\n") if child.type == "html_inline" else child.type.endswith("break")
            at, is_first = min(at + ends, stop - 1), is_first or child.type != "text"


def _marked(content: str, at: int, numbers: Sequence[int]) -> str:
    """Return lines with their numbers, each before its first word that is in no tag."""
    parts, end = [], 0
    for found in _BEGINNING.finditer(content):
        at += content.count("\n", end, found.end())
        parts += [content[end : found.end()], "" if found.group().startswith("<") else _mark(numbers[at])]
        end = found.end()
    return "".join([*parts, content[end:]])


def _mark(number: int) -> str:
    return str(number).translate(_AS_MARK)


def _with_lines(found: Passages) -> Passages:
    """Turn the marks of lines into places; one that has only a bullet before it holds from there."""
    parts: list[str] = []
    starts: list[int] = []
    places: list[Place] = []
    size = end = 0
    for mark in _MARK.finditer(found.text):
        begin = found.text.rfind("\n", end, mark.start()) + 1 if parts else 0
        parts.append(found.text[end : mark.start()])
        size += len(parts[-1])
        place = found.at(mark.start())
        heading, line = _MARK.sub("", place.heading), int(mark.group().translate(_AS_NUMBER))
        end = mark.end()
        if not places or line != places[-1].line:
            starts.append(size - (mark.start() - begin if begin or not places else 0))
            places.append(replace(place, heading=heading, line=line))
    left = [(what, _MARK.sub("", text)) for what, text in found.left]
    text = "".join([*parts, found.text[end:]])
    return replace(found, text=text, starts=starts, places=places, left=left, name=_MARK.sub("", found.name))


def _plain_marks(text: str, writer: Writer) -> str:
    """Replace marks that are not in CommonMark, outside code: Obsidian's, tasks, highlights and footnotes."""
    parts = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_without_marks(text[end : code.start()], writer), code.group()]
        end = code.end()
    return "".join([*parts, _without_marks(text[end:], writer)])


def _without_remarks(text: str, writer: Writer) -> str:
    kept, end, start = [], 0, -1
    for mark in _REMARK.finditer(text):
        can_begin = mark.start() == 0 or text[mark.start() - 1].isspace()
        if start >= 0 and not text[mark.end() : mark.end() + 1].strip():
            kept += [text[end:start], _REMOVED * text.count("\n", start, mark.end())]
            writer.leave_out("remarks", text[start : mark.end()])
            start, end = -1, mark.end()
        elif start < 0 and can_begin:
            start = mark.start()
    return "".join([*kept, text[end:]])


def _without_marks(text: str, writer: Writer) -> str:
    text = _without_remarks(text, writer)
    for pattern, what in (
        (_EMBEDDED, "embedded files"), (_ANCHOR, "anchors"), (_TAG_LINE, "lines of tags"), (_NOTE_MARK, ""),
    ):  # fmt: skip
        for found in pattern.finditer(text):
            writer.leave_out(what, found.group())
        text = pattern.sub("", text)
    for found in _CALLOUT.finditer(text):
        writer.leave_out("", found.group())
    text = _WIKI.sub(lambda found: found.group(2) or found.group(1).replace("#", " "), text)
    text = _RAISED.sub(
        lambda found: found[1] + (raised_text(found[2], found[1]) or ""), _LOWERED.sub(r"\1", text)
    )
    text = _BOLD_LINE.sub(rf"\1{_ADDED}\n", _CALLOUT.sub(rf"\1\2{_ADDED}\n\1", text))
    text = _TASK.sub(lambda task: task[1] + ("☑ " if task[2] in "xX" else ""), text)
    text = _PLACEHOLDER.sub(r"\<", text)
    return _NOTE.sub("", _HIGHLIGHT.sub(r"\1", text))


class _Renderer(RendererHTML):
    """A renderer that shows a tag as text unless it is HTML."""

    def render(self, tokens: Sequence[Token], options: Any, env: Any) -> str:
        raw = [
            each
            for token in tokens
            for each in (token, *(token.children or ()))
            if each.type.startswith("html_")
        ]
        self._closed = {
            found.group(1).lower()
            for each in raw
            for found in _TAG.finditer(each.content)
            if found.group().startswith("</")
        }
        return super().render(tokens, options, env)

    def html_inline(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """Return a tag, or its text."""
        return self._shown(tokens[index].content)

    def html_block(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """Return a block of HTML, with each tag that is none as text."""
        return self._shown(tokens[index].content)

    def _shown(self, content: str) -> str:
        return _TAG.sub(
            lambda found: found.group() if self._is_html(found) else escape(found.group()), content
        )

    def _is_html(self, found: re.Match[str]) -> bool:
        name = (found.group(1) or "").lower()
        if not name:
            return True  # a comment
        return name in _VOID or (name in _TAGS and name in self._closed)
