"""What went wrong, in one line on standard error, and the exit code that belongs to it."""

from __future__ import annotations

import errno
import os
import re
import sys

from precis.cli.output import STANDARD_OUTPUT, drop_output
from precis.cli.usage import usage_line
from precis.errors import RunError, UserError

__all__ = ["explain"]

# What another name or another right would mend; anything else of the system ends a run that was well asked for.
_MENDED_BY_THE_USER = {
    errno.EACCES: "choose a place that is yours, or ask for the right",
    errno.EPERM: "choose a place that is yours, or ask for the right",
    errno.EROFS: "choose a place that can be written",
    errno.ENOENT: "check the name",
    errno.ENOTDIR: "check the name",
    errno.EISDIR: "name a file",
    errno.EEXIST: "choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EINVAL: "choose another place",
    errno.ELOOP: "name what the link should lead to",
    errno.EMFILE: "allow more open files (ulimit -n)",
}
_FREE_SPACE = "free some space there, then start the same command again"
_ADVICE = {**_MENDED_BY_THE_USER, errno.ENOSPC: _FREE_SPACE, errno.EDQUOT: _FREE_SPACE}
# Libraries in Rust (tokenizers, safetensors) say what the system said inside of errors of their own.
_OS_ERROR_IN_WORDS = re.compile(r"\(os error (\d+)\)")
_LONG_WORD = re.compile(r"\S{300,}")
_LONGEST = 1000  # characters of a line; a value of a million would bury what is wrong with it


def explain(error: BaseException, *, debug_option: str) -> int:
    """Print one line about an error; the exit code."""
    import typer

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, KeyboardInterrupt):
        return _say("interrupted", 130)
    if isinstance(error, UserError):
        return _say(str(error), 2)
    if isinstance(error, RunError):
        return _say(str(error), 1)
    if isinstance(error, typer.TyperException):
        return _explain_usage(error)
    if isinstance(error, typer.Abort):
        return _say("aborted", 1)
    if isinstance(error, BrokenPipeError):
        drop_output()  # whoever read it has left
        return 1
    if isinstance(error, MemoryError):
        return _say("there is not enough memory for this; use fewer or shorter documents at a time", 1)
    if (from_system := _system_error(error)) is not None:
        return _explain_system(from_system)
    if type(error).__name__ == "PanicException":  # of libraries in Rust; no subclass of Exception
        return _say(f"a library could not work with this input: {error}; {debug_option} shows where", 1)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(f"unexpected {what}; run again with {debug_option} for the traceback", 1)


def _system_error(error: BaseException) -> OSError | None:
    """What the operating system refused, also where a library has wrapped it."""
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


def _explain_usage(error: BaseException) -> int:
    """A wrong option or argument; a command without arguments shows its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(str(error))
        return 2
    return _say(usage_line(error), 2)


def _say(message: str, code: int) -> int:
    line = "".join(character if character.isprintable() else _escaped(character) for character in message)
    line = _LONG_WORD.sub(_middle_left_out, " ".join(line.split()))
    if len(line) > _LONGEST:  # the beginning says where, the end what to do
        line = f"{line[: _LONGEST // 2]} [...] {line[-_LONGEST // 2 :]}"
    print(f"error: {line}", file=sys.stderr)
    return code


def _middle_left_out(word: re.Match[str]) -> str:
    return f"{word[0][:80]}[... {len(word[0]):,} characters]{word[0][-40:]}"


def _escaped(character: str) -> str:
    """A character that would move the cursor or colour the terminal, as one writes it; white space becomes a space."""
    return " " if character.isspace() else character.encode("unicode_escape", "surrogatepass").decode()
