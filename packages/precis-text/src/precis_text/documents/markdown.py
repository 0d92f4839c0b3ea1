"""Markdown, by markdown-it: headings, lists and tables as text without marks.

Tags are a problem: people write HTML into Markdown, and people write `List<Object>` or `<name>`. A tag is HTML if it is
in `_TAGS` and needs no end, or is closed somewhere in the text; everything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from precis_text.documents.character_sets import decode
from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.superscripts import raised_text

_FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\n(?=(?:\s|#[^\n]*\n)*[\"'\w.-]+[ \t]*:)(?:.*?\n)??(?:---|\.\.\.)|"
    r"\+\+\+[ \t]*\n.*?\n\+\+\+|;;;[ \t]*\n.*?\n;;;)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_REMARK = re.compile(r"(?<!\S)%%(?!%)|%%(?!\S)")  # the beginning or the end of one of Obsidian's
_EMBEDDED = re.compile(r"!\[\[[^\[\]\n]{1,300}\]\]")
_WIKI = re.compile(r"\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
_CALLOUT = re.compile(r"^([ \t]*(?:>[ \t]*)+)\[!\w+\][+-]?[ \t]*(.*)$", re.MULTILINE)
_ANCHOR = re.compile(r"[ \t]+\^[a-zA-Z0-9-]{1,40}[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"^(\s*(?:[-*+]|\d+[.)])\s+)\[[ xX/-]\]\s", re.MULTILINE)
_TAG_LINE = re.compile(r"^(?:#[\w/-]+[ \t]*)+$", re.MULTILINE)
_HIGHLIGHT = re.compile(r"==(?=\S)([^=\n]+?)(?<=\S)==")
_NOTE_MARK = re.compile(r"\[\^[^\]\s]{1,40}\](?!:)")
_RAISED = re.compile(r"(\w{0,12})\^([^\s^]{1,12})\^")
_LOWERED = re.compile(r"(?<=[A-Za-z])~(\d{1,3})~")
_PLACEHOLDER = re.compile(r"<(?=[^\s<>@]{1,60}@[^\s<>@.]{1,60}>)")  # "<office@archive>" is no address
_NOTE = re.compile(r"^\[\^[^\]\s]{1,40}\]:[ \t]*", re.MULTILINE)
_CODE = re.compile(
    r"(^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[`~]*[ \t]*$|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).){1,2000}?(?"
    r"<!`)(?P=ticks)(?!`))",
    re.M | re.S,
)
_TAG = re.compile(r"</?([a-zA-Z][\w-]*)((?:\s[^<>]*)?)/?>|<!--.*?-->|<[?!][^<>]*>", re.DOTALL)
_VOID = frozenset(("br", "hr", "img", "wbr", "source", "input"))
_TAGS = _VOID | frozenset(
    [
        "a", "abbr", "article", "aside", "audio", "b", "big", "blockquote", "body", "caption", "center", "cite",
        "code", "col", "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption",
        "figure", "font", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "i",
        "iframe", "ins", "kbd", "label", "li", "main", "mark", "nav", "ol", "p", "picture", "pre", "q", "rp",
        "rt", "ruby", "s", "samp", "script", "section", "small", "span", "strike", "strong", "style", "sub",
        "summary", "sup", "svg", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "tt", "u", "ul", "var",
        "video",
    ]
)  # fmt: skip


def read(content: bytes) -> Passages:
    """Read a Markdown text without its front matter."""
    writer = Writer()
    write_markdown(decode(content, "", writer).replace("\r\n", "\n").replace("\r", "\n"), writer)
    return writer.finished()


def write_markdown(text: str, writer: Writer) -> None:
    """Add the text of a Markdown document."""
    rest = _FRONT_MATTER.sub("", text, count=1)
    if rest != text:
        writer.leave_out("front matter", text[: len(text) - len(rest)])
    page = (
        MarkdownIt("commonmark", renderer_cls=_Renderer)
        .enable(["table", "strikethrough"])
        .render(_plain_marks(rest, writer))
    )
    write_page(page, writer)


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
            kept.append(text[end:start])
            writer.leave_out("remarks", text[start : mark.end()])
            start, end = -1, mark.end()
        elif start < 0 and can_begin:
            start = mark.start()
    return "".join([*kept, text[end:]])


def _without_marks(text: str, writer: Writer) -> str:
    text = _without_remarks(text, writer)
    for pattern, what in (
        (_EMBEDDED, "embedded files"),
        (_ANCHOR, "anchors"),
        (_TAG_LINE, "lines of tags"),
        (_NOTE_MARK, ""),
    ):
        for found in pattern.finditer(text):
            writer.leave_out(what, found.group())
        text = pattern.sub("", text)
    for found in _CALLOUT.finditer(text):
        writer.leave_out("", found.group())
    text = _WIKI.sub(lambda found: found.group(2) or found.group(1).replace("#", " "), text)
    text = _RAISED.sub(
        lambda found: found[1] + (raised_text(found[2], found[1]) or ""), _LOWERED.sub(r"\1", text)
    )
    text = _TASK.sub(r"\1", _CALLOUT.sub(r"\1\2\n\1", text))
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
