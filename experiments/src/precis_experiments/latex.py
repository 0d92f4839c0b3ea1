"""A study's Markdown as LaTeX: tables with booktabs rules, everything else as paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_MARKED = (
    (re.compile(r"\*\*(.+?)\*\*"), r"\\textbf{\1}"),
    (re.compile(r'"([^"]+)"'), r"``\1''"),  # before the next, which would match its quotes
    (re.compile(r"(?<!`)`([^`]+)`(?!`)"), r"\\texttt{\1}"),
    (re.compile(r"(?<![\w.-])-(?=\d)"), "$-$"),  # a minus sign, not a hyphen
)
_NUMBER = re.compile(r"[-+]?[\d.,]+(%| .*\]|/.*)?")
_CELLS = re.compile(r"(?<!\\)\|")


def latex(markdown: str) -> str:
    """Convert Markdown to LaTeX for a document that loads booktabs; columns of numbers are right-aligned.

    Tables need bars at both ends of each line, and a rule below the header.
    """
    blocks = groupby(markdown.splitlines(), key=lambda line: line.startswith("|"))
    lines = [
        line for is_table, block in blocks for line in (_table([*block]) if is_table else map(_text, block))
    ]
    return "\n".join(["% needs \\usepackage{booktabs}", *lines]) + "\n"


def _table(lines: list[str]) -> Iterator[str]:
    header, _, *rows = [[cell.strip() for cell in _CELLS.split(line)[1:-1]] for line in lines]
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    kinds = [
        "r" if column and all(_NUMBER.match(c) or c in ("", "-") for c in column) else "l"
        for column in columns
    ]
    yield f"\\begin{{tabular}}{{{''.join(kinds)}}}"
    yield r"\toprule"
    yield _row(header)
    yield r"\midrule"
    yield from map(_row, rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: list[str]) -> str:
    return " & ".join(map(_text, cells)) + r" \\"


def _text(text: str) -> str:
    plain = "".join(_SPECIAL.get(character, character) for character in text.replace(r"\|", "|"))
    for pattern, command in _MARKED:
        plain = pattern.sub(command, plain)
    return plain
