r"""Rewrite the source of rich text where striprtf reads it otherwise than Word does, and name what it would drop.

\deff1 \plain        the default font, and so its character set
\mac \pc \pca        a character set of the whole file
\u-10179?\u-8704?    one character in two parts
{\object ... {\result  the text that stands for an embedded object
{\*\moMath {\mr x}}  formulas
{\*\annotation  {\header  \v ... \v0    left out and named
"""

from __future__ import annotations

import re

from striprtf.striprtf import charset_map, destinations, rtf_to_text

from precis_text.documents.passages import Writer

_MARKS = re.compile(r"\\[\\{}]|[{}]")
_PAIR = re.compile(
    r"\\u(-?\d{1,6}) ?(?:\?|\\'[0-9a-fA-F]{2})?\\u(-?\d{1,6})(?![\d]) ?(?:\?|\\'[0-9a-fA-F]{2})?"
)
_DEFAULT = re.compile(r"\\deff(\d{1,5})")
_FONT = r"\{{\\f{}(?:\\[a-z]+\d*|\s)*?\\fcharset(\d{{1,3}})"
_PLAIN = re.compile(r"\\plain(?![a-z]) ?")
_LATIN = ("0", "1")  # character sets that the file as a whole may replace
_SETS = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_SET = re.compile(r"\A\{\\rtf\d*\s*\\(mac|pca?)(?![a-z])")
_SHOWN = re.compile(
    r"\\\*(?=\\moMath)|\\(?:object|result|m(?:oMathPara|oMath|num|den|sSubSup|sSup|sSub|sup|sub|rad|deg|nary|func|"
    r"fName|acc|bar|box|eqArr|limLow|limUpp|lim|r|f|e|d))(?![a-zA-Z]) ?"
)
_UNICODE_FORM = re.compile(r"\{\\upr\s*\{[^{}]*\}\s*\{\\\*\\ud(?![a-z])")
_COLUMN = re.compile(r"\\column(?![a-z])")
_DASH = re.compile(r"(?<!\\)((?:\\\\)*)\\_")
_HIDDEN = re.compile(
    r"\\(v|deleted)(?![a-z0-9]) ?((?:[^{}\\]|\\'[0-9a-fA-F]{2}|\\(?!v0|deleted0|plain)[a-z]++-?+\d*+ ?+)*+)"
    r"\\(?:v0|deleted0|plain)(?![a-z]) ?"
)
_WORD = re.compile(r"\\[a-z]+-?\d* ?|\\'[0-9a-fA-F]{2}|\\[^a-z]|[{}]")
_NAMED = (
    (re.compile(r"\{\\(?:header|footer)[lrf]?(?![a-z])"), "page headers and footers"),
    (re.compile(r"\{\\\*\\annotation(?![a-z])"), "comments"),
)
_IGNORABLE = re.compile(r"\{\\\*\\([a-z]+)")
_NO_TEXT = frozenset(
    ("shppict", "cs", "ts", "ds", "pgdsctbl", "picprop", "blipuid", "wrapcoords", "userprops")
)
_PROSE = re.compile(r"[^\W\d_]{3,}")


def prepared(source: str, writer: Writer) -> str:
    """Return a source that striprtf reads as Word does; what is left out is named."""
    for opening, what in _NAMED:
        source, groups = taken(source, opening)
        for group in groups:
            writer.leave_out(what, " ".join(rtf_to_text(_shown(group), errors="replace").split()))
    source = _without_unknown(source, writer)
    for found in _HIDDEN.finditer(source):
        writer.leave_out("hidden text" if found[1] == "v" else "deleted text", _WORD.sub(" ", found[2]))
    source = _HIDDEN.sub("", source)
    source = _COLUMN.sub(r"\\par", _DASH.sub(r"\1-", _UNICODE_FORM.sub("{{", _SHOWN.sub("", source))))
    return _with_default_font(_PAIR.sub(_joined, source))


def set_of(source: str) -> str:
    """Return the character set of the file, which its fonts and a code page may replace."""
    found = _SET.match(source)
    return _SETS[found[1]] if found else "cp1252"


def taken(source: str, opening: re.Pattern[str]) -> tuple[str, list[str]]:
    """Take out the groups that start with `opening`; return the rest, and these groups."""
    kept, groups, end = [], [], 0
    for found in opening.finditer(source):
        if found.start() < end:
            continue
        stop = group_end(source, found.start())
        kept.append(source[end : found.start()])
        groups.append(source[found.start() : stop])
        end = stop
    return "".join([*kept, source[end:]]), groups


def group_end(source: str, start: int) -> int:
    """Return where the group that opens at `start` ends."""
    depth = 0
    for mark in _MARKS.finditer(source, start):
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
        if not depth:
            return mark.end()
    return len(source)


def _without_unknown(source: str, writer: Writer) -> str:
    """Leave out the groups that a reader may ignore, of kinds that are not known, if they hold words."""
    kept, end, seen = [], 0, 0
    for found in _IGNORABLE.finditer(source):
        word = found[1]
        if found.start() < seen or word in destinations or word in _NO_TEXT or word.startswith("m"):
            continue
        stop = seen = group_end(source, found.start())
        text = _WORD.sub(" ", source[found.start() : stop])
        if _PROSE.search(text):
            writer.leave_out("parts of an unknown kind", text)
            kept.append(source[end : found.start()])
            end = stop
    return "".join([*kept, source[end:]])


def _shown(group: str) -> str:
    """Return a group without the word that makes it one of no text."""
    return re.sub(r"\A\{(?:\\\*)?\\[a-z]+\d* ?", "{", group)


def _with_default_font(source: str) -> str:
    """Set the default font at the beginning and at each `plain`, if it has a character set of its own."""
    default = _DEFAULT.search(source)
    font = re.search(_FONT.format(default[1]), source) if default else None
    if default is None or font is None or int(font[1]) not in charset_map:
        return source
    again = f"\\f{default[1]} "
    if font[1] not in _LATIN:
        source = source[: default.end()] + again + source[default.end() :]
    return _PLAIN.sub(lambda _: rf"\plain{again}", source)


def _joined(found: re.Match[str]) -> str:
    high, low = (int(found[number]) % 65536 for number in (1, 2))
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
        return found.group()
    return rf"\u{0x10000 + (high - 0xD800) * 1024 + low - 0xDC00}?"
