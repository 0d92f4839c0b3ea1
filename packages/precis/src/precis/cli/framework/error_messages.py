"""One-line error messages on standard error, with the words as typed, and their exit codes."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precis.cli.framework.signals import EndedBySignal
from precis.cli.framework.standard_output import STANDARD_OUTPUT, drop_output
from precis_text.bounded_io import stat_or_none
from precis_text.errors import RunError, UserError

__all__ = ["explain"]

# Errors that another name or permission would fix -> advice; other system errors are not the user's mistake.
_MENDED_BY_THE_USER = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "choose a place that you may write to, or get the permission"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "check the name"), errno.EROFS: "choose a writable place",
    **dict.fromkeys((errno.EEXIST, errno.EINVAL), "choose another place"), errno.EISDIR: "name a file",
    errno.ENAMETOOLONG: "choose a shorter name", errno.ELOOP: "name the target of the link",
    errno.EMFILE: "allow more open files (ulimit -n)",
}  # fmt: skip
_FREE_SPACE = "free some space there, then repeat the command"
_ADVICE = {**_MENDED_BY_THE_USER, errno.ENOSPC: _FREE_SPACE, errno.EDQUOT: _FREE_SPACE}
# Libraries in Rust (tokenizers, safetensors) wrap system errors in their own.
_OS_ERROR_IN_WORDS = re.compile(r"\(os error (\d+)\)")
_LONGEST_VALUE = 80  # characters of a displayed value
_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)
_LONG_WORD = re.compile(r"\S{300,}")
_BROKEN_PIPE = 141  # 128 + SIGPIPE, which ends other programs here
_LONGEST = 1000  # characters of a line; a value of a million characters would hide the problem


def explain(error: BaseException, *, debug_option: str, words: Sequence[str] = ()) -> int:
    """Print one line about an error, with a hint from the `words` of the command line, and return the exit code."""
    import typer

    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        error = error.__context__  # typer has turned it into an exit
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if _was_interrupted(error):
        return _say("interrupted", 130)
    if isinstance(error, EndedBySignal):
        name = signal.Signals(error.number).name
        return _say(f"ended by {name}; repeat the command", 128 + error.number)
    if isinstance(error, UserError):
        return _say(str(error), 2)
    if isinstance(error, RunError):
        return _say(str(error), 1)
    if isinstance(error, typer.TyperException):
        return _explain_usage(error, words)
    if isinstance(error, typer.Abort):
        return _say("aborted", 1)
    if isinstance(error, BrokenPipeError):
        drop_output()  # the reader has closed the pipe
        return _BROKEN_PIPE
    if isinstance(error, MemoryError):
        return _say("not enough memory; use fewer or shorter documents at a time", 1)
    if (from_system := _system_error(error)) is not None:
        return _explain_system(from_system)
    if type(error).__name__ == "PanicException":  # from libraries in Rust; not a subclass of Exception
        return _say(f"a library failed on this input: {error}; {debug_option} shows where", 1)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(f"unexpected {what}; run again with {debug_option} for the traceback", 1)


def _was_interrupted(error: BaseException) -> bool:
    """Return whether Ctrl-C caused an error: while it imports, transformers turns it into one of its own."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def _system_error(error: BaseException) -> OSError | None:
    """Return the error of the operating system, unwrapped if a library has wrapped it."""
    if isinstance(error, OSError):
        return error if error.errno is not None else None
    found = _OS_ERROR_IN_WORDS.search(str(error))
    return OSError(int(found[1]), "") if found else None


def _explain_system(error: OSError) -> int:
    assert error.errno is not None
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    if STANDARD_OUTPUT in names:
        drop_output()
    reason = os.strerror(error.errno)
    parts = [
        *([f"{' -> '.join(names)}: {reason[:1].lower()}{reason[1:]}"] if names else [reason]),
        *([_ADVICE[error.errno]] if error.errno in _ADVICE else []),
    ]
    return _say("; ".join(parts), 2 if error.errno in _MENDED_BY_THE_USER else 1)


def _explain_usage(error: BaseException, words: Sequence[str]) -> int:
    """Explain a wrong option or argument; for a command without arguments, show its help page."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(str(error))
        return 2
    return _say(usage_line(error, words), 2)


def _say(message: str, code: int) -> int:
    line = "".join(character if character.isprintable() else _escaped(character) for character in message)
    line = _LONG_WORD.sub(_middle_left_out, " ".join(line.split()))
    if len(line) > _LONGEST:  # the start says where, the end how to fix it
        line = f"{line[: _LONGEST // 2]} [...] {line[-_LONGEST // 2 :]}"
    print(f"error: {line}", file=sys.stderr)
    return code


def _middle_left_out(word: re.Match[str]) -> str:
    return f"{word[0][:80]}[... {len(word[0]):,} characters]{word[0][-40:]}"


def _escaped(character: str) -> str:
    """Escape a character that would move the cursor or colour the terminal; turn whitespace into a space."""
    return " " if character.isspace() else character.encode("unicode_escape", "surrogatepass").decode()


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
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text):,} characters)"
