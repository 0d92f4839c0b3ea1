"""A study's Markdown as LaTeX: tables with booktabs rules, everything else as paragraphs."""

from __future__ import annotations

from itertools import groupby

from precis.table import latex_text, read_markdown


def latex(markdown: str) -> str:
    """Convert Markdown to LaTeX for a document that loads booktabs.

    Tables need bars at both ends of each line, and a rule below the header.
    """
    lines: list[str] = []
    for is_table, group in groupby(markdown.splitlines(), key=lambda line: line.startswith("|")):
        block = list(group)
        lines += [read_markdown(block).latex()] if is_table else map(latex_text, block)
    return "\n".join(["% needs \\usepackage{booktabs}", *lines]) + "\n"
