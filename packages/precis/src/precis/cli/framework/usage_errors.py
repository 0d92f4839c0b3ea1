"""Messages for command lines that cannot be parsed, with the words as typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precis_text.bounded_io import stat_or_none

_LONGEST = 80  # characters of a displayed value
_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)


def usage_line(error: Any, words: Sequence[str] = ()) -> str:
    """Return one line for a parser error: the problem, the valid values, and the command's --help.

    Args:
        error: typer's error, with the context and perhaps pydantic's error as its cause.
        words: the command line.
    """
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "precis"
    return f"{_what(error).rstrip('.')}{_file_meant(command, words)}; see `{command} --help`"


def _file_meant(command: str, words: Sequence[str]) -> str:
    """Return a hint if a word names an existing file where a command or an option was expected, else ""."""
    if command == "precis":
        first = next((word for word in words if not word.startswith("-")), "")
        if first and stat_or_none(Path(first)):
            return f"; to summarize this file: precis summarize {shlex.quote(first)}"
    file = next((word for word in words if re.match("-[^-]", word) and stat_or_none(Path(word))), "")
    return f"; if you mean the file, write ./{file}" if file else ""


def _what(error: Any) -> str:
    message = str(error.format_message())
    if extra := _EXTRA.fullmatch(message):
        return (
            f"{shortened(extra[1])}: more arguments than this command takes; quote names that contain spaces"
        )
    parameter = getattr(error, "param", None)
    problems = getattr(error.__cause__, "errors", None)
    if parameter is None or problems is None:
        return message
    problem = problems()[0]
    name = (
        parameter.opts[0] if parameter.opts and parameter.opts[0].startswith("-") else parameter.name.upper()
    )
    return f"{name} {shortened(str(problem['input']))}: {_wanted(problem)}"


def _wanted(problem: Any) -> str:
    """Return the requirement on a value, from a pydantic error."""
    limits = problem.get("ctx", {})
    match problem["type"]:
        case "greater_than_equal":
            return f"must be at least {_number(limits['ge'])}"
        case "less_than_equal":
            return f"must be at most {_number(limits['le'])}"
        case "int_parsing" | "int_parsing_size" | "int_type" | "int_from_float":
            return "must be a whole number"
        case "float_parsing" | "float_type":
            return "must be a number"
        case "value_error":
            text = re.sub(r"^'.*?' is not one of ", "use one of ", str(limits["error"]), flags=re.DOTALL)
            return text.replace("'", "")
        case _:
            return str(problem["msg"])


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def shortened(text: str) -> str:
    """Truncate a long text, and append its length."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"
