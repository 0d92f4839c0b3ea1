"""The command line: parses, delegates, and reports an error in one line.

Exit codes: 0 done, 1 the run failed, 2 bad input that the user can fix, 130 interrupted, 141 the reader of its
output has gone. The commands import heavy libraries themselves, so that `precis --help` answers at once.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["main", "run_app"]

_DEBUG = "--debug"
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process if `argv` is None), and return the exit code."""
    return run_app("precis", _parser, argv)


def run_app(name: str, parser: Callable[[], Any], argv: Sequence[str] | None = None) -> int:
    """Run a command line of the program `name`, and turn an exception into one line and an exit code.

    `parser` makes the program's parser; it is called once the environment is quiet, because it imports noisy libraries.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = _DEBUG in arguments
    arguments = [argument for argument in arguments if argument != _DEBUG]
    try:
        from precis.cli.framework.error_messages import explain
        from precis.cli.framework.library_logging import quieten
        from precis.cli.framework.signals import signals_raise
        from precis.cli.framework.standard_output import named_output, open_closed_streams
    except KeyboardInterrupt:
        return _INTERRUPTED

    if open_closed_streams():
        print("error: standard output is closed; send it to a file, a pipe or /dev/null", file=sys.stderr)
        return 2
    _print_what_can_be_printed()
    with quieten(debug=debug), named_output(), signals_raise():
        try:
            code = parser()(arguments, prog_name=name, standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except BaseException as error:  # a panic of a library in Rust is not an Exception
            if debug and not isinstance(error, SystemExit):
                _print_trace(error)
            return explain(error, debug_option=_DEBUG, words=arguments)


def _print_trace(error: BaseException) -> None:
    from precis_text.terminal_text import escape_controls

    print(escape_controls("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def _print_what_can_be_printed() -> None:
    """Replace characters that the terminal's encoding lacks with a question mark, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a caller may have replaced it
        sys.stdout.reconfigure(errors="replace")  # standard error accepts every character


def _parser() -> Any:
    from precis.cli.application import parser

    return parser()
