"""Commands that a LaTeX document defines for itself: each use becomes the text that the definition gives."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DEFINITION = re.compile(
    r"\\(?:(?:provide|new)command\*?\s*\{?\s*|def\s*)\\([a-zA-Z]+)\s*\}?\s*(?:\[(\d)\])?"
    r"\s*(\[[^\[\]]*\])?\s*((?:#\d)*)\s*\{"
)
_OPTION = re.compile(r"\s*\[([^\[\]]*)\]")
_OPENING = re.compile(r"\s*\{")
_MOST_ROUNDS = 5  # definitions that use others
_MOST_GROWTH = 4  # times the length of the document, plus a page: definitions may multiply each other
_PAGE = 10_000


@dataclass(frozen=True)
class Macro:
    """A command: the number of its arguments, the default of the first one if it is optional, and its text."""

    count: int
    default: str | None
    text: str


def group_from(text: str, start: int, opened: int) -> str:
    """Return the command at `start` with its argument, whose brace was opened before `opened`."""
    depth, place = 1, opened
    while place < len(text) and depth:
        depth += {"{": 1, "}": -1}.get(text[place], 0) if text[place - 1] != "\\" else 0
        place += 1
    return text[start:place]


def macros_of(text: str) -> tuple[dict[str, Macro], list[str]]:
    """Return the commands that a text defines, and the definitions as written there."""
    macros, wholes = {}, []
    for found in _DEFINITION.finditer(text):
        whole = group_from(text, found.start(), found.end())
        default = found[3][1:-1] if found[3] else None
        macros[found[1]] = Macro(
            int(found[2] or found[4].count("#")), default, whole[found.end() - found.start() : -1]
        )
        wholes.append(whole)
    return macros, wholes


def expanded(text: str, macros: dict[str, Macro]) -> str:
    """Replace the uses of these commands; those that would make the text too long stay."""
    most = _MOST_GROWTH * len(text) + _PAGE
    use = re.compile(r"\\(" + "|".join(map(re.escape, macros)) + r")(?![a-zA-Z])") if macros else None
    for _ in range(_MOST_ROUNDS if use else 0):
        parts, done, size = [], 0, len(text)
        for found in use.finditer(text) if use else ():
            if found.start() < done or size > most:
                continue
            shown, stop = _used(text, found.end(), macros[found[1]])
            parts += [text[done : found.start()], shown]
            size, done = size + len(shown), stop
        text = "".join([*parts, text[done:]])
    return text


def _used(text: str, place: int, macro: Macro) -> tuple[str, int]:
    """Return the text of a use whose arguments begin at `place`, and where they end."""
    given: list[str] = []
    if macro.default is not None:
        option = _OPTION.match(text, place)
        given, place = [option[1] if option else macro.default], option.end() if option else place
    while len(given) < macro.count and (opening := _OPENING.match(text, place)):
        whole = group_from(text, opening.end(), opening.end())
        given.append(whole[:-1])
        place = opening.end() + len(whole)
    given += [""] * (macro.count - len(given))
    shown = re.sub(
        r"#(\d)", lambda mark: given[int(mark[1]) - 1] if 0 < int(mark[1]) <= len(given) else "", macro.text
    )
    return f"{{{shown}}}", place
