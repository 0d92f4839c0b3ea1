"""The command line: parse, delegate, and say what went wrong in one line.

Exit codes: 0 done, 1 a run that failed, 2 input that the user can mend, 130 interrupted. Heavy libraries are
imported inside the commands, so that `precis --help` answers at once.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence

from precis.errors import RunError, UserError

__all__ = ["main"]

_DEBUG = "--debug"
_SPACE, _RIGHTS = (
    "free some space there and start the same command again",
    "name a place that you may write to",
)
_OF_THE_DISK = {  # what a person can do about it
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _SPACE),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _RIGHTS),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process when `argv` is None); the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = _DEBUG in arguments
    arguments = [argument for argument in arguments if argument != _DEBUG]
    from precis.cli.quiet import quieten

    _print_what_can_be_printed()
    with quieten(debug=debug):
        try:
            return _run(arguments)
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            if debug and not isinstance(error, SystemExit):
                traceback.print_exception(error)
            return _explain(error)


def _print_what_can_be_printed() -> None:
    """A character that the terminal's encoding lacks becomes a question mark, not the end of the command."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a caller may have put something else there
        sys.stdout.reconfigure(errors="replace")  # standard error never refuses a character


def _run(arguments: list[str]) -> int:
    from precis.cli.app import app

    code = app(arguments, prog_name="precis", standalone_mode=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _explain(error: BaseException) -> int:
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
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK and error.filename:
        return _say(f"{error.filename}: {error.strerror}; {_OF_THE_DISK[error.errno]}", 1)
    if isinstance(error, BrokenPipeError):
        # whoever read our output has left; the interpreter must not try to flush it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(f"unexpected {what}; run again with {_DEBUG} for the traceback", 1)


def _explain_usage(error: BaseException) -> int:
    """A wrong option or argument; a command without arguments shows its help."""
    message = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message)
        return 2
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "precis"
    return _say(f"{message.rstrip('.')}; see `{command} --help`", 2)


def _say(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"error: {line}", file=sys.stderr)
    return code
