"""One-line error messages on standard error, and their exit codes."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Sequence

from precis.cli.framework.signals import EndedBySignal
from precis.cli.framework.standard_output import STANDARD_OUTPUT, drop_output
from precis.cli.framework.usage_errors import usage_line
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
_LONG_WORD = re.compile(r"\S{300,}")
_LONGEST = 1000  # characters of a line; a value of a million characters would hide the problem


def explain(error: BaseException, *, debug_option: str, words: Sequence[str] = ()) -> int:
    """Print one line about an error, with a hint from the `words` of the command line, and return the exit code."""
    import typer

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
        return 1
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
