"""The command line: parse, delegate, and say what went wrong in one line.

Exit codes: 0 done, 1 a run that failed, 2 input that the user can mend, 130 interrupted. Heavy libraries are
imported inside the commands, so that `precis --help` answers at once.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["main", "run_app"]

_DEBUG = "--debug"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process when `argv` is None); the exit code."""
    return run_app("precis", _parser, argv)


def run_app(name: str, parser: Callable[[], Any], argv: Sequence[str] | None = None) -> int:
    """Run a command line of the program `name` and turn what is raised into one line and an exit code.

    `parser` makes the program's parser; it is called once the environment is quiet, because it imports what speaks.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = _DEBUG in arguments
    arguments = [argument for argument in arguments if argument != _DEBUG]
    from precis.cli.explain import explain
    from precis.cli.output import named_output
    from precis.cli.quiet import quieten

    _print_what_can_be_printed()
    with quieten(debug=debug), named_output():
        try:
            code = parser()(arguments, prog_name=name, standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except BaseException as error:  # a panic of a library in Rust is no Exception
            if debug and not isinstance(error, SystemExit):
                traceback.print_exception(error)
            return explain(error, debug_option=_DEBUG)


def _print_what_can_be_printed() -> None:
    """A character that the terminal's encoding lacks becomes a question mark, not the end of the command."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a caller may have put something else there
        sys.stdout.reconfigure(errors="replace")  # standard error never refuses a character


def _parser() -> Any:
    from precis.cli.app import parser

    return parser()
