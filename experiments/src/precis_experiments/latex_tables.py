"""A study's Markdown as LaTeX: tables with booktabs rules, everything else as paragraphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"}, "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_MARKED = (
    (re.compile(r"\*\*(.+?)\*\*"), r"\\textbf{\1}"),
    (re.compile(r'"([^"]+)"'), r"``\1''"),  # before the next, which would match its quotes
    (re.compile(r"(?<!`)`([^`]+)`(?!`)"), r"\\texttt{\1}"),
    (re.compile(r"(?<![\w.-])-(?=\d)"), "$-$"),  # a minus sign, not a hyphen
)
_NUMBER = re.compile(r"[-+]?[\d.,]+(%| .*\]|/.*)?")
_BAR = re.compile(r"(?<!\\)\|")


def latex(markdown: str) -> str:
    """Convert Markdown to LaTeX for a document that loads booktabs.

    Tables need bars at both ends of each line, and a rule below the header.
    """
    lines: list[str] = []
    for is_table, group in groupby(markdown.splitlines(), key=lambda line: line.startswith("|")):
        block = list(group)
        lines += [_tabular(_cells(block))] if is_table else map(_latex_text, block)
    return "\n".join(["% needs \\usepackage{booktabs}", *lines]) + "\n"


def _tabular(table: Sequence[Sequence[str]]) -> str:
    """Return the rows; columns of numbers are right-aligned."""
    header, *rows = table
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    kinds = ["r" if column and all(map(_is_number, column)) else "l" for column in columns]
    begin, end = f"\\begin{{tabular}}{{{''.join(kinds)}}}", r"\end{tabular}"
    body = [_latex_row(row) for row in rows]
    return "\n".join([begin, r"\toprule", _latex_row(header), r"\midrule", *body, r"\bottomrule", end])


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of a Markdown table, whose lines have bars at both ends."""
    rows = [[cell.strip().replace(r"\|", "|") for cell in _BAR.split(line)[1:-1]] for line in lines]
    return [rows[0], *rows[2:]]


def _latex_text(text: str) -> str:
    """Return a line of Markdown as LaTeX: special characters, bold, code, quotation marks, minus signs."""
    plain = "".join(_SPECIAL.get(character, character) for character in text)
    for pattern, command in _MARKED:
        plain = pattern.sub(command, plain)
    return plain


def _is_number(cell: str) -> bool:
    return cell in ("", "-") or _NUMBER.match(cell) is not None


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_text, cells)) + r" \\"
